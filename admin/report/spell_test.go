package report

import (
	"testing"
	"time"
)

// afterwards is what came of requests, one a second: F failed, S succeeded, c was cancelled by a
// person.
func afterwards(results string) (*Spell, time.Time) {
	began := time.Date(2026, 3, 1, 1, 12, 0, 0, time.UTC)
	at := began
	var s spell
	for _, r := range results {
		switch r {
		case 'F':
			s.add(Failed, Failure{"the service answered 500", "database is locked"}, at)
		case 'S':
			s.add(Succeeded, Failure{}, at)
		default:
			s.add(Broken, Failure{}, at)
		}
		at = at.Add(time.Second)
	}
	return s.spellAt(moment{at, at}), began
}

func TestARouteFailsFromTheThirdFailureUntilThreeSuccessesInARow(t *testing.T) {
	for results, want := range map[string]struct{ failed, all, since int }{
		"":          {},
		"FF":        {},
		"SSFFF":     {3, 3, 2},
		"FFFccS":    {3, 4, 0},
		"FFFFSSF":   {5, 7, 0},
		"FFFFSSS":   {},
		"FFFSSSFFF": {3, 3, 6},
		"FSSFSSFSS": {}, // most succeed
	} {
		got, began := afterwards(results)
		switch {
		case want.failed == 0 && got != nil:
			t.Errorf("%s: got %+v, want none", results, got)
		case want.failed == 0:
		case got == nil || got.Failed != want.failed || got.All != want.all ||
			got.Since != began.Add(time.Duration(want.since)*time.Second):
			t.Errorf("%s: got %+v, want %+v", results, got, want)
		case got.Said != "database is locked":
			t.Errorf("%s: got %+v", results, got)
		}
	}
}

func TestFailuresAtSeveralReplicasAreOneRowForTheSender(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	eight := Limit{InRow: 8}
	for _, c := range []struct {
		name     string
		one, two Standing
		want     float64
	}{
		{"both fail", Standing{InRow: 2, First: at(1), Last: at(5)}, Standing{InRow: 4, First: at(2), Last: at(6)},
			0.75},
		{"a success at the other is newer", Standing{InRow: 2, First: at(1), Last: at(5)}, Standing{Good: at(6)}, 0},
		{"a success at the other is older", Standing{InRow: 2, First: at(3), Last: at(5)}, Standing{Good: at(2)}, 0.25},
		{"nothing at the other", Standing{InRow: 8, First: at(3), Last: at(5)}, Standing{}, 1},
	} {
		s := c.one
		s.Add(c.two)
		if got := s.Near(eight); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	s := Standing{InRow: 2, First: at(0), Last: at(3600), Good: at(-9)}
	s.Add(Standing{InRow: 1, First: at(7200), Last: at(7200)})
	if got := s.Near(Limit{For: 4 * time.Hour}); got != 0.5 {
		t.Errorf("two of four hours: got %v", got)
	}
}
