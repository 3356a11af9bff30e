package remote

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
	"hooklock/idem"
)

// shownEvents is how many events are listed unless --limit says otherwise.
const shownEvents = 50

// NewEvents is the command events: the list of executions for readers.
func NewEvents(e *cli.Environment) *cobra.Command {
	r := Remote{more: []string{outputCSV}}
	cmd := newList(e, &r, true)
	cmd.Use, cmd.Aliases, cmd.Short = "events", []string{"ls"},
		"list events, the newest first, with what happened to each"
	cmd.Long = `List events, the newest first: those that wait, those that run, those that have ended. All filters that are given have to hold. It lists
the newest ` + strconv.Itoa(shownEvents) + ` of them, unless --limit says otherwise. With any filter but --outcome, such as --route or --since, events that were refused each time are among them.

STATUS is PENDING (it waits for the lock), RUNNING, CANCEL_REQUESTED, SUCCESS, FAILED (an error of the system or the upstream) or ABORTED (the
decision of a person or a policy). OUTCOME says what is known of the effect: executed, not_executed, or unknown. DUPLICATES counts deliveries
that were answered without running. -o wide has these columns.`
	cmd.Example = `  hooklock events --since 02:13 --until 02:20
  hooklock events --status FAILED --route stripe --since "yesterday 22:00"
  hooklock events --decision locked --since 1h
  hooklock events --dead-letters
  hooklock events --lost --since 24h`
	limit := cmd.Flags().Lookup("limit")
	limit.DefValue, limit.Usage = strconv.Itoa(shownEvents), "print at most this many; 0: all"
	_ = limit.Value.Set(limit.DefValue) // it is a number
	r.Flags(cmd)
	return cmd
}

func newExecutionsList(e *cli.Environment, r *Remote) *cobra.Command { return newList(e, r, false) }

// newList returns a command that lists executions. people selects the columns of events for all
// outputs, instead of for terminals alone.
func newList(e *cli.Environment, r *Remote, people bool) *cobra.Command {
	var f filter
	var parked parkedFlags
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "list executions, the newest first, and what was refused",
		Long: `List executions, the newest first: those that wait, those that run, those that have ended. All filters that are given have to hold.

With --decision the list is of the events of which a delivery was answered so between --since and --until; those that have no execution are
REFUSED: they never ran, or were forwarded without a lock (bypassed), or RELEASED: their record was forgotten, so that they run again. With --parked, --blocked or --dead-letters it shows what its executions wait for, those first that have waited longest; all filters but --status and --decision
hold there, too.`,
		Example: `  hooklock events --since 10m
  hooklock events --parked
  hooklock events --dead-letters --workflow 'orders/*' --since 24h
  hooklock events --workflow 'stripe/*' --status FAILED --outcome unknown
  hooklock events --decision upstream_unreachable --since 10m
  hooklock events --status RUNNING -o json | jq -r '.executions[].executionId'`,
		SuggestFor: []string{"list", "dead-letters", "failed", "history"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Misuse(fmt.Errorf("a list has filters; to see one event: %s",
					story.ShellLine("hooklock", "show", args[0])))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := f.queryOfFlags()
			if err != nil {
				return cli.Misuse(err)
			}
			if err := parked.narrowQuery(&q); err != nil {
				return cli.Misuse(err)
			}
			return r.run(cmd.Context(), e, func(ctx context.Context, d *Desk) error {
				d.rewriteTimes(&q.Since, &q.Until)
				l := listExecutions(ctx, d, q)
				if q.Parked {
					d.showParkedIn(l, q.State)
				}
				if q.Lost {
					l.none = "no event is possibly lost"
				}
				if people && d.output != outputWide {
					d.asEvents(l)
				}
				if q.Workflow != "" && !strings.Contains(q.Workflow, "*") {
					l.none += "; --workflow takes a whole name, and a pattern has a *: '" + cli.Plain(q.Workflow) + "*'"
				}
				return l.print(d)
			})
		},
	}
	f.addFlags(cmd)
	parked.addFlags(cmd)
	listFlags(cmd, &f.criteria.Limit, &f.criteria.Cursor)
	r.watchFlag(cmd)
	return cmd
}

