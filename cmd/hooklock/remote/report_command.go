package remote

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/cli"
	"hooklock/idem/naming"
)

// NewReport is the command report.
func NewReport(e *cli.Environment) *cobra.Command {
	var r Remote
	var since string
	var examples bool
	cmd := &cobra.Command{
		Use:   "report",
		Short: "see what the routes have found wrong with their deliveries: what mode observe would have stopped",
		Long: `See what each route has found wrong with its deliveries. In mode observe these were forwarded all the same, so this is what enforce
would stop:

  STALE       events that are older than one of their scope that went through, where the route has an order; and
              those that a newer one replaced while they waited (strategy latest)
  DUPLICATES  of an event that is settled or runs: they would get the first answer, or a 409
  BUSY        other events of a workflow while one ran: they would wait, or be refused; and events that a limit
              had no slot for
  MISMATCHES  a known event ID with another request
  NO-ID       deliveries without an event ID
  BAD-SIG     signatures that are not valid
  UNREADABLE  deliveries of which no workflow or key could be made

Lines below the table name what may go wrong: members that change between attempts, event IDs that name no single event, redirects, and
twins, which are events with the body of another one shortly before, under another event ID (setting twins).

It is counted in memory, by the process that is asked, since its start and at most 7 days back. Behind a load balancer, ask each replica
(--admin); the metric hooklock_deliveries_total has the same counts over all of them.`,
		Example: `  hooklock report
  hooklock report --since 24h --examples
  hooklock report -o json | jq '.routes[] | {route, mode, overlaps: .overlaps.count}'`,
		Args: cli.NoArgs,
		RunE: r.Action(e, func(ctx context.Context, d *Desk, _ []string) error {
			d.rewriteTimes(&since)
			return printAnswer(d, func(found *client.Report) error {
				return d.printReport(found, examples)
			})(d.Report(ctx, since))
		}),
	}
	r.Flags(cmd)
	r.watchFlag(cmd)
	textFlag(cmd, &since, "since", "only since "+momentsHelp+"; default: all that is known")
	cmd.Flags().BoolVar(&examples, "examples", false, "print the newest examples of each finding, too")
	return cmd
}

func (d *Desk) printReport(r *client.Report, examples bool) error {
	fmt.Fprintf(d.environment.Stdout, "of %s, since %s (%s)\n", cli.Plain(r.Replica), d.shown.Stamp(r.Since.Time),
		cli.Span(r.Until.Sub(r.Since.Time)))
	t := d.newTable("ROUTE", "MODE", "DELIVERIES", "STALE", "DUPLICATES", "BUSY", "MISMATCHES", "NO-ID", "BAD-SIG",
		"UNREADABLE")
	t.Drop, t.Cut, t.Empty = []string{"MODE"}, map[string]int{"ROUTE": 8, "DELIVERIES": 10}, "0"
	for i := range r.Routes {
		route := &r.Routes[i]
		row := []string{route.Route, route.Mode, strconv.FormatInt(route.Deliveries, 10)}
		for _, f := range findingsOf(route) {
			row = append(row, strconv.FormatInt(f.Count, 10))
		}
		t.Add(row...)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	d.printChanging(r)
	d.printLosses(r)
	if !examples {
		return nil
	}
	t = d.newTable("ROUTE", "FOUND", "AT", "DECISION", "KEY", "WORKFLOW", "EXECUTION", "WHY")
	t.Drop, t.Cut = []string{"EXECUTION", "KEY"}, map[string]int{"ROUTE": 8, "WORKFLOW": 8, "WHY": 8}
	for i := range r.Routes {
		route := &r.Routes[i]
		for _, f := range append(findingsOf(route), namedFinding{"changed", &route.Changed},
			namedFinding{"redirected", &route.Redirected}, namedFinding{"twin", &route.Twins}) {
			for j := range f.Examples {
				x := &f.Examples[j]
				t.Add(route.Route, f.name, d.shown.Stamp(x.At.Time), x.Decision, x.Key, x.Workflow, x.ExecutionID,
					strings.TrimSpace(x.Code+" "+x.Signature+differsText(x)))
			}
		}
	}
	if len(t.Rows) > 0 {
		fmt.Fprintln(d.environment.Stdout)
	}
	return t.Flush()
}

// differsText names what differs from the first delivery of an event ID.
func differsText(x *client.Example) string {
	switch {
	case x.TwinOf != "":
		return "like " + x.TwinOf
	case len(x.Differs) == 0:
		return ""
	}
	return "another " + strings.Join(x.Differs, ", ")
}

// printChanging says which senders change a delivery between attempts, and which settings fit. The
// report does not know whether signatures are checked, and replay is refused if they are not.
func (d *Desk) printChanging(r *client.Report) {
	for i := range r.Routes {
		c := r.Routes[i].Changing
		if c == nil || c.Refused == 0 {
			continue
		}
		fmt.Fprintf(d.environment.Stdout, "%s: the sender changes something between attempts: %s (refused %d times, "+
			"last %s at %s); say %sidempotency.on_mismatch: replay; "+
			"without verify execute, or replay_unsigned if only the sender can reach it\n",
			cli.Plain(r.Routes[i].Route), cli.Plain(strings.Join(c.Members, ", ")), c.Refused, cli.Plain(c.Key),
			d.shown.Stamp(c.At.Time), cli.Plain(ignoreText(c.Members)))
	}
}

// ignoreText returns the setting that leaves out what changed, "" if something changed that cannot
// be left out.
func ignoreText(members []string) string {
	if _, err := naming.CompileIgnored(members); err != nil || len(members) == 0 {
		return ""
	}
	return "ignore: [" + strings.Join(members, ", ") + "] if they say nothing about the event, or "
}

// printLosses says on which routes events may be lost: by an event ID that names more than one, or
// by a redirect.
func (d *Desk) printLosses(r *client.Report) {
	for i := range r.Routes {
		route := &r.Routes[i]
		texts := []string{route.ChangedText(), route.RedirectedText(), route.TwinsText()}
		if w := route.WrongEventID; w != nil {
			texts = append(texts, w.Text())
		}
		for _, text := range texts {
			if text != "" {
				fmt.Fprintln(d.environment.Stdout, cli.Plain(route.Route+": "+text))
			}
		}
	}
}

// namedFinding is a finding with its name in the table.
type namedFinding struct {
	name string
	*client.Finding
}

func findingsOf(r *client.RouteReport) []namedFinding {
	return []namedFinding{
		{"stale", &r.Stale}, {"duplicate", &r.Duplicates}, {"overlap", &r.Overlaps}, {"mismatch", &r.Mismatches},
		{"missing ID", &r.MissingEventIDs}, {"forged", &r.Forged}, {"unnamed", &r.Unnamed},
	}
}
