package remote

import (
	"context"
	"fmt"
	"maps"
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

// NewExecutions is the command executions: events, show and the actions on an event by their former
// names, which are not listed and still work.
func NewExecutions(e *cli.Environment) *cobra.Command {
	r := Remote{more: []string{outputCSV}}
	cmd := &cobra.Command{
		Use: "executions", Aliases: []string{"ex", "execution"}, Hidden: true,
		Short: "see what ran and what runs, cancel it, or let an event run again",
		Long: `The former names of commands, which go on working: list is "hooklock events", find and get are "hooklock show", and the others are
commands of the program itself, such as "hooklock cancel".`,
		Args: Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	r.Flags(cmd)
	cmd.AddCommand(newExecutionsList(e, &r), newExecutionsFind(e, &r), newExecutionsGet(e, &r),
		newExecutionsAnswer(e, &r), newExecutionsCancel(e, &r), newExecutionsForget(e, &r), newExecutionsErase(e, &r),
		newExecutionsRun(e, &r), newExecutionsSkip(e, &r), newExecutionsRerun(e, &r), newExecutionsRequest(e, &r))
	return cmd
}

func (d *Desk) executionRow(x *client.Execution, now time.Time) []string {
	age := ""
	if !x.StartedAt.IsZero() {
		age = cli.Span(now.Sub(x.StartedAt.Time))
	}
	return []string{
		x.ExecutionID, string(x.Status), string(x.Outcome), age, tookText(x.StartedAt.Time, x.FinishedAt.Time),
		strconv.Itoa(x.Attempt),
		strconv.FormatInt(x.Duplicates, 10), x.Workflow, eventOf(x), d.reasonText(x),
	}
}

// tookText returns how long something ran, or "" if it has not ended.
func tookText(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return ""
	}
	return cli.Span(to.Sub(from))
}

// reasonText returns the reason of a failure, of a cancel or of a refusal.
func (d *Desk) reasonText(x *client.Execution) string {
	switch {
	case !x.LostAt.IsZero() && x.Arrivals != nil && len(x.Arrivals.Newest) > 0:
		last := &x.Arrivals.Newest[0]
		return fmt.Sprintf("%s: %d at %s; it did not come again: %s", decisionText(last), last.Status,
			d.shown.Stamp(last.Answered()), story.SetForLost(idem.Decision(last.Decision)))
	case x.Error != nil && x.Error.Detail != "":
		return x.Error.Code + ": " + x.Error.Detail + x.LastFailed()
	case x.Error != nil:
		return x.Error.Code
	case x.AbortedBy != "" && x.AbortReason != "":
		return x.AbortedBy + ": " + x.AbortReason
	case x.Parked != nil && x.Parked.Blocked != "":
		return "blocked: " + x.Parked.Blocked + x.LastFailed()
	case x.Status == client.Released:
		return x.Released.Text()
	case x.Status == client.Refused && x.Arrivals != nil && len(x.Arrivals.Newest) > 0:
		last := &x.Arrivals.Newest[0]
		return strings.TrimSuffix(fmt.Sprintf("%s: %d at %s; %s", decisionText(last), last.Status,
			d.shown.Stamp(last.Answered()), last.Behind.Text(d.shown.Stamp)), "; ")
	}
	return x.AbortedBy
}

func newExecutionsGet(e *cli.Environment, r *Remote) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		ValidArgsFunction: r.askFirst(e, knownExecutions),

		Use:   "get ID",
		Short: "show one execution and all of its event, now or at its next change",
		Long: `Show one execution with its steps, every attempt of its event with what became of it, and how the event arrived besides: what was
refused or answered as a duplicate, the newest 16 of each and their counts. The beginning of the ID is enough where no other execution's begins
so. With --wait the answer comes when the execution changes, and at once when it has ended; when nothing changes in that time (at most 5m), it is
shown as it is. The exit code is 3 when there is no trace of it: it never ran, or its record has expired or was forgotten.`,
		Example: `  hooklock executions get exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra
  hooklock executions get exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra --wait 30s -o json`,
		Args: OneArg("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if wait < 0 {
				return cli.Misuse(fmt.Errorf("--wait %s: a time span is not negative", wait))
			}
			return r.onExecution(e, func(ctx context.Context, d *Desk, id string) error {
				x, err := d.AwaitExecution(ctx, id, wait)
				if err != nil {
					return err
				}
				return d.printExecution(ctx, x)
			})(cmd, args)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait so long for a change, e.g. 30s; at most 5m")
	NoFiles(cmd, "wait")
	r.watchFlag(cmd)
	return cmd
}

