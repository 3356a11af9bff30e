package attention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/admin/report"
	"hooklock/admin/story"
	"hooklock/idem"
)

const (
	// LongQueue is for how long an event may wait behind a lock before a person is to look.
	LongQueue = 10 * time.Minute
	// spike is how many bad signatures on a route need attention, in spikeTime.
	spike = 10
	// spikeTime is how far the counts of bad signatures look back.
	spikeTime = 5 * time.Minute
	// LatelyTime is how far Input.Lately looks back: as long as a replica that has ended is named.
	LatelyTime = time.Hour
	// silentAfter is when a route that had deliveries counts as silent.
	silentAfter = time.Hour
	// goneAfter is how long ago a replica without a session has said something: one that changes
	// its session has none for a moment.
	goneAfter = 20 * time.Second
	// halfway is the part of a sender's limit from which a person is to know of it.
	halfway = 0.5
	// nearlyFull is the part of etcd's quota from which a person is to know of it; almostFull when
	// it is urgent.
	nearlyFull, almostFull = 0.75, 0.9
	// embedded is the member that defragments itself.
	embedded = "embedded"
)

// Input is what the list is made of. Its zero fields add nothing.
type Input struct {
	Now              time.Time
	Status           client.ReplicaStatus // of this replica
	Rules            []client.RouteRules
	Replicas         []Replica
	Space            []idem.StoreSpace
	Acknowledgements []client.SeenMark
	// Day is the counts of 24 hours, Lately those of LatelyTime, by the minute.
	Day, Lately client.CountList
	// Found are the executions of each kind, without what was looked at.
	Found []Found
	// Queues are locks behind which an event has waited for LongQueue.
	Queues []Queue
	// NotKnown says what could not be read, and why.
	NotKnown []string
}

// Found are executions of one kind.
type Found struct {
	Kind       string
	Executions []Attended
	More       bool // there are more
}

// Attended is an execution that needs attention, and since when.
type Attended struct {
	client.Execution
	At time.Time
}

// Queue is a lock, and since when the first event behind it waits.
type Queue struct {
	client.Lock
	Since time.Time
}

// List returns the items, the worst first.
func List(in *Input) []client.AttentionItem {
	all := slices.Concat(in.ofEtcd(), in.ofRoutes(), in.ofReplicas(), in.ofQueues(), in.ofCounts())
	for i := range in.Found {
		all = append(all, in.Found[i].foundItems(in.Queues)...)
	}
	kinds := client.AttentionKinds()
	slices.SortStableFunc(all, func(a, b client.AttentionItem) int {
		bad := func(i *client.AttentionItem) int {
			if i.Bad {
				return 0
			}
			return 1
		}
		return cmp.Or(bad(&a)-bad(&b), slices.Index(kinds, a.Kind)-slices.Index(kinds, b.Kind),
			cmp.Compare(b.Count, a.Count), strings.Compare(a.ID, b.ID))
	})
	return all
}

func timeAt(t time.Time) client.Time { return client.Time{Time: t} }

// ofEtcd returns whether etcd answers, and how full its members are.
func (in *Input) ofEtcd() (all []client.AttentionItem) {
	if m := in.Status.Etcd.Members; len(m) > 0 && !slices.ContainsFunc(m, func(c client.Contact) bool {
		return c.State != client.ContactFails
	}) {
		worst := slices.MaxFunc(m, func(a, b client.Contact) int { return a.FailedAt.Compare(b.FailedAt.Time) })
		all = append(all, client.AttentionItem{
			ID: client.AttentionEtcdDown, Kind: client.AttentionEtcdDown, Bad: true, Count: len(m),
			Text:  "etcd does not answer this replica",
			Cause: worst.Address + ": " + worst.Failure, Next: "new events get 503",
			SinceAt: worst.AnsweredAt, LatestAt: worst.FailedAt,
			Command: "hooklock doctor",
		})
	}
	for _, s := range in.Space {
		part := float64(s.Size) / float64(max(s.Quota, 1))
		if s.Quota == 0 || part < nearlyFull && !s.Full {
			continue
		}
		const mib = 1 << 20
		next, command := "raise its quota, or shorten idempotency.retention", "hooklock doctor"
		if s.Member != embedded && s.InUse < s.Size/2 {
			next, command = "defragment it", "hooklock etcd defrag"
		}
		if s.Full {
			next = "it takes nothing new: " + next
		}
		all = append(all, client.AttentionItem{
			ID: client.AttentionEtcdFull + ":" + s.Member, Kind: client.AttentionEtcdFull, Bad: s.Full ||
				part >= almostFull, Count: 1,
			Text: fmt.Sprintf("etcd %s is %.0f%% full", s.Member, 100*part), Next: next, Command: command,
			Cause: fmt.Sprintf("%.1f of %.1f MiB, %.1f in use", float64(s.Size)/mib,
				float64(s.Quota)/mib, float64(s.InUse)/mib),
		})
	}
	return all
}

// routeState is the state of a route over all replicas. What those have seen that ended in the last
// hour counts as well, until a request succeeds: the sender has not forgotten it.
type routeState struct {
	spell    *report.Spell
	ended    []*report.Spell // at replicas that can no longer say that they are over
	standing report.Standing
	at       []string // the replicas that are alive at which it fails
	wrong    *client.WrongEventID
}

