package attention

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/story"
	"hooklock/idem"
)

// ofReplicas returns replicas that are gone, and configurations that differ or are not in force.
func (in *Input) ofReplicas() (all []client.AttentionItem) {
	replaced := in.replacedReplicas()
	for i := range in.Replicas {
		r := &in.Replicas[i]
		switch r.State() {
		case client.ReplicaGone:
			if in.Now.Sub(r.At) > goneAfter && !replaced[r] {
				all = append(all, client.AttentionItem{
					ID: client.AttentionReplicaGone + ":" + r.Writer, Kind: client.AttentionReplicaGone, Count: 1,
					Text:    "replica " + r.Replica + " is gone",
					Cause:   "it has ended without stopping",
					Next:    "what it ran is taken over, or its outcome is unknown",
					SinceAt: timeAt(r.At), LatestAt: timeAt(r.At), Command: "hooklock status",
				})
			}
		case client.ReplicaLive:
			if len(r.Config.Refused) > 0 {
				all = append(all, client.AttentionItem{
					ID: client.AttentionConfigRefused + ":" + r.Writer, Kind: client.AttentionConfigRefused, Count: 1,
					Text:  "the changed configuration of " + r.Replica + " is not in force",
					Cause: strings.Join(r.Config.Refused, "; "),
					Next:  "correct " + r.Config.File, Command: "hooklock status",
				})
			}
		}
	}
	if item, differ := in.ofConfigurations(); differ {
		all = append(all, item)
	}
	return all
}

// replacedReplicas returns the replicas that have ended and were started again, as by a supervisor:
// one that starts replaces the one that ended last on its host, and no other.
func (in *Input) replacedReplicas() map[*Replica]bool {
	hostOf := func(r *Replica) string {
		host, _, _ := strings.Cut(r.Replica, "/")
		return host
	}
	var ended, all []*Replica
	for i := range in.Replicas {
		r := &in.Replicas[i]
		if all = append(all, r); r.State() != client.ReplicaLive {
			ended = append(ended, r)
		}
	}
	slices.SortFunc(all, func(a, b *Replica) int { return a.StartedAt.Compare(b.StartedAt) })
	slices.SortFunc(ended, func(a, b *Replica) int { return b.At.Compare(a.At) })
	found := map[*Replica]bool{}
	for _, started := range all {
		if i := slices.IndexFunc(ended, func(before *Replica) bool {
			return !found[before] && before != started && hostOf(before) == hostOf(started) &&
				!started.StartedAt.Before(before.At.Truncate(time.Second)) // as StartedAt is known
		}); i >= 0 {
			found[ended[i]] = true
		}
	}
	return found
}

// ofConfigurations returns the item of replicas whose configurations differ, with what differs.
func (in *Input) ofConfigurations() (item client.AttentionItem, differ bool) {
	names, parts := map[string][]string{}, map[string]bool{}
	var first map[string]string
	for i := range in.Replicas {
		r := &in.Replicas[i]
		if r.State() != client.ReplicaLive {
			continue
		}
		if first == nil {
			first = r.Config.Parts
		}
		for _, part := range differentParts(first, r.Config.Parts) {
			parts[part] = true
		}
		var key strings.Builder
		for _, part := range slices.Sorted(maps.Keys(r.Config.Parts)) {
			key.WriteString(part + "=" + r.Config.Parts[part] + "\n")
		}
		names[key.String()] = append(names[key.String()], r.Replica)
	}
	if len(names) < 2 {
		return item, false
	}
	var groups []string
	for _, some := range names {
		slices.Sort(some)
		groups = append(groups, strings.Join(some, ", "))
	}
	slices.Sort(groups)
	return client.AttentionItem{
		ID: client.AttentionConfigDiffers, Kind: client.AttentionConfigDiffers, Count: len(names),
		Text: fmt.Sprintf("replicas run %d different configurations", len(names)),
		Cause: "they differ in " + strings.Join(slices.Sorted(maps.Keys(parts)), ", ") + ": " +
			strings.Join(groups, " | "),
		Next: "give all the same file, then reload or restart", Command: "hooklock status",
	}, true
}

