package remote

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
)

// NewLocks is the command locks, with its subcommands.
func NewLocks(e *cli.Environment) *cobra.Command {
	r := Remote{more: []string{outputCSV}}
	cmd := &cobra.Command{
		Use: "locks", Aliases: []string{"lock"},
		Short: "see which workflows are locked, and take a lock away",
		Long: `See which workflows are locked, by which execution and for how long, and take a lock away from it.

STATE is running (a delivery is at the upstream), held (the lock outlives the answer, or belongs to a client of the lock API), cooling
(the execution has ended with an unknown outcome, and release_delay keeps the lock closed), parked (a parked event has the lock, and waits for
its next try), or blocked (it waits for a person); stale means that the owner is dead and the next one to come will take over. LEFT is the
time until the nearest end: upstream.timeout of a running delivery (a long answer that has begun may take longer), the hold's, max_duration,
release_delay.`,
		SuggestFor: []string{"release", "unlock"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && strings.Contains(args[0], "/") {
				return cli.Misuse(fmt.Errorf("to see one lock: %s",
					story.ShellLine("hooklock", "locks", "get", args[0])))
			}
			return Subcommand(cmd, args)
		},
	}
	r.Flags(cmd)
	addList(cmd, newLocksList(e, &r))
	cmd.AddCommand(newLocksGet(e, &r), newLocksSlots(e, &r), newLocksRelease(e, &r))
	return cmd
}

func newLocksList(e *cli.Environment, r *Remote) *cobra.Command {
	var flags client.LockQuery
	cmd := &cobra.Command{
		Use:   "list",
		Short: "list the locks that are taken",
		Long: "List the locks that are taken: state, age, time left, how many wait, and which event and execution " +
			"hold them.",
		Example: `  hooklock locks list
  hooklock locks list --prefix stripe/
  hooklock locks list -o json | jq -r '.locks[] | select(.isStale) | .workflow'`,
		Args: cli.NoArgs,
		RunE: r.Action(e, func(ctx context.Context, d *Desk, _ []string) error {
			q := flags
			l := &listing[client.Lock]{
				name: "locks", none: "no locks", limit: q.Limit, cursor: q.Cursor,
				head: []string{"WORKFLOW", "STATE", "AGE", "LEFT", "WAITING", "EVENT", "EXECUTION", "HOLDER"},
				row:  lockRow,
				drop: []string{"HOLDER", "AGE"}, cut: map[string]int{"WORKFLOW": 20, "EVENT": 12, "EXECUTION": 20},
				raw: (*client.Lock).RawJSON,
				csvHead: []string{"workflow", "state", "locked_at", "expires_at", "waiting", "event", "execution",
					"holder"}, csvRow: lockCSV,
				page: pageOf(&q.Limit, &q.Cursor, func() (*client.LockPage, error) { return d.LockPage(ctx, q) },
					func(p *client.LockPage) ([]client.Lock, string) { return p.Locks, p.NextCursor }),
			}
			if q.Prefix != "" {
				l.none += " with this --prefix"
			}
			return l.print(d)
		}),
	}
	cmd.Flags().StringVar(&flags.Prefix, "prefix", "", "only workflows that begin with this")
	listFlags(cmd, &flags.Limit, &flags.Cursor)
	r.watchFlag(cmd)
	return cmd
}

// The states of a lock. stateStale is added if its owner is dead.
const (
	stateRunning = "running"
	stateHeld    = "held"
	stateCooling = "cooling"
	stateParked  = string(client.ParkWaiting)
	stateBlocked = string(client.ParkBlocked)
	stateStale   = ",stale"
)

// lockState returns the state of a lock.
func lockState(l *client.Lock) string {
	state := stateRunning
	switch {
	case l.Cooling:
		state = stateCooling
	case l.Held:
		state = stateHeld
	case l.Parked != nil && l.Parked.Blocked != "":
		state = stateBlocked
	case l.Parked != nil:
		state = stateParked
	}
	if l.IsStale {
		state += stateStale
	}
	return state
}

// timeLeft returns the time until a lock ends unless it is renewed, or "" if it has no end.
func timeLeft(l *client.Lock) string {
	if l.ExpiresAt.IsZero() || l.ExpiresIn == nil {
		return ""
	}
	return cli.SpanSeconds(*l.ExpiresIn)
}