// ofRoutes returns the routes that fail, those whose senders are near a limit, and wrong event IDs.
func (in *Input) ofRoutes() (all []client.AttentionItem) {
	states, live := in.routeStates()
	for i := range in.Rules {
		rules := &in.Rules[i]
		state := states[rules.Route]
		if state == nil {
			continue
		}
		for _, spell := range state.ended {
			if !in.succeededSince(rules.Route, state, spell) {
				state.addSpell(spell)
			}
		}
		near, next := nearestLimit(rules.Sender, &state.standing)
		switch {
		case state.spell != nil:
			all = append(all, failingRoute(rules.Route, state, live, next))
		case near >= halfway:
			all = append(all, client.AttentionItem{
				ID: client.AttentionSenderLimit + ":" + rules.Route, Kind: client.AttentionSenderLimit, Bad: near >= 1,
				Route: rules.Route, Count: 1,
				Text: fmt.Sprintf("%s is at %.0f%% of a limit", rules.Route, 100*near), Next: next,
				SinceAt: timeAt(state.standing.First), LatestAt: timeAt(state.standing.Last),
				Command: ofEvents("--route", rules.Route, "--status", string(client.Failed)),
			})
		}
		if w := state.wrong; w != nil &&
			!story.Looked(
				in.Acknowledgements, idem.Concern{Kind: idem.ConcernEventIDs, Route: rules.Route}, w.At.Time) {
			all = append(all, client.AttentionItem{
				ID: client.AttentionEventIDs + ":" + rules.Route, Kind: client.AttentionEventIDs, Route: rules.Route,
				Count: 1, Text: rules.Route + ": wrong event ID",
				Cause: w.Text(), LatestAt: w.At, Command: "hooklock report",
			})
		}
	}
	return all
}

// routeStates returns how each route does, and how many replicas are alive.
func (in *Input) routeStates() (states map[string]*routeState, live int) {
	states = map[string]*routeState{}
	for i := range in.Replicas {
		r := &in.Replicas[i]
		alive := r.State() == client.ReplicaLive
		if alive {
			live++
		}
		for k := range r.Routes {
			one := &r.Routes[k]
			if states[one.Route] == nil {
				states[one.Route] = &routeState{}
			}
			states[one.Route].add(r.Replica, one, alive)
		}
	}
	return states, live
}

// succeededSince reports whether a request of the route has succeeded after the last failure of
// spell.
func (in *Input) succeededSince(route string, s *routeState, spell *report.Spell) bool {
	if s.standing.Good.After(spell.Last) {
		return true
	}
	for _, r := range slices.Concat(in.Day.Routes, in.Lately.Routes) {
		if r.Route == route && slices.ContainsFunc(r.Steps, func(step client.CountStep) bool {
			return step.Counts.Succeeded > 0 && step.At.After(spell.Last)
		}) {
			return true
		}
	}
	return false
}

// add adds what a replica says of the route, or said before it ended.
func (s *routeState) add(replica string, r *Route, alive bool) {
	s.standing.Add(r.Verified)
	if alive && r.WrongEventID != nil && (s.wrong == nil || r.WrongEventID.At.After(s.wrong.At.Time)) {
		s.wrong = r.WrongEventID
	}
	switch {
	case r.Spell == nil:
	case alive:
		s.at = append(s.at, replica)
		s.addSpell(r.Spell)
	default:
		s.ended = append(s.ended, r.Spell)
	}
}

func (s *routeState) addSpell(spell *report.Spell) {
	if s.spell == nil {
		first := *spell
		s.spell = &first
		return
	}
	s.spell.Failed, s.spell.All = s.spell.Failed+spell.Failed, s.spell.All+spell.All
	if spell.Since.Before(s.spell.Since) {
		s.spell.Since = spell.Since
	}
	if spell.Last.After(s.spell.Last) {
		s.spell.Last, s.spell.Failure = spell.Last, spell.Failure
	}
}

// failingRoute returns the item of a route that fails.
func failingRoute(route string, s *routeState, live int, next string) client.AttentionItem {
	text := fmt.Sprintf("%s fails now: %d of %d", route, s.spell.Failed, s.spell.All)
	if len(s.at) > 0 && len(s.at) < live {
		text += fmt.Sprintf(", at %s of %d replicas", strings.Join(s.at, ", "), live)
	}
	return client.AttentionItem{
		ID: client.AttentionRouteFails + ":" + route, Kind: client.AttentionRouteFails, Bad: true, Route: route,
		Count: s.spell.Failed, Text: text,
		Cause: s.spell.Cause, Said: s.spell.Said, Next: next, SinceAt: timeAt(s.spell.Since),
		LatestAt: timeAt(s.spell.Last),
		Query:    map[string]string{"route": route, "status": string(client.Failed)},
		Command:  ofEvents("--route", route, "--status", string(client.Failed)),
	}
}

// nearestLimit returns how near a sender is to its nearest limit, and what it does then; "" =
// nothing is known of it, or it is not near.
func nearestLimit(sender *client.RouteSender, s *report.Standing) (near float64, next string) {
	if sender == nil {
		return 0, ""
	}
	said := ""
	for _, l := range sender.Limits {
		limit, ok := report.ParseLimit(l.Limit)
		if !ok {
			continue
		}
		if n := s.Near(limit); n > near {
			near, said = n, story.Words(l.Limit)
		}
	}
	if near < halfway {
		return near, ""
	}
	text := fmt.Sprintf("%s is at %.0f%% of %s", sender.Preset, 100*near, said)
	if near >= 1 {
		text = sender.Preset + " has counted " + said
	}
	if sender.GivesUp != "" {
		text += ": " + sender.GivesUp
	}
	return near, text
}

func ofEvents(arguments ...string) string {
	return story.ShellLine(append([]string{"hooklock", "events"}, arguments...)...)
}