// printExecution prints an execution with all that is known of it.
func (d *Desk) printExecution(ctx context.Context, x *client.Execution) error {
	return d.printObject(x.RawJSON(), func() error { return d.showRows(x, d.lockText(x, d.lockOf(ctx, x))) })
}

// lockOf returns the lock of an execution, or of its workflow; nil = it is free, or not known.
func (d *Desk) lockOf(ctx context.Context, x *client.Execution) *client.Lock {
	l, err := d.LockOf(ctx, x.Workflow, x.ExecutionID)
	if err != nil {
		l, err = d.Lock(ctx, x.Workflow)
	}
	if err != nil {
		return nil
	}
	return l
}

// lockText says that the execution has the lock of its workflow, and until when, or which execution
// has the lock that it waits for. It returns "" if neither is known.
func (d *Desk) lockText(x *client.Execution, l *client.Lock) string {
	switch {
	case l == nil:
		return ""
	case l.ExecutionID == x.ExecutionID:
		text := lockState(l)
		if left := timeLeft(l); left != "" {
			text += ", until " + d.shown.Stamp(l.ExpiresAt.Time) + " (in " + left + ")"
		}
		return fmt.Sprintf("%s; waiting behind it: %d", text, l.Waiting)
	case x.Status == client.Pending:
		return fmt.Sprintf("%s has it; waiting: %d", l.ExecutionID, l.Waiting)
	}
	return ""
}

func (d *Desk) showRows(x *client.Execution, lock string) error {
	t := d.newTable()
	add := func(name, value string) {
		if value != "" {
			t.Add(name, value)
		}
	}
	add("execution", x.ExecutionID)
	add("status", string(x.Status))
	add("outcome", string(x.Outcome))
	add("workflow", x.Workflow)
	add("route", x.Route)
	add("event", x.EventID)
	for _, name := range slices.Sorted(maps.Keys(x.Labels)) {
		add("label "+name, x.Labels[name])
	}
	add("key", x.IdempotencyKey)
	add("fingerprint", x.Fingerprint)
	add("attempt", numberText(x.Attempt))
	add("token", numberText(x.Token))
	add("holder", x.Holder)
	add("lock", lock)
	if !x.StartedAt.IsZero() {
		add("started", d.shown.Stamp(x.StartedAt.Time)+" ("+cli.Span(time.Since(x.StartedAt.Time))+" ago)")
	}
	if !x.FinishedAt.IsZero() {
		add("finished", d.shown.Stamp(x.FinishedAt.Time)+" (it took "+tookText(x.StartedAt.Time, x.FinishedAt.Time)+")")
	}
	if x.Error != nil {
		add("error", d.reasonText(x))
	}
	switch {
	case x.AbortedAt.IsZero():
	case x.FinishedAt.IsZero():
		add("cancel asked", d.shown.Stamp(x.AbortedAt.Time)+" by "+d.reasonText(x))
	default:
		add("aborted", d.shown.Stamp(x.AbortedAt.Time)+" by "+d.reasonText(x))
	}
	if x.Final {
		add("final", "its event never runs again, unless this is forgotten")
	}
	add("superseded by", x.SupersededBy)
	if o := x.Order; o != nil {
		add("order", orderText(o))
	}
	if l := x.Latest; l != nil {
		add("latest", d.latestText(l))
	}
	if x.Response != nil {
		add("response", responseText(x.Response))
	}
	if x.Asked != nil {
		add("asked", x.Asked.Text()+", "+x.Asked.URL)
	}
	d.showParked(x, add)
	add("duplicates", strconv.FormatInt(x.Duplicates, 10))
	add("trace", x.TraceID)
	if err := t.Flush(); err != nil {
		return err
	}
	if len(x.Steps) > 0 {
		if err := d.printSteps(x.Steps); err != nil {
			return err
		}
	}
	return d.printHistory(x)
}

