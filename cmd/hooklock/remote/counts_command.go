package remote

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
)

// NewCounts is the command counts.
func NewCounts(e *cli.Environment) *cobra.Command {
	r := Remote{more: []string{outputCSV}}
	var q client.CountQuery
	var route string
	cmd := &cobra.Command{
		Use:   "counts",
		Short: "see outcomes and latency of each route over time, over all replicas",
		Long: `See what came of the deliveries of each route over time, and how long its service took (P50 and P95, less than 42 % off), over all replicas
and restarts: by the minute for 24 hours, by the hour for 30 days.`,
		Example: `  hooklock counts --route stripe --since 1h --step 5m
  hooklock counts --since 720h --step 24h -o csv
  hooklock counts --since 336h --until 168h --step 24h`,
		Args: cli.NoArgs,
		RunE: r.Action(e, func(ctx context.Context, d *Desk, _ []string) error {
			d.rewriteTimes(&q.Since, &q.Until)
			list, err := d.CountsOf(ctx, q)
			if err != nil {
				return err
			}
			if d.isRaw() {
				return d.printObject(list.RawJSON(), nil)
			}
			return listCounts(ctx, d, list, route).print(d)
		}),
	}
	r.Flags(cmd)
	textFlag(cmd, &route, "route", "only of this route (-o json has all)")
	textFlag(cmd, &q.Since, "since", "since "+momentsHelp+"; default: 24h before the end")
	textFlag(cmd, &q.Until, "until", "until then; default: now")
	textFlag(cmd, &q.Step, "step", "how long a step is: 5m, or whole hours where since is more than 24h ago")
	r.watchFlag(cmd)
	return cmd
}

// routeStep is what was counted of a route in one step.
type routeStep struct {
	route string
	client.CountStep
}

// listCounts returns the list of the steps, those of a route one after the other.
func listCounts(ctx context.Context, d *Desk, list *client.CountList, route string) *listing[routeStep] {
	var all []routeStep
	for i := range list.Routes {
		if r := &list.Routes[i]; route == "" || r.Route == route {
			for _, step := range r.Steps {
				all = append(all, routeStep{r.Route, step})
			}
		}
	}
	head := []string{"FROM", "ROUTE", "DELIVERIES", "SUCCEEDED", "FAILED", "ERRORS", "PARKED", "DUPLICATES", "BUSY",
		"BAD-SIG", "REFUSED", "P50", "P95"}
	return &listing[routeStep]{
		name: "counts", none: "nothing was counted", head: head,
		why:  func() string { return d.whyNone(ctx, route, "") },
		drop: []string{"BAD-SIG", "BUSY", "REFUSED"}, cut: map[string]int{"ROUTE": 8},
		row: func(s *routeStep) []string {
			return countRow(s, d.shown.Stamp(s.At.Time), func(seconds float64) string {
				return cli.Span(story.Estimate(seconds))
			})
		},
		csvHead: []string{"from", "route", "deliveries", "succeeded", "failed", "errors", "parked_events", "duplicates",
			"busy", "bad_signatures", "refused", "p50_seconds", "p95_seconds"},
		csvRow: func(s *routeStep) []string {
			return countRow(s, story.CSVTime(s.At), func(seconds float64) string {
				return strconv.FormatFloat(seconds, 'f', 6, 64)
			})
		},
		page: func(int, string) ([]routeStep, string, error) { return all, "", nil },
	}
}

func countRow(s *routeStep, from string, span func(seconds float64) string) []string {
	row := []string{from, s.route}
	c := &s.Counts
	for _, n := range []int64{c.Deliveries, c.Succeeded, c.Failed, c.Errors, c.Parked, c.Duplicates, c.Busy,
		c.BadSignatures, c.Refused} {
		row = append(row, strconv.FormatInt(n, 10))
	}
	for _, seconds := range []float64{s.P50Seconds, s.P95Seconds} {
		if seconds == 0 {
			row = append(row, "")
			continue
		}
		row = append(row, span(seconds))
	}
	return row
}