// ofQueues returns the locks behind which events wait for long, by route and state.
func (in *Input) ofQueues() []client.AttentionItem {
	var all groups
	for i := range in.Queues {
		q := &in.Queues[i]
		if q.Parked != nil && q.Parked.Blocked != "" {
			continue // the blocked execution is found
		}
		state := stateOf(&q.Lock)
		one := all.groupOf(client.AttentionItem{
			ID: client.AttentionHeld + ":" + q.Route + ":" + state, Kind: client.AttentionHeld, Bad: true,
			Route: q.Route, Workflow: q.Workflow, ExecutionID: q.ExecutionID,
			Query: map[string]string{"route": q.Route, "status": string(client.Pending)}, Command: "hooklock queue",
			Next: "complete, cancel or release it",
		})
		one.add(q.Workflow, q.Since)
		one.LatestAt = client.Time{}
		one.waiting += q.Waiting
		one.state = state
	}
	return all.allItems(func(one *group) {
		what := "workflow " + one.Workflow + " " + one.state
		if one.Count > 1 {
			what = strconv.Itoa(one.Count) + " workflows of " + cmp.Or(one.Route, "the lock API") + ": each " +
				one.state
		}
		one.Text = what + ", " + story.Count(one.waiting, "event waits", "events wait")
		one.Cause = "the first has waited for " + story.Span(in.Now.Sub(one.SinceAt.Time).Truncate(time.Minute))
	})
}

// stateOf says how a lock is.
func stateOf(l *client.Lock) string {
	switch {
	case l.Cooling:
		return "stays closed after an unknown outcome"
	case l.Held:
		return "is held"
	case l.Parked != nil:
		return "waits for its next try"
	}
	return "runs"
}

// group is equal things, which become one item.
type group struct {
	client.AttentionItem
	waiting int    // events behind its locks
	state   string // of its locks
	said    map[string]int
}

// groups are in the order in which their first thing was added.
type groups []*group

// groupOf returns the group of an item, by its ID.
func (g *groups) groupOf(item client.AttentionItem) *group {
	if at := slices.IndexFunc(*g, func(one *group) bool { return one.ID == item.ID }); at >= 0 {
		return (*g)[at]
	}
	one := &group{AttentionItem: item, said: map[string]int{}}
	*g = append(*g, one)
	return one
}

// add adds a thing of a workflow, which happened at that time.
func (g *group) add(workflow string, happened time.Time) {
	if g.Count++; g.Count > 1 {
		g.ExecutionID = ""
	}
	if g.Workflow != workflow {
		g.Workflow = ""
	}
	if g.SinceAt.IsZero() || happened.Before(g.SinceAt.Time) {
		g.SinceAt.Time = happened
	}
	if happened.After(g.LatestAt.Time) {
		g.LatestAt.Time = happened
	}
}

// allItems returns the items, after finish has completed each.
func (g *groups) allItems(finish func(*group)) (all []client.AttentionItem) {
	for _, one := range *g {
		finish(one)
		all = append(all, one.AttentionItem)
	}
	return all
}

