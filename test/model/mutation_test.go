package model

import (
	"maps"
	"slices"
	"testing"
)

func named(t *testing.T, name string) scenario {
	t.Helper()
	all := scenarios()
	i := slices.IndexFunc(all, func(sc scenario) bool { return sc.name == name })
	if i < 0 {
		t.Fatalf("there is no scenario %q", name)
	}
	return all[i]
}

// mustBreak fails when the mutation keeps every promise in its scenario.
func mustBreak(t *testing.T, mu mutation) {
	t.Helper()
	m := newModel(named(t, mu.scenario))
	m.drops, m.breaks = mu.drops, mu.breaks
	r := m.explore(tooMany)
	if r.broken == "" {
		t.Errorf("left out: %s. Nothing broke in %q (%d states, complete: %v): the model does not see what it is for",
			mu.name, mu.scenario, r.states, r.complete)
		return
	}
	t.Logf("left out: %s (%q, %d states)\n    %s", mu.name, mu.scenario, r.states, r.broken)
	if testing.Verbose() {
		for _, step := range r.trace {
			t.Log("        " + step)
		}
	}
}

// comparesOf are the names of all compares that a transaction can have.
func comparesOf(k kind) []string {
	m := newModel(bounded("everything", []int{0, 1, 2}, budget{}, func(sc *scenario) {
		sc.limits = [maxProcesses]uint8{1, 1, 1}
		all(&sc.latest)
	}))
	m.compile(&txn{
		kind: k, by: executionOf(0, 0), session: 1, alive: 1, outcome: success, next: executionOf(2, 0), heir: 2,
		old:   executionOf(0, 1),
		epoch: 1, created: 2, l: 3, q: 4, prev: 5, h: 6, o: 7, last: 8, over: executionOf(1, 0), overQ: 9, slot: 1,
		turn: true, letter: true,
	})
	return slices.Sorted(maps.Keys(m.compares[k]))
}

func TestEveryCompareIsNeeded(t *testing.T) {
	for k := claim; k < kinds; k++ {
		names := comparesOf(k)
		for _, name := range names {
			scenario, ok := brokenBy[k][name]
			if !ok {
				if !slices.ContainsFunc(redundant, func(r cover) bool { return r.kind == k && r.compare == name }) {
					t.Errorf(
						"nothing shows what %s needs %s for: name a scenario in brokenBy, or what covers it in redundant", k, name)
				}
				continue
			}
			left := k.String() + " compares " + name
			mustBreak(t, mutation{name: left, scenario: scenario, drops: []compareOf{{k, name}}})
		}
		for name := range brokenBy[k] {
			if !slices.Contains(names, name) {
				t.Errorf("brokenBy says what breaks if %s does not compare %s, which it does not: take it out", k, name)
			}
		}
	}
}

func TestWhatCoversARedundantCompareIsNeededWithoutIt(t *testing.T) {
	for _, r := range redundant {
		names := comparesOf(r.kind)
		if !slices.Contains(names, r.compare) || r.by != "" && !slices.Contains(names, r.by) {
			t.Errorf("redundant says that %s compares %s and %q, and it compares %v", r.kind, r.compare, r.by, names)
		}
		if r.by == "" {
			continue
		}
		left := r.kind.String() + " compares " + r.compare + " or " + r.by
		mustBreak(t, mutation{name: left, scenario: r.scenario,
			drops: []compareOf{{r.kind, r.compare}, {r.kind, r.by}}})
	}
}

func TestEveryRuleIsNeeded(t *testing.T) {
	for _, mu := range rules {
		mustBreak(t, mu)
	}
}
