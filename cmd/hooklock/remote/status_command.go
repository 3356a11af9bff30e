package remote

import (
	"bytes"
	"cmp"
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
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/idem"
)

// NewStatus is the command status.
func NewStatus(e *cli.Environment) *cobra.Command {
	var r Remote
	cmd := &cobra.Command{
		Use: "status", SuggestFor: []string{"attention", "replicas", "routes", "health", "info"},
		Short: "see how a running hooklock is doing: session, etcd, upstream, configuration, and what runs and waits",
		Long: `See how a running hooklock is doing, by what it has seen itself: it asks no other process, and answers while etcd is away.

attention lists what a person has to look at, with the command that shows it, but for what was looked at ("hooklock seen"). etcd and upstream say what came of the latest request: a member of
etcd is asked when the one before it fails. "running" and "waiting" are those of the process that is asked, "held" and "parked" those of all
replicas. The counts of routes are those of all replicas, of the last 24 hours, also from before a restart; while etcd is away they are those of this
process, of the last five minutes. Three count requests to the service, those of forwarded deliveries and of tries of parked events:

  SUCCEEDED  the service answered with a 2xx
  FAILED     the service answered with another status
  ERRORS     no whole answer came, the lock was lost, or the execution was cancelled

Five count deliveries by what was decided, unless mode observe forwarded them:

  PARKED      accepted, to run later
  DUPLICATES  of an event that is settled or runs: answered without running
  BUSY        another event of the workflow ran, or a limit had no slot
  REFUSED     mismatches, forms, events that are older, paused or over new_per_second, etcd away
  BAD-SIG     the signature was not valid (left out where there is none)

A MINUTE is of the last hour, DEAD is the dead letters that there are now, and P50 and P95 estimate how long the service took.`,
		Example: `  hooklock status
  hooklock status -o json | jq -r '.config.refused.problems[]?'`,
		Args: cli.NoArgs,
		RunE: r.Action(e, func(ctx context.Context, d *Desk, _ []string) error {
			s, err := d.Status(ctx)
			if err != nil {
				return err
			}
			counts, err := d.dayCounts(ctx, s)
			if err != nil {
				return err
			}
			needs, err := d.Attention(ctx)
			if unlessUnknown(err) != nil {
				return err
			}
			if err := d.nameListsThatFind(ctx, needs); err != nil {
				return err
			}
			replicas, err := d.Replicas(ctx)
			if unlessUnknown(err) != nil {
				return err
			}
			return d.printObject(withMore(s, counts, needs, replicas), func() error {
				return d.printStatus(s, counts, needs, replicas)
			})
		}),
	}
	r.Flags(cmd)
	r.watchFlag(cmd)
	return cmd
}

// dayCounts asks for the counts of the last day; nil where they are not known: etcd is away, or the
// server is older.
func (d *Desk) dayCounts(ctx context.Context, s *client.ReplicaStatus) (*client.CountList, error) {
	if etcdAway(s) {
		return nil, nil
	}
	counts, err := d.Counts(ctx, "24h", "15m")
	return counts, unlessUnknown(err)
}

func etcdAway(s *client.ReplicaStatus) bool {
	return len(s.Etcd.Members) > 0 && !slices.ContainsFunc(s.Etcd.Members, func(m client.Contact) bool {
		return m.State != client.ContactFails
	})
}

// unlessUnknown returns err, or nil if it says that the server does not know: etcd is away, or the
// server is older.
func unlessUnknown(err error) error {
	if client.IsCode(err, client.CodeStoreUnavailable, client.CodeNotFound, client.CodeBadRequest) {
		return nil
	}
	return err
}

// withMore returns the status as JSON, with the counts, what needs attention and the replicas,
// where they are known.
func withMore(s *client.ReplicaStatus, counts *client.CountList, needs *client.Attention,
	replicas *client.ReplicaList) []byte {
	status, is := bytes.CutSuffix(bytes.TrimSpace(s.RawJSON()), []byte("}"))
	if !is {
		return s.RawJSON()
	}
	if counts != nil {
		status = slices.Concat(status, []byte(`,"counts":`), counts.RawJSON())
	}
	if needs != nil {
		status = slices.Concat(status, []byte(`,"attention":`), needs.RawJSON())
	}
	if replicas != nil {
		status = slices.Concat(status, []byte(`,"replicas":`), replicas.RawJSON())
	}
	return append(status, '}')
}

