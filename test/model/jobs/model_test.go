// Package jobs explores the transactions of jobs as package model does those of deliveries: every
// order of steps, within small bounds, of processes that run a job and die, answers that get lost
// while their transaction is applied later or never, people who stop and resume the job, and events
// that somebody else lets run meanwhile. It is apart because no transaction of a delivery compares
// a key of a job: a step of a job adds compares and writes to one of those, and what it adds is all
// that can go wrong here.
package jobs

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
)

// promise is a sentence that holds in every state, or after every step.
type promise string

const (
	runsOnce     promise = "a job lets an event run at most once"
	actsOnSeen   promise = "a job does nothing with an event that has changed since the job began"
	ownerActs    promise = "only the owner of a job acts for it"
	notRobbed    promise = "a job is not taken from a process that lives"
	stoppedRests promise = "a job that is stopped, or done, does nothing"
	oneKey       promise = "a job is in exactly one key until it is discarded"
	countsAll    promise = "the numbers of a job are what it did"
	countsEnds   promise = "each event that a job let run is followed until its end is counted, once"
	endsWhole    promise = "a job that is done has done all, and counted all ends"
	nothingLeft  promise = "nothing is left of a job that was discarded"
	goesOn       promise = "a job goes on as long as a process is left"
)

// A rule of the processes that is left out.
const (
	actsOnAll     = "a step looks whether the event has changed since the job began"
	forgetsChange = "a job that goes on counts what has changed since it began"
)

type model struct {
	scenario
	drops    []string // compares that are left out, as "step job.mod"
	breaks   string
	broken   promise
	compares [kinds]map[string]bool
}

func newModel(sc scenario) *model {
	m := &model{scenario: sc}
	for i := range m.compares {
		m.compares[i] = map[string]bool{}
	}
	return m
}

func (m *model) broke(p promise) {
	if m.broken == "" {
		m.broken = p
	}
}

func (m *model) checkBefore(s *state, t *txn) {
	k := &s.keys[open]
	j := jobOf(&k.value)
	switch t.kind {
	case step:
		if k.created == 0 {
			m.broke(stoppedRests)
		}
		if s.keys[index0+t.event].modified > j.until {
			m.broke(actsOnSeen)
		}
	case take:
		if k.created != 0 && j.session != t.job.session && s.isAlive(j.session) {
			m.broke(notRobbed)
		}
	}
	if (t.kind == step || t.kind == put || t.kind == finish) && k.created != 0 && j.session != t.job.session {
		m.broke(ownerActs)
	}
}

func (m *model) checkAfter(s *state, t *txn) {
	if t.kind == step || t.follow {
		if s.ran[t.event]++; s.ran[t.event] > 1 {
			m.broke(runsOnce)
		}
	}
	if t.kind == discard {
		s.discarded = true
	}
	m.checkKeys(s)
}

// checkKeys holds the numbers of the job against what it did.
func (m *model) checkKeys(s *state) {
	let := 0
	for _, n := range s.ran {
		let += int(n)
	}
	there := 0
	for _, at := range []int{open, ended} {
		k := &s.keys[at]
		if k.created == 0 {
			continue
		}
		there++
		j := jobOf(&k.value)
		done := at == ended && !j.stopped
		switch {
		case int(j.acted-j.refused) != let:
			m.broke(countsAll)
		case int(j.ended)+s.runs() != let:
			m.broke(countsEnds)
		case done && (j.acted != j.matched || s.runs() > 0):
			m.broke(endsWhole)
		}
	}
	switch {
	case there == 0 && s.runs() > 0:
		m.broke(nothingLeft)
	case there > 1, there == 0 && s.begun && !s.discarded, there > 0 && s.discarded:
		m.broke(oneKey)
	}
}

