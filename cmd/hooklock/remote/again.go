package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
)

// checkAgain refuses flags that do not go with --again, or without it; to: --to is given.
func checkAgain(b *client.Bulk, again, to bool) error {
	switch {
	case again && b.Filter.State != "":
		return cli.Misuse(errors.New("--again, --dead-letters: give one of them; a dead letter runs again without " +
			"--again"))
	case !again && !to && b.Filter.Status != "":
		return cli.Misuse(
			errors.New("--status is for --again and --to: without them the command is about dead letters"))
	}
	return nil
}

// runAgain lets an event run again that has ended, whether or not it was settled.
func (d *Desk) runAgain(ctx context.Context, p *person, text, reason string) error {
	id, err := d.completeID(ctx, text)
	if err != nil {
		return err
	}
	was, err := d.Execution(ctx, id)
	if err != nil {
		return err
	}
	if err := d.warnOfSignatures(ctx, was.Route); err != nil {
		return err
	}
	return printChange(d, story.ShellLine("hooklock", "executions", "get", id), p.done)(d.RunAgain(ctx, id, reason))
}

// warnOfSignatures says which services see a signature that is too old; route "" = of all routes.
func (d *Desk) warnOfSignatures(ctx context.Context, route string) error {
	l, err := d.Routes(ctx)
	if err != nil {
		return err
	}
	for i := range l.Routes {
		r := &l.Routes[i]
		if r.SignatureAge == 0 || route != "" && r.Route != route {
			continue
		}
		age := time.Duration(r.SignatureAge * float64(time.Second))
		fmt.Fprintf(d.environment.Stderr, "route %s: the service sees each signature as it came, and refuses it if "+
			"it checks that and the event is older "+
			"than %s; park.signature: renew makes new ones\n", r.Route, cli.Span(age))
	}
	return nil
}

// allAgain lets all events that match run again, or says which they would be.
func (d *Desk) allAgain(ctx context.Context, b *client.Bulk, detach bool) error {
	if err := d.warnOfSignatures(ctx, b.Filter.Route); err != nil {
		return err
	}
	n := client.NewJob{Kind: client.JobRerun, Again: true, Reason: b.Reason, Filter: b.Filter, Rate: b.Rate,
		DryRun: b.DryRun}
	if !b.DryRun {
		return d.startJob(ctx, n, detach)
	}
	return d.dryJob(ctx, n)
}

// dryJob prints what a job would be about, and the first of it.
func (d *Desk) dryJob(ctx context.Context, n client.NewJob) error {
	j, err := d.StartJob(ctx, n)
	if err != nil {
		return err
	}
	err = d.printObject(j.RawJSON(), func() error {
		t := d.newTable("EXECUTION", "ENDED", "ROUTE", "WORKFLOW")
		t.Cut = map[string]int{"EXECUTION": 20, "WORKFLOW": 8}
		for _, x := range j.First {
			t.Add(x.ExecutionID, d.shown.Stamp(x.Since.Time), x.Route, x.Workflow)
		}
		return t.Flush()
	})
	shown := ""
	if len(j.First) < j.Matched {
		shown = fmt.Sprintf(", of which the first %d are shown", len(j.First))
	}
	why := ""
	if j.Matched == 0 {
		why = d.whyNone(ctx, n.Filter.Route, n.Filter.Label)
	}
	_, told := fmt.Fprintf(d.environment.Stderr, "%d match%s; nothing changed (dry run)%s\n", j.Matched, shown, why)
	return cmp.Or(err, told)
}

// againFlags are those of a command that lets any event run again that has ended.
func againFlags(cmd *cobra.Command, b *client.Bulk, again *bool) {
	ended := []string{"SUCCESS", "FAILED", "ABORTED"}
	cmd.Flags().BoolVar(again, "again", false,
		"also what was settled: any event that has ended, if its route keeps the requests of all events")
	textFlag(cmd, (*string)(&b.Filter.Status), "status", "with --again or --to, all that ended so: "+
		strings.Join(ended, ", "), ended...)
}

func newExecutionsErase(e *cli.Environment, r *Remote) *cobra.Command {
	var b client.Bulk
	var detach bool
	cmd := &cobra.Command{
		Use:   "erase --label NAME=VALUE --reason TEXT",
		Short: "delete all that is known of the events with a label",
		Long: `Delete all that is known of each event with a label that has ended: its record, the kept requests of all its attempts, and how it arrived. It runs
again if its sender repeats it. That is a job, which the replicas run: this command watches it, and --detach does not. The audit log keeps a line
for each event, with its execution ID, workflow and your reason. What has not ended is left alone: cancel it first.`,
		Example: `  hooklock erase --label customer=4711 --dry-run
  hooklock erase --label customer=4711 --reason "request 12 of the customer"`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := requireFlag(cmd, "label", b.Filter.Label, "customer=4711"); err != nil {
				return err
			}
			if !b.DryRun {
				if err := requireFlag(cmd, "reason", b.Reason, `"request 12"`); err != nil {
					return err
				}
			}
			return r.run(cmd.Context(), e, func(ctx context.Context, d *Desk) error {
				n := client.NewJob{Kind: client.JobErase, Reason: b.Reason, Filter: b.Filter, Rate: b.Rate,
					DryRun: b.DryRun}
				if b.DryRun {
					return d.dryJob(ctx, n)
				}
				return d.startJob(ctx, n, detach)
			})
		},
	}
	textFlag(cmd, &b.Filter.Label, "label", "all with this label: customer=4711")
	cmd.Flags().BoolVar(&b.DryRun, "dry-run", false, "show what would be erased, and do nothing")
	cmd.Flags().BoolVar(&detach, "detach", false, "start the job, and do not watch it")
	cmd.Flags().IntVar(&b.Rate, "rate", 0, "how many a second, at most 1000 (default 10)")
	NoFiles(cmd, "rate")
	reasonFlag(cmd, &b.Reason, "")
	return cmd
}