// ofCounts returns what the counts of all replicas say: bad signatures, silence, duplicates that
// were other requests.
func (in *Input) ofCounts() (all []client.AttentionItem) {
	for i := range in.Lately.Routes {
		r := &in.Lately.Routes[i]
		var n int64
		var first client.Time
		for _, step := range r.Steps {
			if step.Counts.BadSignatures == 0 || step.At.Add(time.Minute).Before(in.Now.Add(-spikeTime)) ||
				story.Looked(in.Acknowledgements, idem.Concern{Kind: idem.ConcernBadSignatures, Route: r.Route},
					step.At.Time) {
				continue
			}
			if n += step.Counts.BadSignatures; first.IsZero() {
				first = step.At
			}
		}
		if n >= spike {
			all = append(all, client.AttentionItem{
				ID: client.AttentionBadSignatures + ":" + r.Route, Kind: client.AttentionBadSignatures, Route: r.Route,
				Count:   int(n),
				Text:    fmt.Sprintf("%d bad signatures on %s in %s", n, r.Route, story.Span(spikeTime)),
				Cause:   "a changed secret, or a stranger",
				SinceAt: first, LatestAt: client.Time{Time: in.Now},
				Command: story.ShellLine("hooklock", "signatures", "--route", r.Route),
			})
		}
	}
	for i := range in.Day.Routes {
		r := &in.Day.Routes[i]
		known := slices.ContainsFunc(in.Rules, func(rules client.RouteRules) bool { return rules.Route == r.Route })
		if known && !r.LastAt.IsZero() && in.Now.Sub(r.LastAt.Time) > silentAfter &&
			!story.Looked(in.Acknowledgements, idem.Concern{Kind: idem.ConcernSilent, Route: r.Route}, r.LastAt.Time) {
			all = append(all, client.AttentionItem{
				ID: client.AttentionSilent + ":" + r.Route, Kind: client.AttentionSilent, Route: r.Route, Count: 1,
				Text: r.Route + " is silent: no delivery for an hour, after earlier ones",
				Next: "look at the sender whether it has disabled this endpoint", SinceAt: r.LastAt, LatestAt: r.LastAt,
			})
		}
	}
	for _, c := range story.ChangedRoutes(&in.Status, &in.Day, in.Acknowledgements) {
		all = append(all, client.AttentionItem{
			ID: client.AttentionChanged + ":" + c.Route, Kind: client.AttentionChanged, Route: c.Route,
			Count: int(c.Changed), Text: c.Text(),
			Cause: "they never ran: if they are other events, correct event_id", LatestAt: client.Time{Time: in.Now},
			Command: "hooklock report --examples",
		})
	}
	return all
}

// kindOfFound is how executions of one kind are told.
type kindOfFound struct {
	bad        bool
	one, many  string
	next       string
	query      map[string]string
	command    []string
	needsCause bool
}

func kindsOfFound() map[string]kindOfFound {
	parked := func(state client.ParkState) map[string]string {
		return map[string]string{"parked": "true", "state": string(state)}
	}
	return map[string]kindOfFound{
		client.AttentionDeadLetters: {
			one: "dead letter", many: "dead letters",
			next:    "rerun when repaired",
			query:   parked(client.ParkDeadLetter),
			command: []string{"--dead-letters"}, needsCause: true,
		},
		client.AttentionBlocked: {
			bad: true, one: "blocked queue", many: "blocked queues",
			next: "run or skip it", query: parked(client.ParkBlocked),
			command: []string{"--blocked"}, needsCause: true,
		},
		client.AttentionUnknown: {
			bad: true, one: "unknown outcome", many: "unknown outcomes",
			next:    "ask the service",
			query:   map[string]string{"outcome": string(client.Unknown), "status": string(client.Failed)},
			command: []string{"--outcome", string(client.Unknown)}, needsCause: true,
		},
		client.AttentionExhausted: {
			bad: true, one: "exhausted event", many: "exhausted events",
			next: "forget when repaired",
			query: map[string]string{"decision": string(idem.DecisionExhausted), "status": string(client.Failed),
				"since": "24h"},
			command: []string{"--decision", string(idem.DecisionExhausted)}, needsCause: true,
		},
		client.AttentionReused: {
			one: "reused event ID", many: "reused event IDs",
			next:    "two events share it, or one changed",
			query:   map[string]string{"decision": string(idem.DecisionMismatch), "since": "24h"},
			command: []string{"--decision", string(idem.DecisionMismatch)},
		},
		client.AttentionLost: {
			one: "event possibly lost", many: "events possibly lost", next: "resend at the sender",
			query: map[string]string{"lost": "true", "since": "24h"}, command: []string{"--lost"}, needsCause: true,
		},
	}
}

