package etcdlock

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

func TestWhatWasRefusedIsKeptAndListedByItsDecision(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	a, b := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	refused := lockFor("w", "refused").Scope
	now := time.Now()
	for i := range 20 {
		a.NoteArrival(refused, "r", "evt_1", idem.Arrival{At: now.Add(time.Duration(i) * time.Second),
			Decision: idem.DecisionLocked, Status: 409, From: "192.0.2.1"}, time.Hour)
	}
	b.NoteArrival(refused, "r", "evt_1",
		idem.Arrival{At: now.Add(time.Minute), Decision: idem.DecisionUpstreamUnreachable, Status: 502}, time.Hour)
	id := endedAs(t, b, "w", "ran", nil, success("body"))
	b.NoteArrival(mustFind(t, b, id).Record.Scope, "r", "evt_2",
		idem.Arrival{At: now, Decision: idem.DecisionReplayed, Status: 200}, time.Hour)
	for _, s := range []*Store{a, b} {
		written(t, s)
	}
	for _, limit := range []int{0, 1} {
		for decision, want := range map[idem.Decision]int{idem.DecisionLocked: 1, idem.DecisionUpstreamUnreachable: 1,
			idem.DecisionReplayed: 1, idem.DecisionMismatch: 0} {
			got := allExecutions(t, a, idem.ExecutionQuery{Decision: decision, Since: now.Add(-time.Second),
				PageSize: limit})
			if len(got) != want {
				t.Fatalf("%d events were %s, want %d: %+v", len(got), decision, want, got)
			}
			if want == 0 {
				continue
			}
			switch f := got[0]; decision {
			case idem.DecisionReplayed:
				if f.ID() != id || f.Status() != idem.Success || f.Arrivals.Counts[decision] != 1 {
					t.Errorf("%+v", f)
				}
			default:
				h := f.Arrivals
				if f.ID() != "" || f.Status() != idem.Refused || f.Workflow() != "w" || h.EventID != "evt_1" ||
					h.Counts[idem.DecisionLocked] != 20 || len(h.Newest) != idem.MaxArrivals ||
					h.Newest[0].Decision != idem.DecisionUpstreamUnreachable || h.First.From != "192.0.2.1" ||
					!h.First.At.Equal(now.UTC().Round(time.Millisecond)) {
					t.Errorf("%+v", h)
				}
			}
		}
	}
	if got := allExecutions(t, a, idem.ExecutionQuery{Decision: idem.DecisionLocked,
		Since: now.Add(time.Hour)}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if f := mustFind(t, a, id); f.Arrivals == nil || f.Arrivals.Newest[0].Status != 200 {
		t.Errorf("%+v", f.Arrivals)
	}
}

// Executions have an order that no clock moves: a process whose clock is off is in the list as
// well, with what it has just ended.
func TestEndedExecutionsAreListedWhateverTheWallClocksSay(t *testing.T) {
	t.Parallel()
	const year = 365 * 24 * time.Hour
	for name, off := range map[string]time.Duration{"a year behind": -year, "three hours behind": -3 * time.Hour,
		"a year ahead": year} {
		t.Run(name, func(t *testing.T) {
			e := etcdtest.Start(t)
			_, wrong := skewed(t, e, off)
			_, right := skewed(t, e, 0)
			var want []idem.ExecutionID
			for i := range 20 {
				s := []*Store{wrong, right}[i%2]
				want = append(want, endedAs(t, s, "w", fmt.Sprintf("event %d", i), func(l *idem.Lock) {
					l.Retention = 24 * time.Hour
				}, success("body")))
			}
			slices.Reverse(want)
			for _, limit := range []int{0, 1, 7} {
				if got := ids(allExecutions(t, right,
					idem.ExecutionQuery{PageSize: limit, Status: idem.Success})); !slices.Equal(got, want) {
					t.Errorf("pages of %d: %d of %d, or in another order: %q, want %q", limit, len(got), len(want), got,
						want)
				}
			}
		})
	}
}