func orderText(o *client.Order) string {
	text := o.Position
	if o.Scope != "" {
		text += " in " + o.Scope
	}
	if o.Stale != "" {
		text += "; " + o.Stale + " older than " + o.Newest + ", which had gone through"
	}
	return text
}

func (d *Desk) latestText(l *client.Latest) string {
	text := fmt.Sprintf("a newer one would replace it; it has replaced %d", l.Replaced)
	if !l.NotBefore.IsZero() {
		text += ", and runs after " + d.shown.Stamp(l.NotBefore.Time) + " at the earliest"
	}
	return text
}

func responseText(r *client.Response) string {
	text := fmt.Sprintf("%d, %d bytes", r.Status, r.Bytes)
	if r.Kept {
		return text + "; duplicates get it"
	}
	return text + "; not kept for duplicates"
}

func (d *Desk) printSteps(steps []client.Step) error {
	fmt.Fprintln(d.environment.Stdout)
	t := d.newTable("STEP", "STATUS", "STARTED", "TOOK")
	t.Cut = map[string]int{"STEP": 12}
	for _, s := range steps {
		started := ""
		if !s.StartedAt.IsZero() {
			started = d.shown.Stamp(s.StartedAt.Time)
		}
		t.Add(s.Name, s.Status, started, tookText(s.StartedAt.Time, s.FinishedAt.Time))
	}
	return t.Flush()
}

func newExecutionsCancel(e *cli.Environment, r *Remote) *cobra.Command {
	var reason, only string
	var final bool
	cmd := &cobra.Command{
		ValidArgsFunction: r.askFirst(e, knownExecutions),

		Use:   "cancel ID --reason TEXT",
		Short: "stop an execution that waits, runs or is held",
		Long: `Stop an execution. One that waits is ABORTED at once and never reaches the upstream. One that runs has its upstream call closed, at
whichever replica it runs, and its sender gets 503 execution_aborted. One that is held learns it from its next guard or heartbeat.

The event may run again when its sender sends it again; with --final it never does. With --if-status nothing is done where the execution has moved on since
you looked: what waited may be at the upstream by now. The exit code is 4 when the execution had ended, or had moved on.`,
		Example: `  hooklock cancel exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra --reason "wrong account"
  hooklock cancel exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra --final --reason "refunded by hand"
  hooklock cancel exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra --if-status pending --reason "sent by mistake"`,
		Args: OneArg("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			status := client.Status(strings.ReplaceAll(strings.ToUpper(only), "-", "_"))
			if only != "" && !slices.Contains(activeStatuses, string(status)) {
				return cli.Misuse(fmt.Errorf("--if-status %s: use %s", cli.Plain(only),
					strings.Join(activeStatuses, ", ")))
			}
			return r.onExecution(e, func(ctx context.Context, d *Desk, id string) error {
				return printChange(d, story.ShellLine("hooklock", "show", id), cancelledText)(
					d.CancelIf(ctx, id, status, reason, final))
			})(cmd, args)
		},
	}
	cmd.Flags().BoolVar(&final, "final", false, "the event never runs again: its duplicates get 503 execution_aborted")
	textFlag(cmd, &only, "if-status", "only where it still has this status: "+strings.Join(activeStatuses, ", "),
		activeStatuses...)
	reasonFlag(cmd, &reason, `"wrong account"`)
	return cmd
}

// activeStatuses are the statuses before an end.
var activeStatuses = []string{string(client.Pending), string(client.Running), string(client.CancelRequested)}

