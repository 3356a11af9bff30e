package model

import (
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
		t.Errorf("left out: %s. Nothing broke in %q (%d states, complete: %v): the model does not see what it is for", mu.name, mu.scenario, r.states, r.complete)
		return
	}
	t.Logf("left out: %s (%q, %d states)\n    %s", mu.name, mu.scenario, r.states, r.broken)
	if testing.Verbose() {
		for _, step := range r.trace {
			t.Log("        " + step)
		}
	}
}

func index(t *testing.T, r *row, spelling string) int {
	t.Helper()
	i := slices.IndexFunc(r.compares, func(c compare) bool { return c.spelling == spelling })
	if i < 0 {
		t.Fatalf("transaction %s does not compare %s", r.name, spelling)
	}
	return i
}

func TestEveryCompareIsNeeded(t *testing.T) {
	rows := table()
	for k := claim; k < kinds; k++ {
		for i, c := range rows[k].compares {
			scenario, ok := brokenBy[k][c.spelling]
			if !ok {
				if !slices.ContainsFunc(redundant, func(r cover) bool { return r.kind == k && r.compare == c.spelling }) {
					t.Errorf("no scenario shows what %s needs %s for: name one in brokenBy, or say in redundant what covers it", rows[k].name, c.spelling)
				}
				continue
			}
			mustBreak(t, mutation{name: rows[k].name + " compares " + c.spelling, scenario: scenario, drops: []compareOf{{k, i}}})
		}
	}
}

func TestWhatCoversARedundantCompareIsNeededWithoutIt(t *testing.T) {
	rows := table()
	for _, r := range redundant {
		row := &rows[r.kind]
		own := compareOf{r.kind, index(t, row, r.compare)}
		if r.by == "" {
			continue
		}
		mustBreak(t, mutation{name: row.name + " compares " + r.compare + " or " + r.by, scenario: r.scenario,
			drops: []compareOf{own, {r.kind, index(t, row, r.by)}}})
	}
}

func TestEveryRuleIsNeeded(t *testing.T) {
	for _, mu := range rules {
		mustBreak(t, mu)
	}
}
