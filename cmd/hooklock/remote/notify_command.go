package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
)

// NewNotify is the command notify.
func NewNotify(e *cli.Environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "notify",
		Short: "messages about what needs attention",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var r Remote
	test := &cobra.Command{
		Use:   "test",
		Short: "send one test message, and say what the receiver answered",
		Long: `Let a running "hooklock serve" send one test message to the receiver that its notify.url_file names, and say what the receiver answered.
The exit code is 1 unless that was 2xx. The URL is not shown.`,
		Example: "  hooklock notify test",
		Args:    cli.NoArgs,
		RunE: r.Action(e, func(ctx context.Context, d *Desk, _ []string) error {
			result, err := d.TestNotify(ctx)
			if err != nil {
				return withDoubt(err, "the receiver")
			}
			return d.showNotifyTest(result)
		}),
	}
	r.Flags(test)
	cmd.AddCommand(test)
	return cmd
}

// showNotifyTest prints what came of a test message. It returns why the receiver did not take it.
func (d *Desk) showNotifyTest(result *client.NotifyTest) error {
	if !result.Taken && !d.isRaw() {
		return errors.New(cli.Plain(result.Problem))
	}
	text := fmt.Sprintf("the receiver took the message: %d", result.Status)
	if result.Answer != "" {
		text += " " + result.Answer
	}
	if err := d.PrintResult(result.RawJSON(), text); err != nil || result.Taken {
		return err
	}
	return errors.New(cli.Plain(result.Problem))
}