// listExecutions returns the list of those that q selects.
func listExecutions(ctx context.Context, d *Desk, q client.ExecutionQuery) *listing[client.Execution] {
	now := time.Now()
	l := &listing[client.Execution]{
		name: "executions", none: "no matching events", limit: q.Limit, cursor: q.Cursor,
		why: func() string { return d.whyNone(ctx, q.Route, q.Label) },
		head: []string{"EXECUTION", "STATUS", "OUTCOME", "AGE", "TOOK", "ATTEMPT", "DUPLICATES", "WORKFLOW", "EVENT",
			"WHY"},
		drop:    []string{"TOOK", "ATTEMPT", "DUPLICATES", "WHY", "OUTCOME", "WORKFLOW"},
		cut:     map[string]int{"WORKFLOW": 8, "EVENT": 8, "WHY": 16},
		csvHead: story.CSVHead(), csvRow: func(x *client.Execution) []string { return story.CSVRow(x, now) },
		row: func(x *client.Execution) []string { return d.executionRow(x, now) }, raw: (*client.Execution).RawJSON,
		page: pageOf(&q.Limit, &q.Cursor, func() (*client.ExecutionPage, error) { return d.ExecutionPage(ctx, q) },
			func(p *client.ExecutionPage) ([]client.Execution, string) { return p.Executions, p.NextCursor }),
	}
	switch {
	case d.output == outputWide:
		row, event := l.row, slices.Index(l.head, "EVENT")
		l.row = func(x *client.Execution) []string {
			cells := row(x)
			if labels := story.Labels(x); labels != "" {
				cells[event] += " (" + labels + ")"
			}
			return cells
		}
	case d.screen.Terminal():
		d.asEvents(l)
	}
	return l
}

// filter holds the flags of a list.
type filter struct {
	criteria        client.ExecutionQuery
	status, outcome string
}

func (f *filter) addFlags(cmd *cobra.Command) {
	textFlag(cmd, &f.criteria.Workflow, "workflow", "only this workflow, or those that match a pattern: stripe/*")
	textFlag(cmd, &f.criteria.Route, "route", "only of this route")
	textFlag(cmd, &f.status, "status", "only with this status: "+strings.Join(statusNames(), ", "), statusNames()...)
	textFlag(cmd, &f.outcome, "outcome", "only with this outcome: "+strings.Join(outcomeNames(), ", "),
		outcomeNames()...)
	textFlag(cmd, &f.criteria.Decision, "decision",
		"only events with a delivery that got this decision, e.g. locked; answers.md lists them", decisionNames()...)
	textFlag(cmd, &f.criteria.Since, "since", "only what ended (or began, where it has not ended) since "+momentsHelp)
	textFlag(cmd, &f.criteria.Until, "until", "only what ended (or began) until then")
	textFlag(cmd, &f.criteria.EventID, "event", "only the event that its sender gave this ID")
	textFlag(cmd, &f.criteria.Label, "label", "only events with this label: order=1042, or the value alone")
}

// queryOfFlags returns the query of the flags.
func (f *filter) queryOfFlags() (client.ExecutionQuery, error) {
	q := f.criteria
	q.Status = client.Status(strings.ReplaceAll(strings.ToUpper(f.status), "-", "_"))
	q.Outcome = client.Outcome(strings.ReplaceAll(strings.ToLower(f.outcome), "-", "_"))
	flags := []struct {
		name, given string
		value       string
		words       []string
	}{
		{"status", f.status, string(q.Status), statusNames()},
		{"outcome", f.outcome, string(q.Outcome), outcomeNames()},
		{"decision", q.Decision, q.Decision, decisionNames()},
	}
	for _, flag := range flags {
		if flag.given == "" || slices.Contains(flag.words, flag.value) {
			continue
		}
		advice := ""
		if _, err := strconv.Atoi(flag.given); err == nil {
			advice = "; what senders got is --decision, such as " + string(idem.DecisionLocked)
		}
		for _, other := range flags {
			if slices.Contains(other.words, strings.ToLower(flag.given)) {
				advice = "; did you mean --" + other.name + " " + strings.ToLower(flag.given) + "?"
				break
			}
		}
		return q, fmt.Errorf(
			"--%s %s: use %s%s", flag.name, cli.Plain(flag.given), strings.Join(flag.words, ", "), advice)
	}
	return q, nil
}

