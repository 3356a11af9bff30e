package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
	"hooklock/idem"
)

// NewSeen is the command seen.
func NewSeen(e *cli.Environment) *cobra.Command {
	var r Remote
	var until, reason string
	var undo bool
	cmd := &cobra.Command{
		Use:   "seen [KIND:ROUTE --reason TEXT]",
		Short: "mark what needs attention as looked at, or list what was",
		Long: `Mark what needs attention, of one kind on one route, as looked at: it leaves the list and the count of the page, and "hooklock status", on all
replicas. Nothing is done with the events. What is newer needs attention again. A mark lasts for 30 days.

KIND is one of dead_letters, blocked, unknown (outcomes), exhausted (attempts), reused (event IDs), lost (events), bad_signatures, silent (routes), changed (duplicates that
were other requests) and event_ids (that name no single event).

Without KIND:ROUTE the marks are listed, the newest first.`,
		Example: `  hooklock seen
  hooklock seen dead_letters:stripe --reason "TICKET-42"
  hooklock seen dead_letters:stripe --undo`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && (undo || reason != "" || until != "") {
				return cli.Misuse(errors.New("name what was looked at: hooklock seen KIND:ROUTE"))
			}
			if len(args) == 1 && !undo {
				if err := requireFlag(cmd, "reason", reason, `"TICKET-42"`); err != nil {
					return err
				}
			}
			return r.run(cmd.Context(), e, func(ctx context.Context, d *Desk) error {
				switch {
				case len(args) == 0:
					return printAnswer(d, d.printSeen)(d.Seen(ctx))
				case undo:
					return printChange(d, "hooklock seen", func(m *client.SeenMark) string {
						return m.Concern + " needs attention again; " + m.By + " had looked at it: " + m.Reason
					})(d.UnmarkSeen(ctx, args[0], reason))
				}
				d.rewriteTimes(&until)
				return printChange(d, "hooklock seen", func(m *client.SeenMark) string {
					_, route, _ := strings.Cut(args[0], ":")
					return m.Concern + " is marked as looked at until " + d.shown.Stamp(m.Until.Time) +
						d.whyNone(ctx, route, "")
				})(d.MarkSeen(ctx, args[0], until, reason))
			})
		},
	}
	r.Flags(cmd)
	textFlag(cmd, &reason, "reason", "why, for the audit log (required, but with --undo)")
	textFlag(cmd, &until, "until", "what happened up to "+momentsHelp+" (default: now)")
	cmd.Flags().BoolVar(&undo, "undo", false, "remove the mark")
	cmd.ValidArgsFunction = cobra.FixedCompletions(kindCompletions(),
		cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
	return cmd
}

func kindCompletions() (all []cobra.Completion) {
	for _, kind := range idem.ConcernKind("").Choices() {
		all = append(all, kind+":")
	}
	return all
}

func (d *Desk) printSeen(l *client.SeenList) error {
	now := time.Now()
	if len(l.Seen) == 0 {
		fmt.Fprintln(d.environment.Stderr, "nothing is marked as looked at")
		return nil
	}
	t := d.newTable("SEEN", "UNTIL", "AGE", "BY", "REASON")
	t.Drop, t.Cut = []string{"AGE", "BY"}, map[string]int{"SEEN": 12, "REASON": 12}
	for i := range l.Seen {
		m := &l.Seen[i]
		t.Add(m.Concern, d.shown.Stamp(m.Until.Time), cli.Span(now.Sub(m.At.Time)), m.By, m.Reason)
	}
	return t.Flush()
}