// checkGoesOn lets one process go on alone, without faults, until nothing is left to do.
func (m *model) checkGoesOn(s *state) {
	if s.keys[open].created == 0 {
		return
	}
	n := *s
	n.left, n.lost, n.processes = budget{}, [maxLost]txn{}, [processes]process{}
	for i := range sessions {
		n.keys[session0+i] = key{}
	}
	n.opened = sessions - 1
	n.openSession(0)
	for range 40 {
		next, any := n, false
		for e := range events {
			if l := &next.keys[lock0+e]; l.value[0] == released {
				next.clock++
				next.put(lock0+e, value{over})
				next.put(index0+e, value{})
			}
		}
		m.process(&next, 0, func(to *state, _ string) {
			if !any {
				n, any = *to, true
			}
		})
		if n.keys[open].created == 0 {
			return
		}
	}
	m.broke(goesOn)
}

// stale is a revision that no key of a job or a lock has any more.
const stale revision = 1

// canonical forgets what nothing depends on, and gives revisions the smallest numbers that keep
// their order.
func (m *model) canonical(s *state) {
	lost := s.lost[:0]
	for _, t := range s.lost {
		if t.kind != 0 && (t.kind == begin || t.kind == person && t.lock == s.keys[lock0+t.event].modified ||
			t.kind != person && t.prev == s.keys[t.from()].modified || m.drops != nil && t.kind != person) {
			lost = append(lost, t)
		}
	}
	clear(s.lost[len(lost):])
	places := []*revision{}
	for i := range s.keys {
		k := &s.keys[i]
		if k.created != 0 {
			k.created = stale
		}
		if i < run0 || i >= lock0 && i < session0 {
			places = append(places, &k.modified)
		} else if k.modified != 0 {
			k.modified = stale
		}
	}
	for _, at := range []int{open, ended} {
		places = append(places, (*revision)(&s.keys[at].value[1]))
	}
	for i := range s.processes {
		p := &s.processes[i]
		p.tidy(s, m.drops == nil)
		places = append(places, &p.prev, &p.job.until, &p.lock)
	}
	for i := range lost {
		places = append(places, &s.lost[i].prev, &s.lost[i].job.until, &s.lost[i].lock)
	}
	used := [256]bool{stale: true}
	for _, p := range places {
		used[*p] = true
	}
	var rank [256]revision
	n := revision(0)
	for r := 1; r < len(used); r++ {
		if used[r] {
			n++
			rank[r] = n
		}
	}
	for _, p := range places {
		*p = rank[*p]
	}
	s.clock = n
}

// tidy forgets what the process does not use any more. What it knows of a job that has changed can
// only be refused, unless a compare is left out.
func (p *process) tidy(s *state, whole bool) {
	switch p.at {
	case idle:
		*p = process{up: p.up, session: p.session}
	case listing, reloading, taking:
		p.left, p.event, p.lock, p.act = [events]bool{}, 0, 0, false
	case stepping:
		p.event, p.lock, p.act = 0, 0, false
	}
	if whole && p.at != idle && p.prev != s.keys[open].modified {
		p.prev, p.job = stale, job{session: p.job.session}
		p.lock = min(p.lock, stale)
	}
}

func initial(sc *scenario) *state {
	s := &state{left: sc.budget, clock: stale + 1}
	for e := range events {
		s.put(lock0+e, value{blocked})
		s.put(index0+e, value{})
	}
	for p := range processes {
		s.openSession(p)
	}
	return s
}

// explore visits every state that can be reached, breadth first, until a promise breaks.
func (m *model) explore() (states int, trace []string) {
	type node struct {
		parent int
		what   string
	}
	first := initial(&m.scenario)
	m.canonical(first)
	seed, left := maphash.MakeSeed(), map[[keys]key]bool{}
	known := map[uint64]bool{maphash.Comparable(seed, *first): true}
	nodes, front := []node{{-1, ""}}, []state{*first}
	for at := 0; at < len(front) && m.broken == ""; at++ {
		from := front[at]
		m.successors(&from, func(n *state, what string) {
			if len(nodes) > 1 && m.broken != "" && nodes[len(nodes)-1].what == broke {
				return
			}
			m.canonical(n)
			hash := maphash.Comparable(seed, *n)
			if m.broken == "" && known[hash] {
				return
			}
			if known[hash] = true; m.broken == "" && !left[n.keys] {
				left[n.keys] = true
				m.checkGoesOn(n)
			}
			front, nodes = append(front, *n), append(nodes, node{at, what})
			if m.broken != "" {
				nodes = append(nodes, node{len(front) - 1, broke})
			}
		})
	}
	if m.broken == "" {
		return len(front), nil
	}
	for i := len(nodes) - 1; i > 0; i = nodes[i].parent {
		trace = append(trace, nodes[i].what)
	}
	slices.Reverse(trace)
	return len(front), trace
}

