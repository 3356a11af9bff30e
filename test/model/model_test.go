package model

import (
	"flag"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// tooMany states for a search in the normal run; no scenario comes near; with -short they are cut
// off.
const (
	tooMany = 2_000_000
	few     = 20_000
)

var (
	long   = flag.Bool("long", false, "explore larger bounds and take random walks beyond them: some twenty minutes")
	seed   = flag.Uint64("seed", 42, "of the random walks")
	update = flag.Bool("update", false, "write the table of scenarios into scenarios.txt")
	walks  = flag.Int("walks", 50_000, "random walks of each scenario with -long")
)

func TestEveryScenarioKeepsEveryPromise(t *testing.T) {
	all := scenarios()
	lines := make([]string, len(all)) // of scenarios.txt, in its order
	total, states := newModel(scenario{}), 0
	limit := tooMany
	if testing.Short() {
		limit = few
	}
	var sum sync.Mutex // guards total and states
	t.Run("each", func(t *testing.T) {
		for i := range all {
			t.Run(all[i].name, func(t *testing.T) {
				t.Parallel()
				m := newModel(all[i])
				r := m.explore(limit)
				t.Logf("%d states, complete: %v", r.states, r.complete)
				lines[i] = all[i].line(r.states)
				switch {
				case r.broken != "":
					t.Errorf("%s\n    %s", r.broken, strings.Join(r.trace, "\n    "))
				case !r.complete && !testing.Short():
					t.Errorf("cut off at %d states: take smaller bounds", r.states)
				}
				sum.Lock()
				defer sum.Unlock()
				states += r.states
				total.add(m)
			})
		}
	})
	t.Logf("%d states in all", states)
	if !testing.Short() {
		total.reachedEverything(t)
		holdThePage(t, heading+strings.Join(lines, ""))
	}
}

// add counts what another search has seen.
func (m *model) add(other *model) {
	for k := range other.seen {
		m.seen[k].applied += other.seen[k].applied
		m.seen[k].refused += other.seen[k].refused
	}
	for a := range other.answers {
		m.answers[a] += other.answers[a]
	}
}

// reachedEverything: a search that never gets somewhere keeps every promise there.
func (m *model) reachedEverything(t *testing.T) {
	t.Helper()
	for k := claim; k < kinds; k++ {
		if m.seen[k].applied == 0 {
			t.Errorf("no scenario gets as far as %s", k)
		}
		if m.seen[k].refused == 0 && (k <= acquire || k == putHold) { // the others are sent by who has just read
			t.Errorf("no scenario refuses %s", k)
		}
	}
	for a := noAnswer + 1; a < answers; a++ {
		if m.answers[a] == 0 {
			t.Errorf("no scenario ends in answer %d", a)
		}
	}
}

func TestStrategyNoneLetsTwoEventsRunAtOnce(t *testing.T) {
	m := newModel(named(t, "strategy none"))
	m.goal = func(s *state) bool {
		return s.known.upstream[executionOf(0, 0)] == atWork && s.known.upstream[executionOf(2, 0)] == atWork
	}
	if r := m.explore(tooMany); r.broken != goalReached {
		t.Errorf("two events never ran at once: %+v", r)
	}
}

func TestNoTransactionsOfTwoWorkflowsHarmEachOtherInOneRequest(t *testing.T) {
	p := pairs{skewed: map[string]int{}}
	for _, sc := range inCompany() {
		p.explore(newModel(sc), 12_000)
	}
	t.Logf("%d pairs, both pass in %d", p.checked, p.together)
	for pair, states := range p.skewed {
		t.Logf("%-40s %d states", pair, states)
	}
	if len(p.across) > 0 {
		t.Errorf("%d pairs in two workflows have no serial order, first %s", len(p.across), p.across[0])
	}
	if len(p.shared) > 0 {
		t.Errorf(
			"%d pairs of an enqueue and an end have no serial order, and the sender lets them share a lock, first %s: see Side in etcdlock/commit", len(p.shared), p.shared[0])
	}
	if len(p.skewed) == 0 {
		t.Error(
			"no pair in one workflow has no serial order: the search does not see what the rule of one workflow in a request is for")
	}
}

func TestLargerBoundsKeepEveryPromise(t *testing.T) {
	if !*long {
		t.Skip("takes -long")
	}
	for _, sc := range scenarios() {
		for _, b := range []*uint8{&sc.budget.ambiguous, &sc.budget.expire} {
			*b = max(*b, 1) + 1
		}
		r := newModel(sc).explore(5_000_000)
		t.Logf("%-40s %9d states, complete: %v", sc.name, r.states, r.complete)
		if r.broken != "" {
			t.Errorf("%s: %s\n    %s", sc.name, r.broken, strings.Join(r.trace, "\n    "))
		}
	}
}

func TestRandomWalksKeepEveryPromise(t *testing.T) {
	if !*long {
		t.Skip("takes -long")
	}
	for _, sc := range scenarios() {
		sc.larger()
		r := newModel(sc).wander(rand.New(rand.NewPCG(*seed, 0)), *walks, 300)
		t.Logf("%-40s %9d steps", sc.name, r.states)
		if r.broken != "" {
			t.Errorf("%s, seed %d: %s\n    %s", sc.name, *seed, r.broken, strings.Join(r.trace, "\n    "))
		}
	}
}

func TestRedundantComparesBreakNothingAlone(t *testing.T) {
	if !*long {
		t.Skip("takes -long")
	}
	for _, c := range redundant {
		for _, sc := range scenarios() {
			m := newModel(sc)
			m.drops = []compareOf{{c.kind, c.compare}}
			if r := m.explore(tooMany); r.broken != "" {
				t.Errorf("%s needs %s after all (%s): %s; move it to brokenBy", c.kind, c.compare, sc.name, r.broken)
			}
		}
	}
}