func lockRow(l *client.Lock) []string {
	return []string{l.Workflow, lockState(l), cli.SpanSeconds(l.HeldFor), timeLeft(l), strconv.Itoa(l.Waiting),
		l.EventID, l.ExecutionID, l.Holder}
}

// lockCSV returns the columns of a lock for a spreadsheet.
func lockCSV(l *client.Lock) []string {
	return []string{
		l.Workflow, lockState(l), story.CSVTime(l.LockedAt), story.CSVTime(l.ExpiresAt), strconv.Itoa(l.Waiting),
		l.EventID, l.ExecutionID, l.Holder,
	}
}

func newLocksSlots(e *cli.Environment, r *Remote) *cobra.Command {
	var flags client.LockQuery
	var waiting bool
	cmd := &cobra.Command{
		Use:   "slots",
		Short: "list the slots of limits that are taken",
		Long: `List the slots of limits that are taken, and the executions that have them. A limit is one of limits.shared, with what the delivery had in its name, or
workflow:NAME for the lock.limit of a route. OF is how many slots it has, as the replica knows it that is asked.
With --waiting those at the head of their queue that wait for a slot.`,
		Example: `  hooklock locks slots
  hooklock locks slots --waiting
  hooklock locks slots --prefix tenant/acme`,
		Args: cli.NoArgs,
		RunE: r.Action(e, func(ctx context.Context, d *Desk, _ []string) error {
			ask, none := d.SlotPage, "no slots are taken"
			if waiting {
				ask, none = d.TurnPage, "nothing waits for a slot"
			}
			q := flags
			l := &listing[client.Slot]{
				name: "slots", none: none, limit: q.Limit, cursor: q.Cursor,
				head: []string{"LIMIT", "SLOT", "OF", "WORKFLOW", "EXECUTION", "ROUTE"}, row: slotRow,
				drop: []string{"ROUTE"}, cut: map[string]int{"WORKFLOW": 20, "EXECUTION": 20},
				raw: (*client.Slot).RawJSON,
				page: pageOf(&q.Limit, &q.Cursor, func() (*client.SlotPage, error) { return ask(ctx, q) },
					func(p *client.SlotPage) ([]client.Slot, string) { return p.Slots, p.NextCursor }),
			}
			if q.Prefix != "" {
				l.none += " with this --prefix"
			}
			return l.print(d)
		}),
	}
	cmd.Flags().StringVar(&flags.Prefix, "prefix", "", "only limits that begin with this")
	cmd.Flags().BoolVar(&waiting, "waiting", false, "what waits for a slot, instead of what has one")
	listFlags(cmd, &flags.Limit, &flags.Cursor)
	r.watchFlag(cmd)
	return cmd
}

func slotRow(s *client.Slot) []string {
	number := strconv.Itoa(s.Number)
	if s.Number < 0 {
		number = "waits"
	}
	return []string{s.Limit, number, strconv.Itoa(s.Of), s.Workflow, s.ExecutionID, s.Route}
}

func newLocksGet(e *cli.Environment, r *Remote) *cobra.Command {
	var execution string
	cmd := &cobra.Command{
		ValidArgsFunction: r.askFirst(e, lockedWorkflows),

		Use:   "get WORKFLOW",
		Short: "show the lock of one workflow",
		Long: `Show the lock of one workflow. Where its route has a lock.limit above 1, that is how many slots are taken, by which executions, and the lock of
the oldest of them, or with --execution that of another one. The exit code is 3 when it is free.`,
		Example: `  hooklock locks get stripe/acme
  hooklock locks get stripe/acme -o json`,
		Args: OneArg("WORKFLOW"),
		RunE: r.Action(e, func(ctx context.Context, d *Desk, args []string) error {
			return printAnswer(d, d.printLock)(d.getLock(ctx, args[0], execution))
		}),
	}
	cmd.Flags().StringVar(&execution, "execution", "", "ID of an execution, where several have a lock")
	_ = cmd.RegisterFlagCompletionFunc("execution", r.completerOf(e, lockHolder)) // the flag is there
	r.watchFlag(cmd)
	return cmd
}