func statusNames() []string {
	var names []string
	for _, s := range client.Statuses {
		names = append(names, string(s))
	}
	return names
}

func outcomeNames() []string {
	return []string{string(client.Executed), string(client.NotExecuted), string(client.Unknown)}
}

func decisionNames() []string {
	var names []string
	for _, row := range idem.Decisions() {
		names = append(names, string(row.Decision))
	}
	return names
}

// eventOf returns the ID of an event, or the first half of its key if it was refused and has none.
func eventOf(x *client.Execution) string {
	if x.EventID == "" && x.Status == client.Refused {
		half, _, _ := strings.Cut(x.IdempotencyKey, "-")
		return half
	}
	return x.EventID
}

func newExecutionsFind(e *cli.Environment, r *Remote) *cobra.Command {
	return &cobra.Command{
		Use:   "find TEXT",
		Short: "find executions by anything in hand: event ID, label, execution ID, key, trace, workflow",
		Long: `Find executions by an event ID, its beginning or that of a part of it (GitHub's GUID), an execution ID or its beginning, an idempotency key or
its first half, a trace ID, a label (order:1042) or its value, a workflow or its beginning, or the last letters of one of the newest IDs. A
whole ID or key is shown alone, the last letters only if nothing else is found.
Parts of event IDs are found in any case. An event that was refused each time is shown as REFUSED. The exit code is 3 when nothing is found.`,
		Example: `  hooklock show evt_123
  hooklock show 0af7651916cd43dd8448eb211c80319c
  hooklock show stripe/acme`,
		Args: OneArg("TEXT"),
		RunE: r.Action(e, func(ctx context.Context, d *Desk, args []string) error {
			found, err := d.searchEvents(ctx, args[0])
			if err != nil {
				return err
			}
			return d.listHits(ctx, found).print(d)
		}),
	}
}

// listHits returns the list of all hits of a search.
func (d *Desk) listHits(ctx context.Context, found *hits) *listing[client.Execution] {
	q := found.all
	q.Limit = 0 // that of a page, and not of the list
	l := listExecutions(ctx, d, q)
	if found.complete {
		l.page = func(int, string) ([]client.Execution, string, error) { return found.events, "", nil }
	}
	return l
}

func newExecutionsAnswer(e *cli.Environment, r *Remote) *cobra.Command {
	return &cobra.Command{
		ValidArgsFunction: r.askFirst(e, knownExecutions),

		Use:   "answer ID",
		Short: "print the body of the answer that duplicates of the event get",
		Long: `Print the body of the upstream's answer as it is kept for duplicates of the event, byte for byte; -o json shows status and headers,
too. It needs a token with the scope bodies. The exit code is 3 where no answer is kept.`,
		Example: `  hooklock answer exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra`,
		Args:    OneArg("ID"),
		RunE: r.onExecution(e, func(ctx context.Context, d *Desk, id string) error {
			return printAnswer(d, func(a *client.KeptAnswer) error {
				_, err := d.environment.Stdout.Write(a.Body)
				return err
			})(d.KeptAnswer(ctx, id))
		}),
	}
}