func (d *Desk) printStatus(s *client.ReplicaStatus, counts *client.CountList, needs *client.Attention,
	replicas *client.ReplicaList) error {
	ago := func(t client.Time) string {
		if t.IsZero() {
			return ""
		}
		return cli.Span(s.At.Sub(t.Time))
	}
	t := d.newTable()
	t.Add("replica", s.Replica+", "+s.Version+", up "+ago(s.StartedAt))
	addMoodRow(t, "ready", s.NotReady == "", "yes", "no: "+s.NotReady)
	addMoodRow(t, "session", s.Session.Live, fmt.Sprintf("live, %s of %s left", cli.SpanSeconds(s.Session.Remaining),
		cli.SpanSeconds(s.Session.TTL)), "none: "+s.Session.Reason)
	for i := range s.Etcd.Members {
		addContactRow(t, "etcd", &s.Etcd.Members[i], ago)
	}
	if s.Etcd.Space != "" {
		t.Add("", s.Etcd.Space)
	}
	addContactRow(t, "upstream", &s.Upstream, ago)
	if s.UpstreamReuse.Setting != "" { // an older release does not say
		t.Add("", ReuseText(&s.UpstreamReuse, s.At))
	}
	t.Add("config", s.Config.File+" sha256:"+s.Config.SHA256[:min(len(s.Config.SHA256), 12)]+", loaded "+
		ago(s.Config.LoadedAt)+" ago")
	if refused := s.Config.Refused; refused != nil {
		addMoodRow(t, "", !s.Config.Stale, "one was refused "+ago(refused.At)+" ago:",
			"STALE: the changed file was refused "+
				ago(refused.At)+" ago:")
		for _, problem := range refused.Problems {
			t.Add("", "  "+problem)
		}
	}
	addTwins(t, s.Routes)
	d.printAttention(t, needs)
	if err := t.Flush(); err != nil {
		return err
	}
	if err := d.printReplicas(replicas, ago); err != nil {
		return err
	}
	return d.printWork(s, counts, ago)
}

// addTwins says how many twins this process has seen, by route.
func addTwins(t *cli.Table, routes []client.RouteRate) {
	name := "twins"
	for i := range routes {
		if n := routes[i].Twins; n > 0 {
			t.Add(name, routes[i].Route+": "+story.Count(n, "event", "events")+
				" of 24h had the body of another one; hooklock report names them")
			name = ""
		}
	}
}

// nameListsThatFind gives each route with failures the command that lists them. It asks first: a
// failed event may have run since, what left no execution is found by its decision alone, and what
// was accepted has not ended.
func (d *Desk) nameListsThatFind(ctx context.Context, needs *client.Attention) error {
	if needs == nil || len(needs.NotKnown) > 0 {
		return nil
	}
	for i := range needs.Items {
		item := &needs.Items[i]
		if item.Kind != client.AttentionRouteFails && item.Kind != client.AttentionSenderLimit {
			continue
		}
		item.Command = ""
		for _, list := range []struct {
			flags string
			q     client.ExecutionQuery
		}{
			{"--status FAILED", client.ExecutionQuery{Status: client.Failed}},
			{"--decision " + string(idem.DecisionUpstreamUnreachable),
				client.ExecutionQuery{Decision: string(idem.DecisionUpstreamUnreachable)}},
			{"--parked", client.ExecutionQuery{Parked: true}},
			{"--since 1h", client.ExecutionQuery{Since: "1h"}},
		} {
			list.q.Route, list.q.Limit = item.Route, 1
			page, err := d.ExecutionPage(ctx, list.q)
			if err != nil {
				return unlessUnknown(err)
			}
			if len(page.Executions) > 0 {
				item.Command = "hooklock events --route " + story.ShellWord(item.Route) + " " + list.flags
				break
			}
		}
	}
	return nil
}