func (d *Desk) printLock(l *client.Lock) error {
	t := d.newTable()
	t.Add("workflow", l.Workflow)
	t.Add("state", lockState(l))
	if n := len(l.Executions); n > 0 {
		t.Add("slots", fmt.Sprintf("%d of %d taken, by %s", n, l.Of, strings.Join(l.Executions, ", ")))
	}
	if l.EventID != "" {
		t.Add("event", l.EventID)
	}
	t.Add("execution", l.ExecutionID)
	t.Add("holder", l.Holder)
	t.Add("token", strconv.FormatInt(l.Token, 10))
	t.Add("locked at", d.shown.Stamp(l.LockedAt.Time)+" ("+cli.SpanSeconds(l.HeldFor)+" ago)")
	if left := timeLeft(l); left != "" {
		t.Add("expires at", d.shown.Stamp(l.ExpiresAt.Time)+" (in "+left+")")
	}
	t.Add("waiting", strconv.Itoa(l.Waiting))
	return t.Flush()
}

func newLocksRelease(e *cli.Environment, r *Remote) *cobra.Command {
	var execution, reason string
	var yes bool
	cmd := &cobra.Command{
		ValidArgsFunction: r.askFirst(e, lockedWorkflows),

		Use:   "release WORKFLOW --execution ID --reason TEXT",
		Short: "take a lock away from the execution that holds it",
		Long: `Take a lock away from the execution that holds it. A running call is closed, its sender gets 503 lock_lost, and its record is
ABORTED with the reason. The upstream may still be busy with the closed call: "hooklock cancel" is the gentler way, which keeps
the lock until the call has ended.

On a terminal it shows the lock and asks, unless --yes is given. --execution names the holder as "hooklock locks get" shows it; a terminal may leave it
out. If another has the lock by now, nothing happens and the exit code is 4.`,
		Example: `  hooklock locks release stripe/acme --execution exec_7hq3p2k5wv6d4x3nbyc2zt5gj4m6s7ra --reason "stuck since the deploy"`,
		Args:    OneArg("WORKFLOW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ask := !yes && e.Asks()
			if !ask {
				if err := requireFlag(cmd, "execution", execution,
					"exec_…: the holder, as hooklock locks get shows it"); err != nil {
					return err
				}
			}
			if err := requireFlag(cmd, "reason", reason, `"stuck since the deploy"`); err != nil {
				return err
			}
			if ask {
				var err error
				if execution, err = r.confirmRelease(cmd.Context(), e, args[0], execution); err != nil {
					return err
				}
			}
			return r.run(cmd.Context(), e, func(ctx context.Context, d *Desk) error {
				return printChange(d, story.ShellLine("hooklock", "locks", "get", args[0]),
					func(*client.Execution) string {
						return fmt.Sprintf("%s is released; %s has lost it", args[0], execution)
					})(d.ForceRelease(ctx, args[0], execution, reason))
			})
		},
	}
	cmd.Flags().StringVar(&execution, "execution", "",
		"ID of the execution that holds the lock (required, but on a terminal)")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	_ = cmd.RegisterFlagCompletionFunc("execution", r.completerOf(e, lockHolder)) // the flag is there
	reasonFlag(cmd, &reason, "")
	return cmd
}

// errNotReleased is returned if the user has answered no.
var errNotReleased = errors.New("nothing was released")

// confirmRelease shows the lock of a workflow, or of one of its executions, asks, and returns the
// execution that holds it.
func (r *Remote) confirmRelease(ctx context.Context, e *cli.Environment, workflow, execution string) (holder string,
	err error) {
	err = r.run(ctx, e, func(ctx context.Context, d *Desk) error {
		l, err := d.getLock(ctx, workflow, execution)
		if err != nil {
			return err
		}
		holder = l.ExecutionID
		return d.printLock(l)
	})
	if err == nil && !e.Confirm("Another event of "+cli.Plain(workflow)+
		" can then run at the same time. Release the lock?") {
		err = errNotReleased
	}
	return holder, err
}

// getLock returns the lock of a workflow, or that of one of its executions.
func (d *Desk) getLock(ctx context.Context, workflow, execution string) (*client.Lock, error) {
	if execution == "" {
		return d.Lock(ctx, workflow)
	}
	return d.LockOf(ctx, workflow, execution)
}