// broke ends a trace.
const broke = "and a promise is broken"

func scenarios() []scenario {
	return []scenario{
		{name: "hand-over", budget: budget{lost: 1, crash: 1, expire: 1}},
		{name: "lost answers", budget: budget{lost: 2, expire: 1}},
		{name: "a person runs it meanwhile", budget: budget{lost: 1, person: 1, again: 2, carry: 1}},
		{name: "stopped and resumed", budget: budget{lost: 1, stop: 1, resume: 1, discard: 1}},
		{name: "stopped, another process", budget: budget{lost: 1, stop: 1, resume: 1, crash: 1}},
		{name: "in a queue", budget: budget{lost: 1, expire: 1, crash: 1}, queued: true},
	}
}

func TestEveryScenarioOfJobsKeepsEveryPromise(t *testing.T) {
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			m := newModel(sc)
			states, trace := m.explore()
			if m.broken != "" {
				t.Errorf("%s", m.broken)
				for _, line := range trace {
					t.Log(line)
				}
			}
			t.Logf("%d states", states)
		})
	}
}

// brokenBy names, for each compare and rule, the scenario that needs it.
var brokenBy = map[string]string{
	"take job.mod":        "hand-over",
	"take session.absent": "hand-over",
	"put job.mod":         "hand-over",
	"step job.mod":        "hand-over",
	"step lock.mod":       "a person runs it meanwhile",
	"stop job.mod":        "stopped and resumed",
	"resume job.mod":      "stopped and resumed",
	"finish job.mod":      "stopped and resumed",
	"discard job.mod":     "stopped and resumed",
	actsOnAll:             "a person runs it meanwhile",
	forgetsChange:         "a person runs it meanwhile",
}

// redundant says why a compare is kept that nothing needs.
var redundant = map[string]string{
	"begin job.mod": "a job is begun once, under an ID of its own",
}

func TestEveryCompareAndRuleOfJobsIsNeeded(t *testing.T) {
	compares := newModel(scenarios()[0])
	for _, sc := range scenarios()[2:4] { // which send each transaction
		compares.scenario = sc
		compares.explore()
	}
	all := []string{actsOnAll, forgetsChange}
	for k := begin; k < kinds; k++ {
		if len(compares.compares[k]) == 0 {
			t.Errorf("no scenario sends %s", k)
		}
		for name := range compares.compares[k] {
			if k != person { // the model of deliveries sends it
				all = append(all, fmt.Sprint(k, " ", name))
			}
		}
	}
	for _, what := range all {
		i := slices.IndexFunc(scenarios(), func(sc scenario) bool { return sc.name == brokenBy[what] })
		switch {
		case i < 0 && redundant[what] == "":
			t.Errorf("nothing shows what %q is needed for: name a scenario in brokenBy, or in redundant why it is kept",
				what)
		case i >= 0:
			m := newModel(scenarios()[i])
			if m.breaks = what; what != actsOnAll && what != forgetsChange {
				m.drops = []string{what}
			}
			states, trace := m.explore()
			if m.broken == "" {
				t.Errorf("left out: %s. Nothing broke in %q (%d states)", what, m.name, states)
			}
			t.Logf("left out: %s (%q, %d states)\n    %s", what, m.name, states, m.broken)
			if testing.Verbose() {
				t.Log("        " + strings.Join(trace, "\n        "))
			}
		}
	}
}
