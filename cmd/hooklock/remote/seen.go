package remote

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/admin/story"
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

KIND is one of dead_letters, blocked, unknown (outcomes), reused (event IDs), lost (events), bad_signatures, silent (routes), changed (duplicates that
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
				if err := needed(cmd, "reason", reason, `"TICKET-42"`); err != nil {
					return err
				}
			}
			return r.run(cmd.Context(), e, func(ctx context.Context, d *Desk) error {
				switch {
				case len(args) == 0:
					return d.listSeen(ctx)
				case undo:
					return d.unmark(ctx, args[0], reason)
				}
				d.moments(&until)
				return d.mark(ctx, args[0], until, reason)
			})
		},
	}
	r.Flags(cmd)
	textFlag(cmd, &reason, "reason", "why, for the audit log (required, but with --undo)")
	textFlag(cmd, &until, "until", "what happened up to "+momentsHelp+" (default: now)")
	cmd.Flags().BoolVar(&undo, "undo", false, "remove the mark")
	cmd.ValidArgsFunction = cobra.FixedCompletions(kindCompletions(), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)
	return cmd
}

func kindCompletions() (all []cobra.Completion) {
	for _, kind := range idem.ConcernKind("").Choices() {
		all = append(all, kind+":")
	}
	return all
}

func (d *Desk) mark(ctx context.Context, concern, until, reason string) error {
	m, err := d.MarkSeen(ctx, concern, until, reason)
	if err != nil {
		return doubtful(err, "hooklock seen")
	}
	return d.Done(m.RawJSON(), m.Concern+" is marked as looked at until "+d.shown.Stamp(m.Until.Time))
}

func (d *Desk) unmark(ctx context.Context, concern, reason string) error {
	m, err := d.UnmarkSeen(ctx, concern, reason)
	if err != nil {
		return doubtful(err, "hooklock seen")
	}
	return d.Done(m.RawJSON(), m.Concern+" needs attention again; "+m.By+" had looked at it: "+m.Reason)
}

func (d *Desk) listSeen(ctx context.Context) error {
	l, err := d.Seen(ctx)
	if err != nil {
		return err
	}
	return d.object(l.RawJSON(), func() error { return d.printSeen(l, time.Now()) })
}

func (d *Desk) printSeen(l *client.SeenList, now time.Time) error {
	if len(l.Seen) == 0 {
		fmt.Fprintln(d.e.Stderr, "nothing is marked as looked at")
		return nil
	}
	t := d.table("SEEN", "UNTIL", "AGE", "BY", "REASON")
	t.Drop, t.Cut = []string{"AGE", "BY"}, map[string]int{"SEEN": 12, "REASON": 12}
	for i := range l.Seen {
		m := &l.Seen[i]
		t.Add(m.Concern, d.shown.Stamp(m.Until.Time), cli.Span(now.Sub(m.At.Time)), m.By, m.Reason)
	}
	return t.Flush()
}

// leaveOutSeen returns how many blocked queues and dead letters of a status were looked at: none that cannot be told.
func (d *Desk) leaveOutSeen(ctx context.Context, s *client.ReplicaStatus) (seen seenCounts, err error) {
	if etcdAway(s) {
		return seen, nil
	}
	lost, err := d.ExecutionPage(ctx, client.ExecutionQuery{Lost: true, Since: lostSince, Unseen: string(idem.ConcernLost), Limit: mostOnAPage})
	if err != nil {
		return seen, unlessUnknown(err)
	}
	seen.lost, seen.moreLost = lost.Executions, lost.NextCursor != ""
	marks, err := d.Seen(ctx)
	if err != nil {
		return seen, unlessUnknown(err)
	}
	seen.marks = marks.Seen
	for _, of := range []struct {
		kind  idem.ConcernKind
		state client.ParkState
		n     int
		seen  *int
	}{{idem.ConcernBlocked, client.ParkBlocked, s.Parked.Blocked, &seen.blocked}, {idem.ConcernDeadLetters, client.ParkDeadLetter, s.Parked.DeadLetters, &seen.letters}} {
		if of.n == 0 || len(marks.Seen) == 0 {
			continue
		}
		page, err := d.ExecutionPage(ctx, client.ExecutionQuery{Parked: true, State: of.state, Unseen: string(of.kind), Limit: mostOnAPage})
		if err != nil {
			return seen, unlessUnknown(err)
		}
		if page.NextCursor == "" {
			*of.seen = max(0, of.n-len(page.Executions))
		}
	}
	return seen, nil
}

// seenCounts is how much was looked at, and what is marked.
type seenCounts struct {
	blocked, letters int
	marks            []client.SeenMark
	lost             []client.Execution // that were not looked at, of lostSince
	moreLost         bool
}

// lostSince is for how long a lost event needs attention.
const lostSince = "24h"

// covers reports whether what happened on a route at that time was looked at.
func (s *seenCounts) covers(kind idem.ConcernKind, route string, at time.Time) bool {
	return story.Looked(s.marks, idem.Concern{Kind: kind, Route: route}, at)
}