// printAttention adds what needs a person, the worst first, with the command that shows it.
func (d *Desk) printAttention(t *cli.Table, needs *client.Attention) {
	name := "attention"
	add := func(text string, mood cli.Hue) {
		t.Add(name, text)
		t.Paint(mood)
		name = ""
	}
	if needs == nil {
		add("not known: the server is older", cli.Bad)
		return
	}
	for i := range needs.Items {
		item := &needs.Items[i]
		since := ""
		if !item.SinceAt.IsZero() {
			since = d.shown.Clock(item.SinceAt.Time, needs.At.Time)
		}
		mood := cli.Hue("")
		if item.Bad {
			mood = cli.Bad
		}
		add(item.Line(since), mood)
	}
	for _, why := range needs.NotKnown {
		add("not known: "+why, cli.Bad)
	}
	if needs.LookedAt > 0 {
		add(strconv.Itoa(needs.LookedAt)+" looked at: hooklock seen", "")
	}
	if needs.Limited {
		add("of the workflows of this token alone", "")
	}
}

// printReplicas shows the replicas, if there are several, or one has ended.
func (d *Desk) printReplicas(replicas *client.ReplicaList, ago func(client.Time) string) error {
	if replicas == nil || len(replicas.Replicas) < 2 {
		return nil
	}
	fmt.Fprintln(d.environment.Stdout)
	t := d.newTable("REPLICA", "STATE", "UP", "SEEN", "VERSION", "CONFIG", "DIFFERS IN")
	t.Drop, t.Cut = []string{"VERSION"}, map[string]int{"DIFFERS IN": 12}
	for i := range replicas.Replicas {
		r := &replicas.Replicas[i]
		state, up := r.State, ago(r.StartedAt)
		switch {
		case r.State != client.ReplicaLive:
			up = ""
		case r.NotReady != "":
			state = "not ready"
		}
		t.Add(r.Replica, state, up, ago(r.SeenAt)+" ago", r.Version, r.ConfigSHA256[:min(len(r.ConfigSHA256), 12)],
			strings.Join(r.Differs, ", "))
		if r.State == client.ReplicaGone || r.NotReady != "" || len(r.Differs) > 0 {
			t.Paint(cli.Bad)
		}
	}
	return t.Flush()
}