// printHistory prints the attempts of an event, and its deliveries that were not executed.
func (d *Desk) printHistory(x *client.Execution) error {
	if len(x.Attempts) > 0 {
		fmt.Fprintln(d.environment.Stdout)
		t := d.newTable("ATTEMPT", "STATUS", "OUTCOME", "STARTED", "TOOK", "ANSWER", "DIFFERS", "TRACE", "WHY")
		t.Drop, t.Cut = []string{"TRACE", "TOOK", "ANSWER", "DIFFERS", "OUTCOME"}, map[string]int{"WHY": 16}
		for i := range x.Attempts {
			a := &x.Attempts[i]
			t.Add(a.ExecutionID, string(a.Status), string(a.Outcome), d.shown.Stamp(a.StartedAt.Time),
				tookText(a.StartedAt.Time, a.FinishedAt.Time), numberText(a.Answer),
				strings.Join(a.Differs, ", "), a.TraceID,
				d.reasonText(&client.Execution{Error: a.Error, AbortedBy: a.AbortedBy, AbortReason: a.AbortReason}))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if x.Released != nil {
		fmt.Fprintf(d.environment.Stdout, "\n%s: %s\n", d.shown.Stamp(x.Released.At.Time), cli.Plain(x.Released.Text()))
	}
	if x.Arrivals == nil {
		return nil
	}
	fmt.Fprintln(d.environment.Stdout)
	t := d.newTable("ARRIVED", "TOOK", "DECISION", "TOLD", "FROM", "EXECUTION", "DIFFERS", "TRACE", "BEHIND")
	t.Drop, t.Cut = []string{"TRACE", "DIFFERS", "FROM", "TOOK", "EXECUTION"}, map[string]int{"BEHIND": 16}
	arrivals := x.Arrivals.Newest
	if n := len(arrivals); n > 0 && arrivals[n-1].At.Time.After(x.Arrivals.First.At.Time) {
		arrivals = append(slices.Clone(arrivals), x.Arrivals.First)
	}
	for i := range arrivals {
		a := &arrivals[i]
		t.Add(d.shown.Stamp(a.At.Time), tookText(a.At.Time, a.AnsweredAt.Time), decisionText(a), numberText(a.Status),
			a.From,
			a.ExecutionID, strings.Join(a.Differs, ", "), a.TraceID, a.Behind.Text(d.shown.Stamp))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var counts []string
	for decision, n := range x.Arrivals.Counts {
		counts = append(counts, fmt.Sprintf("%d %s", n, cli.Plain(decision)))
	}
	slices.Sort(counts)
	fmt.Fprintln(d.environment.Stdout, "arrived with another decision than executed: "+strings.Join(counts, ", "))
	return nil
}

// decisionText returns the decision about a delivery, with what it would have been in mode enforce,
// and the ID of its own that a twin came with.
func decisionText(a *client.Arrival) string {
	text := a.Decision
	if a.Would != "" {
		text += " (would be " + a.Would + ")"
	}
	if a.EventID != "" { // a twin
		text += " (as " + a.EventID + ")"
	}
	return text
}

// numberText returns "" for 0.
func numberText[N int | int64](n N) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// headHappened is the head of a column.
const headHappened = "WHAT HAPPENED"

// asEvents sets the columns of l for readers: the event first, and those last that a narrow
// terminal leaves out.
func (d *Desk) asEvents(l *listing[client.Execution]) {
	now := time.Now()
	l.head = []string{d.shown.Head(now), "EVENT", "STATUS", headHappened, "WORKFLOW", "DURATION", "RUN"}
	l.drop, l.middle = []string{"RUN", "DURATION", "WORKFLOW"}, []string{"EVENT", "WORKFLOW"}
	l.cut = map[string]int{"EVENT": 17, headHappened: 20, "WORKFLOW": 12, "RUN": shortRun}
	l.row = func(x *client.Execution) []string {
		at := ""
		if t := cameAt(x); !t.IsZero() {
			at = d.shown.Clock(t, now)
		}
		return []string{at, story.Name(x), story.ShownStatus(x), story.Short(x, now), x.Workflow, runDuration(x, now),
			x.ExecutionID}
	}
}

// shortRun is the least width of an execution's ID: its workflow's part, and enough of its event's
// part to find it.
const shortRun = len(idPrefix) + 20 + len("…")

// cameAt returns when an event arrived, or when its newest delivery was refused.
func cameAt(x *client.Execution) time.Time {
	switch {
	case !x.StartedAt.IsZero():
		return x.StartedAt.Time
	case x.Parked != nil:
		return x.Parked.Since.Time
	case x.Status == client.Released && x.Released != nil:
		return x.Released.At.Time
	case x.Arrivals != nil && len(x.Arrivals.Newest) > 0:
		return x.Arrivals.Newest[0].At.Time
	}
	return time.Time{}
}

// runDuration returns how long an execution ran, or has been running, or what a refusal took; "" if
// there is none.
func runDuration(x *client.Execution, now time.Time) string {
	if took, known := story.Took(x); known {
		return cli.Span(took)
	}
	if x.Status == client.Refused || x.StartedAt.IsZero() || x.Parked != nil && x.Parked.Blocked != "" {
		return ""
	}
	return cli.Span(now.Sub(x.StartedAt.Time))
}
