package remote

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/idem"
)

// NewStatus is the command status.
func NewStatus(e *cli.Environment) *cobra.Command {
	var r Remote
	cmd := &cobra.Command{
		Use:   "status",
		Short: "see how a running hooklock is doing: session, etcd, upstream, configuration, and what runs and waits",
		Long: `See how a running hooklock is doing, by what it has seen itself: it asks no other process, and answers while etcd is away.

attention lists what a person has to look at, with the command that shows it. etcd and upstream say what came of the latest request: a member of
etcd is asked when the one before it fails. "running" and "waiting" are those of the process that is asked, "held" and "parked" those of all
replicas. The counts of routes are those of this process, of the last five minutes. Three count requests to the service, those of forwarded deliveries and of tries of parked events:

  SUCCEEDED  the service answered with a 2xx
  FAILED     the service answered with another status
  ERRORS     no whole answer came, the lock was lost, or the execution was cancelled

Four count deliveries by what was decided; with mode observe, by what would have been:

  PARKED     accepted, to run later
  COPIES     of an event that is settled or runs: answered without running
  LOCKED     another event of the workflow ran, or a limit had no slot
  REFUSED    mismatches, signatures, forms, events that are older, paused or over new_per_second, etcd away`,
		Example: `  hooklock status
  hooklock status -o json | jq -r '.config.refused.problems[]?'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.Run(cmd.Context(), e, func(ctx context.Context, d *Desk) error {
				s, err := d.Status(ctx)
				if err != nil {
					return err
				}
				return d.object(s.RawJSON(), func() error { return d.printStatus(s) })
			})
		},
	}
	r.Flags(cmd)
	r.watchFlag(cmd)
	return cmd
}

func (d *Desk) printStatus(s *client.ReplicaStatus) error {
	ago := func(t client.Time) string {
		if t.IsZero() {
			return ""
		}
		return cli.Span(s.At.Sub(t.Time))
	}
	t := d.table()
	t.Add("replica", s.Replica+", "+s.Version+", up "+ago(s.StartedAt))
	mood(t, "ready", s.NotReady == "", "yes", "no: "+s.NotReady)
	mood(t, "session", s.Session.Live, fmt.Sprintf("live, %s of %s left", cli.SpanSeconds(s.Session.Remaining), cli.SpanSeconds(s.Session.TTL)), "none: "+s.Session.Reason)
	for i := range s.Etcd.Members {
		contact(t, "etcd", &s.Etcd.Members[i], ago)
	}
	if s.Etcd.Space != "" {
		t.Add("", s.Etcd.Space)
	}
	contact(t, "upstream", &s.Upstream, ago)
	if s.UpstreamReuse.Setting != "" { // an older release does not say
		t.Add("", ReuseText(&s.UpstreamReuse, s.At))
	}
	t.Add("config", s.Config.File+" sha256:"+shortHash(s.Config.SHA256)+", loaded "+ago(s.Config.LoadedAt)+" ago")
	if refused := s.Config.Refused; refused != nil {
		mood(t, "", !s.Config.Stale, "one was refused "+ago(refused.At)+" ago:", "STALE: the changed file was refused "+ago(refused.At)+" ago:")
		for _, problem := range refused.Problems {
			t.Add("", "  "+problem)
		}
	}
	for i, text := range attention(s) {
		name := ""
		if i == 0 {
			name = "attention"
		}
		t.Add(name, text)
		t.Paint(cli.Bad)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return d.printWork(s, ago)
}

// attention returns what a person has to look at, beside what the other lines say, with the command that shows it.
func attention(s *client.ReplicaStatus) (all []string) {
	if n := s.Parked.Blocked; n > 0 {
		all = append(all, story.Count(n, "queue is blocked", "queues are blocked")+": hooklock queue")
	}
	if n := s.Parked.DeadLetters; n > 0 {
		all = append(all, story.Count(n, "dead letter", "dead letters")+": hooklock events --dead-letters")
	}
	for i := range s.Routes {
		r := &s.Routes[i]
		if r.Failed+r.Errors > 0 {
			all = append(all, fmt.Sprintf("%s: %d failed, %s: hooklock events --route %s --status FAILED", r.Route, r.Failed, story.Count(r.Errors, "error", "errors"), cli.Quoted(r.Route)))
		}
	}
	if n := len(s.Paused); n > 0 {
		all = append(all, story.Count(n, "pause", "pauses")+": hooklock pauses")
	}
	return all
}

// printWork shows what runs and waits, and what came to the routes.
func (d *Desk) printWork(s *client.ReplicaStatus, ago func(client.Time) string) error {
	fmt.Fprintln(d.e.Stdout)
	t := d.table("NOW", "COUNT", "OLDEST", "OF")
	t.Cut = map[string]int{"OF": 16}
	add := func(name string, c client.Crowd, more string) {
		t.Add(name, strconv.Itoa(c.Count), ago(c.OldestAt), more)
	}
	add("running", s.Running, "here")
	add("waiting", s.Waiting, "here")
	add("held", s.Held, "all replicas")
	parked := fmt.Sprintf("all replicas, %d bytes, %d blocked, %d dead letters", s.Parked.Bytes, s.Parked.Blocked, s.Parked.DeadLetters)
	add(string(idem.DecisionParked), client.Crowd{Count: s.Parked.Count, OldestAt: s.Parked.OldestAt}, parked)
	for _, n := range s.Parked.Unrouted {
		t.Add("no route", strconv.Itoa(n.Count), "", "accepted events of route "+n.Route+", which this replica does not have: none of them is tried here")
		t.Paint(cli.Bad)
	}
	for _, n := range s.Slots {
		t.Add("slots", strconv.Itoa(n.Taken), "", fmt.Sprintf("%s, here; %d wait for one", n.Limit, n.Waiting))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := d.printPaused(s, ago); err != nil || len(s.Routes) == 0 {
		return err
	}
	fmt.Fprintln(d.e.Stdout)
	t = d.table("ROUTE", "MODE", "A MINUTE", "SUCCEEDED", "FAILED", "ERRORS", "PARKED", "COPIES", "LOCKED", "REFUSED", "LAST")
	t.Drop, t.Cut = []string{"MODE", "A MINUTE"}, map[string]int{"ROUTE": 8}
	for i := range s.Routes {
		t.Add(routeRow(&s.Routes[i], s, ago)...)
	}
	return t.Flush()
}

// printPaused shows what is paused, if anything is.
func (d *Desk) printPaused(s *client.ReplicaStatus, ago func(client.Time) string) error {
	if len(s.Paused) == 0 {
		return nil
	}
	fmt.Fprintln(d.e.Stdout)
	t := d.table("PAUSED", "AGE", "LEFT", "PARKED", "BY", "REASON")
	t.Cut = map[string]int{"PAUSED": 12, "REASON": 12}
	for i := range s.Paused {
		p := &s.Paused[i]
		t.Add(p.Scope, ago(p.Since), pauseLeft(p.Until, s.At.Time), strconv.Itoa(p.Parked), p.By, p.Reason)
		t.Paint(cli.Bad)
	}
	return t.Flush()
}

func routeRow(r *client.RouteRate, s *client.ReplicaStatus, ago func(client.Time) string) []string {
	var all, parked, copies, locked, refused int64
	for decision, n := range r.Decisions {
		all += n
		switch row := idem.Decision(decision).Row(); {
		case row.Decision == idem.DecisionParked:
			parked += n
		case row.Class == idem.ClassDuplicate:
			copies += n
		case row.Class == idem.ClassOverlap:
			locked += n
		case row.Class == idem.ClassFailed, row.Class == idem.ClassBug: // an error
		case row.Own():
			refused += n
		}
	}
	over := min(s.RateSeconds, max(s.At.Sub(s.StartedAt.Time).Seconds(), 1))
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	last := "none in " + ago(s.StartedAt)
	if !r.LastAt.IsZero() {
		last = ago(r.LastAt) + " ago"
	}
	perMinute := strconv.FormatFloat(float64(all)*60/over, 'f', 1, 64)
	return []string{
		r.Route, r.Mode, perMinute, text(r.Succeeded), text(r.Failed), text(r.Errors), text(parked), text(copies), text(locked), text(refused), last,
	}
}

// mood adds a row: good in green if well, else bad in red.
func mood(t *cli.Table, name string, well bool, good, bad string) {
	if well {
		t.Add(name, good)
		t.Paint(cli.Good)
		return
	}
	t.Add(name, bad)
	t.Paint(cli.Bad)
}

// ReuseText says whether connections to the upstream are used again after a delivery.
func ReuseText(r *client.UpstreamReuse, now client.Time) string {
	switch {
	case r.Setting != "auto":
		return "connections behind a body: reuse_after_body is " + r.Setting
	case r.Ended != "":
		return fmt.Sprintf("connections behind a body: none is kept since %s, when the service %s behind an empty line", cli.Span(now.Sub(r.EndedAt.Time)), r.Ended)
	case r.Proven == 0:
		return "connections behind a body: none was kept yet"
	}
	return fmt.Sprintf("connections behind a body: kept, %d requests went over one again", r.Reused)
}

// contact adds a row with the state of a contact.
func contact(t *cli.Table, name string, c *client.Contact, ago func(client.Time) string) {
	answered, failed := "", ""
	if !c.AnsweredAt.IsZero() {
		answered = "answered " + ago(c.AnsweredAt) + " ago"
	}
	if !c.FailedAt.IsZero() {
		failed = "failed " + ago(c.FailedAt) + " ago: " + c.Failure
	}
	join := func(first, second string) string {
		if second == "" {
			return c.Address + " " + first
		}
		return c.Address + " " + first + "; " + second
	}
	if c.State == client.ContactNotAsked {
		t.Add(name, c.Address+" was not asked yet")
		return
	}
	mood(t, name, c.State == client.ContactAnswers, join(answered, failed), join(failed, answered))
}

// shortHash returns the beginning of a hash.
func shortHash(hash string) string { return hash[:min(len(hash), 12)] }

// Reload reloads the configuration of a running hooklock, and prints what changed.
func (r *Remote) Reload(ctx context.Context, e *cli.Environment) error {
	return r.Run(ctx, e, func(ctx context.Context, d *Desk) error {
		reloaded, err := d.Reload(ctx)
		if err != nil {
			return doubtful(err, "hooklock status")
		}
		text := "reloaded; nothing has changed"
		if len(reloaded.Changed) > 0 {
			text = "reloaded: " + strings.Join(reloaded.Changed, ", ")
		}
		return d.Done(reloaded.RawJSON(), text)
	})
}

// ShowRunning prints the configuration that a running hooklock has in force.
func (r *Remote) ShowRunning(ctx context.Context, e *cli.Environment, origin bool) error {
	return r.Run(ctx, e, func(ctx context.Context, d *Desk) error {
		running, err := d.Config(ctx, origin)
		if err != nil {
			return err
		}
		return d.object(running.RawJSON(), func() error {
			fmt.Fprintf(d.e.Stderr, "%s sha256:%s, loaded %s\n", cli.Plain(running.File), cli.Plain(running.SHA256), d.shown.Stamp(running.LoadedAt.Time))
			for line := range strings.Lines(running.YAML) {
				if _, err := fmt.Fprintln(d.e.Stdout, cli.Plain(strings.TrimSuffix(line, "\n"))); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// Unrouted warns of the events that a running hooklock has accepted and that no route of c would run. file is where c was read.
func (r *Remote) Unrouted(ctx context.Context, e *cli.Environment, file string, c *config.Config) (lost config.Problems, err error) {
	r.config, r.output = file, outputTable
	err = r.Run(ctx, e, func(ctx context.Context, d *Desk) error {
		now, err := d.Status(ctx)
		if err != nil {
			return err
		}
		for _, n := range now.Parked.Routes {
			runs := func(route config.Route) bool {
				return route.Name == n.Route || slices.Contains(route.FormerNames, n.Route)
			}
			if !slices.ContainsFunc(c.Routes, runs) {
				lost = append(lost, config.Problem{Text: wiring.NoRoute(n.Route, n.Count)})
			}
		}
		return nil
	})
	return lost, err
}