func cancelledText(c *client.Cancelled) string {
	text := fmt.Sprintf("%s is %s", c.ExecutionID, c.Status)
	if !c.Status.Terminal() {
		how := toldText(&c.Execution)
		if _, said, held := strings.Cut(c.Message, "; the execution ends when "); held {
			how = "it ends when " + said
		}
		text += ": " + how
	}
	if c.Before {
		text += "; it had been requested before"
	}
	return text
}

// toldText says which process has been told to end an execution.
func toldText(x *client.Execution) string {
	if x.Holder == "" {
		return "its replica has been told to end it"
	}
	return replicaOf(x.Holder) + " has been told to end it"
}

// replicaOf returns the replica of a process: of HOST/PID/SESSION the first two parts.
func replicaOf(holder string) string {
	parts := strings.SplitN(holder, "/", 3)
	return strings.Join(parts[:min(len(parts), 2)], "/")
}

func newExecutionsForget(e *cli.Environment, r *Remote) *cobra.Command {
	var reason string
	var erase bool
	cmd := &cobra.Command{
		ValidArgsFunction: r.askFirst(e, knownExecutions),

		Use: "forget ID --reason TEXT", Aliases: []string{"allow"},
		Short: "drop the record of an ended execution, so that its event may run again",
		Long: `Drop the record of an ended execution: its event runs again when the sender sends it again, on every replica within 2 s. This is how an
event of unknown outcome is let through where the route says on_unknown: block, and how a redelivery from a sender's dashboard is made to run.
The exit code is 4 while the execution has not ended.`,
		Example: `  hooklock forget exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra --reason "not in the ledger of the bank, run it again"`,
		Args:    OneArg("ID"),
		RunE: r.onExecution(e, func(ctx context.Context, d *Desk, id string) error {
			forget, said := d.Forget, " is forgotten: its event may run again"
			if erase {
				forget, said = d.Erase, " is erased: its event may run again"
			}
			return printChange(d, story.ShellLine("hooklock", "show", id), func(*client.Execution) string {
				return id + said
			})(forget(ctx, id, reason))
		}),
	}
	cmd.Flags().BoolVar(&erase, "erase", false, "delete how it arrived, too, and nothing if kept requests cannot be")
	reasonFlag(cmd, &reason, `"run it again"`)
	return cmd
}

// newCommand returns a command of "executions", which gets its flags from the Remote.
type newCommand func(*cli.Environment, *Remote) *cobra.Command

// NewActions returns the actions on an event. Each has the name of its call in the API; its former
// name, and the same below "executions", go on working without being listed.
func NewActions(e *cli.Environment) []*cobra.Command {
	return slices.Concat(
		onTop(e, newExecutionsCancel, "cancel"),
		onTop(e, newExecutionsErase, "erase"),
		onTop(e, newExecutionsForget, "forget", "allow"),
		onTop(e, newExecutionsRerun, "rerun", "retry"),
		onTop(e, newExecutionsRun, "run", "try"),
		onTop(e, newExecutionsSkip, "skip"),
	)
}

// NewKept returns the commands that print what is stored of an event.
func NewKept(e *cli.Environment) []*cobra.Command {
	return slices.Concat(onTop(e, newExecutionsAnswer, "answer"), onTop(e, newExecutionsRequest, "request"))
}

// onTop returns a command of "executions" as one of the program, under each of the names. Only the
// first is listed.
func onTop(e *cli.Environment, makeCommand newCommand, names ...string) []*cobra.Command {
	var all []*cobra.Command
	for i, name := range names {
		var r Remote
		cmd := makeCommand(e, &r)
		_, arguments, _ := strings.Cut(cmd.Use, " ")
		cmd.Use, cmd.Aliases, cmd.Hidden = name+" "+arguments, nil, i > 0
		cmd.Example = strings.ReplaceAll(cmd.Example, "hooklock executions ", "hooklock ")
		if strings.Contains(arguments, "ID") {
			cmd.Long += "\n\nID is that of an event, a part of it between slashes, that of an execution, or its " +
				"beginning."
		}
		r.Flags(cmd)
		all = append(all, cmd)
	}
	return all
}