// printWork shows what runs and waits, and what came to the routes.
func (d *Desk) printWork(s *client.ReplicaStatus, counts *client.CountList, ago func(client.Time) string) error {
	fmt.Fprintln(d.environment.Stdout)
	t := d.newTable("NOW", "COUNT", "OLDEST", "OF")
	t.Cut = map[string]int{"OF": 16}
	add := func(name string, c client.Crowd, more string) {
		t.Add(name, strconv.Itoa(c.Count), ago(c.OldestAt), more)
	}
	add("running", s.Running, "here")
	add("waiting", s.Waiting, "here")
	add("held", s.Held, "all replicas")
	parked := fmt.Sprintf("all replicas, %d bytes, %d blocked, %d dead letters", s.Parked.Bytes, s.Parked.Blocked,
		s.Parked.DeadLetters)
	add(string(idem.DecisionParked), client.Crowd{Count: s.Parked.Count, OldestAt: s.Parked.OldestAt}, parked)
	for _, n := range s.Parked.Unrouted {
		t.Add("no route", strconv.Itoa(n.Count), "", "accepted events of route "+n.Route+
			", which this replica does not have: none of them is tried here")
		t.Paint(cli.Bad)
	}
	for _, n := range s.Slots {
		t.Add("slots", strconv.Itoa(n.Taken), "", fmt.Sprintf("%s, here; %d wait for one", n.Limit, n.Waiting))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := d.printPaused(s, ago); err != nil {
		return err
	}
	if counts == nil {
		counts = recentCounts(s)
	}
	return d.printCounts(s, counts, ago)
}

// printPaused shows what is paused, if anything is.
func (d *Desk) printPaused(s *client.ReplicaStatus, ago func(client.Time) string) error {
	if len(s.Paused) == 0 {
		return nil
	}
	fmt.Fprintln(d.environment.Stdout)
	t := d.newTable("PAUSED", "AGE", "LEFT", "PARKED", "BY", "REASON")
	t.Cut = map[string]int{"PAUSED": 12, "REASON": 12}
	for i := range s.Paused {
		p := &s.Paused[i]
		t.Add(p.Scope, ago(p.Since), pauseLeft(p.Until, s.At.Time), strconv.Itoa(p.Parked), p.By, p.Reason)
		t.Paint(cli.Bad)
	}
	return t.Flush()
}

// recentCounts returns the counts of the process that was asked, of its last minutes.
func recentCounts(s *client.ReplicaStatus) *client.CountList {
	recent := &client.CountList{Since: client.Time{Time: s.At.Add(-time.Duration(s.RateSeconds) * time.Second)},
		Until: s.At}
	if recent.Since.Before(s.StartedAt.Time) {
		recent.Since = s.StartedAt
	}
	for i := range s.Routes {
		r := &s.Routes[i]
		n := client.Counts{Succeeded: r.Succeeded, Failed: r.Failed, Errors: r.Errors}
		for decision, times := range r.Decisions {
			n.Deliveries += times
			switch row := idem.Decision(decision).Row(); {
			case row.Decision == idem.DecisionParked:
				n.Parked += times
			case row.Class == idem.ClassDuplicate:
				n.Duplicates += times
			case row.Class == idem.ClassOverlap:
				n.Busy += times
			case row.Class == idem.ClassForged:
				n.BadSignatures += times
			case row.Class == idem.ClassFailed, row.Class == idem.ClassBug: // an error
			case row.Own():
				n.Refused += times
			}
		}
		perMinute := float64(n.Deliveries) / max(recent.Until.Sub(recent.Since.Time).Minutes(), 1.0/60)
		recent.Routes = append(recent.Routes, client.RouteCounts{Route: r.Route, Total: n, LastAt: r.LastAt,
			PerMinute: perMinute})
	}
	return recent
}

// printCounts shows what was counted of the routes, those of the configuration first.
func (d *Desk) printCounts(s *client.ReplicaStatus, counts *client.CountList, ago func(client.Time) string) error {
	if len(counts.Routes) == 0 {
		return nil
	}
	fmt.Fprintln(d.environment.Stdout)
	title := "last 24h, all replicas"
	if counts.RawJSON() == nil {
		title = "last " + lookbackText(counts) + ", this replica alone: those of all are not known"
	}
	fmt.Fprintln(d.environment.Stdout, title)
	forged := slices.ContainsFunc(counts.Routes, func(r client.RouteCounts) bool { return r.Total.BadSignatures > 0 })
	head := []string{"ROUTE", "MODE", "A MINUTE", "SUCCEEDED", "FAILED", "ERRORS", "PARKED", "DUPLICATES",
		"BUSY", "REFUSED", "DEAD", "P50", "P95"}
	if forged {
		head = append(head, "BAD-SIG")
	}
	t := d.newTable(append(head, "LAST")...)
	t.Drop, t.Cut = []string{"P50", "P95", "MODE", "A MINUTE", "DEAD", "BAD-SIG", "BUSY", "REFUSED"},
		map[string]int{"ROUTE": 8}
	place := func(name string) int {
		return slices.IndexFunc(s.Routes, func(r client.RouteRate) bool { return r.Route == name })
	}
	all := slices.Clone(counts.Routes)
	slices.SortStableFunc(all, func(a, b client.RouteCounts) int { return cmp.Compare(uint(place(a.Route)), uint(place(b.Route))) }) //nolint:gosec // -1 is to be last
	for i := range all {
		mode := ""
		if at := place(all[i].Route); at >= 0 {
			mode = s.Routes[at].Mode
		}
		letters := 0
		if at := slices.IndexFunc(s.Parked.DeadLetterRoutes, func(n client.RouteCount) bool {
			return n.Route == all[i].Route
		}); at >= 0 {
			letters = s.Parked.DeadLetterRoutes[at].Count
		}
		row := countsRow(&all[i], mode, letters)
		if forged {
			row = append(row, strconv.FormatInt(all[i].Total.BadSignatures, 10))
		}
		last := "none in " + lookbackText(counts)
		if !all[i].LastAt.IsZero() {
			last = ago(all[i].LastAt) + " ago"
		}
		t.Add(append(row, last)...)
	}
	return t.Flush()
}

// lookbackText returns the time that counts are of.
func lookbackText(counts *client.CountList) string {
	if d := counts.Until.Sub(counts.Since.Time); d < 24*time.Hour {
		return cli.Span(d)
	}
	return "24h"
}

// countsRow returns the row of a route, which has so many dead letters now, up to its latencies.
func countsRow(r *client.RouteCounts, mode string, letters int) []string {
	took := func(seconds float64) string {
		if seconds == 0 {
			return ""
		}
		return cli.Span(story.Estimate(seconds))
	}
	row := []string{r.Route, mode, strconv.FormatFloat(r.PerMinute, 'f', 1, 64)}
	n := &r.Total
	for _, number := range []int64{n.Succeeded, n.Failed, n.Errors, n.Parked, n.Duplicates, n.Busy,
		n.Refused, int64(letters)} {
		row = append(row, strconv.FormatInt(number, 10))
	}
	return append(row, took(r.P50Seconds), took(r.P95Seconds))
}

// addMoodRow adds a row: good in green if well, else bad in red.
func addMoodRow(t *cli.Table, name string, well bool, good, bad string) {
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
	again := fmt.Sprintf("; %d requests went over one again", r.Reused)
	switch {
	case r.Ended != "":
		return fmt.Sprintf("connections behind a body: none is kept since %s, when the service %s",
			cli.Span(now.Sub(r.EndedAt.Time)), r.Ended)
	case r.RestsUntil.After(now.Time):
		return fmt.Sprintf("connections behind a body: none is kept for %s, because the service closed one with a "+
			"request on its way", cli.Span(r.RestsUntil.Sub(now.Time)))
	case r.Setting != "auto":
		return "connections behind a body: reuse_after_body is " + r.Setting + again
	case r.Known != "":
		return "connections behind a body: kept, " + r.Known + again
	case r.Server != "":
		return fmt.Sprintf("connections behind a body: none is kept, nothing is known of a service that says %q",
			r.Server)
	}
	return "connections behind a body: none is kept, the service has not said what it is"
}

// addContactRow adds a row with the state of a contact.
func addContactRow(t *cli.Table, name string, c *client.Contact, ago func(client.Time) string) {
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
	addMoodRow(t, name, c.State == client.ContactAnswers, join(answered, failed), join(failed, answered))
}

// Reload reloads the configuration of a running hooklock, and prints what changed.
func (r *Remote) Reload(ctx context.Context, e *cli.Environment) error {
	return r.run(ctx, e, func(ctx context.Context, d *Desk) error {
		return printChange(d, "hooklock status", func(reloaded *client.Reloaded) string {
			if len(reloaded.Changed) == 0 {
				return "reloaded; nothing has changed"
			}
			return "reloaded: " + strings.Join(reloaded.Changed, ", ")
		})(d.Reload(ctx))
	})
}

// ShowRunning prints the configuration that a running hooklock has in force.
func (r *Remote) ShowRunning(ctx context.Context, e *cli.Environment, origin bool) error {
	return r.run(ctx, e, func(ctx context.Context, d *Desk) error {
		return printAnswer(d, func(running *client.RunningConfig) error {
			fmt.Fprintf(d.environment.Stderr, "%s sha256:%s, loaded %s\n", cli.Plain(running.File),
				cli.Plain(running.SHA256),
				d.shown.Stamp(running.LoadedAt.Time))
			for line := range strings.Lines(running.YAML) {
				if _, err := fmt.Fprintln(d.environment.Stdout, cli.Plain(strings.TrimSuffix(line, "\n"))); err != nil {
					return err
				}
			}
			return nil
		})(d.Config(ctx, origin))
	})
}

// WarnUnrouted warns of the events that a running hooklock has accepted and that no route of c
// would run. file is where c was read.
func (r *Remote) WarnUnrouted(ctx context.Context, e *cli.Environment, file string,
	c *config.Config) (lost config.Problems,
	err error) {
	r.config, r.output = file, outputTable
	err = r.run(ctx, e, func(ctx context.Context, d *Desk) error {
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