// causeOf is why an execution is as it is: equal ones are one item. said is what the service said.
func (s *Attended) causeOf(kind string) (cause, said string) {
	x := &s.Execution
	if kind == client.AttentionLost {
		if x.Arrivals == nil || len(x.Arrivals.Newest) == 0 {
			return "", ""
		}
		return story.Words(x.Arrivals.Newest[0].Decision), ""
	}
	if n := len(x.FailedAnswers); n > 0 {
		return serviceSays(x.FailedAnswers[n-1].Status), strings.Join(strings.Fields(x.FailedAnswers[n-1].Text), " ")
	}
	if p := x.Parked; p != nil && p.LastEvidence != nil {
		if p.LastEvidence.Status != 0 {
			return serviceSays(p.LastEvidence.Status), ""
		}
		return cmp.Or(story.Words(p.LastEvidence.Code), p.Blocked), ""
	}
	switch {
	case x.Response != nil:
		return serviceSays(x.Response.Status), ""
	case x.Error != nil:
		return story.Words(x.Error.Code), ""
	case x.Status == client.Aborted:
		return "cancelled by " + x.AbortedBy, ""
	}
	return "", ""
}

func serviceSays(status int) string { return "the service says " + strconv.Itoa(status) }

// foundItems returns one item for the executions of each route and cause. Behind those that block a
// queue, events wait.
func (f *Found) foundItems(queues []Queue) []client.AttentionItem {
	kind := kindsOfFound()[f.Kind]
	var all groups
	for i := range f.Executions {
		s := &f.Executions[i]
		cause, words := "", ""
		if kind.needsCause {
			cause, words = s.causeOf(f.Kind)
		}
		query, command := maps.Clone(kind.query), slices.Clone(kind.command)
		if s.Route != "" { // a lock of the lock API has none
			query["route"] = s.Route
			command = append(command, "--route", s.Route)
		}
		one := all.groupOf(client.AttentionItem{
			ID: strings.Join([]string{f.Kind, s.Route, cause}, ":"), Kind: f.Kind, Bad: kind.bad, Route: s.Route,
			Workflow: s.Workflow, ExecutionID: s.ExecutionID,
			Cause: cause, Next: kind.next, Query: query, Command: ofEvents(command...),
		})
		one.add(s.Workflow, s.At)
		if f.Kind == client.AttentionBlocked {
			one.waiting += waitingFor(s.Workflow, queues)
		}
		if one.said[words]++; words != "" && one.said[words] >= one.said[one.Said] {
			one.Said = words
		}
	}
	return all.allItems(func(one *group) { one.completeItem(&kind, f.More) })
}

// completeItem says what the executions of a group are; more: there are others.
func (g *group) completeItem(kind *kindOfFound, more bool) {
	g.Text = story.Count(g.Count, kind.one, kind.many)
	if more {
		g.Text = "at least " + g.Text
	}
	one := g.Count == 1 && g.Workflow != ""
	switch {
	case one && g.Route != "" && strings.HasPrefix(g.Workflow+"/", g.Route+"/"):
		g.Text += " of " + g.Workflow
	case one && g.Route != "":
		g.Text += " of " + g.Route + " (" + g.Workflow + ")"
	case one:
		g.Text += " (" + g.Workflow + ")"
	case g.Route != "":
		g.Text += " of " + g.Route
	}
	if g.waiting > 0 {
		g.Text += ", " + story.Count(g.waiting, "event waits", "events wait")
	}
	if len(g.said) > 1 && g.Said != "" {
		g.Said += " (most of them)"
	}
}

// waitingFor returns how many events wait for the lock of a workflow, if the first has waited for
// long.
func waitingFor(workflow string, queues []Queue) int {
	if at := slices.IndexFunc(queues, func(q Queue) bool { return q.Workflow == workflow }); at >= 0 {
		return queues[at].Waiting
	}
	return 0
}
