package etcdlock

import (
	"context"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/reap"
	"hooklock/idem"
)

func TestHoldsAreCountedWithTheAgeOfTheOldest(t *testing.T) {
	e := etcdtest.Start(t)
	s, other := openStore(t, Options{Endpoints: []string{e.Endpoint}}),
		openStore(t, Options{Endpoints: []string{e.Endpoint}})
	holds := func(want int, oldest *idem.Lock) {
		t.Helper()
		for _, s := range []*Store{s, other} {
			s.holdings.Look(within(t, patience))
			var since time.Time
			if oldest != nil {
				since = oldest.StartedAt
			}
			if n, got := s.Held(); n != want || !got.Equal(since.Truncate(time.Microsecond)) && !got.Equal(since) {
				t.Errorf("%d holds since %v, want %d since %v", n, got, want, since)
			}
		}
	}
	holds(0, nil)
	var held []idem.RunningLock
	for _, workflow := range []string{"a", "b", "c"} {
		l := routed(workflow, "one")
		l.StartedAt = l.StartedAt.Add(time.Duration(len(held)) * time.Minute).Round(0)
		l.ReleaseDelay = time.Minute
		held = append(held, mustClaim(t, s, l, 0))
	}
	holds(0, nil)
	if n, since := s.Active(); n != 3 || !since.Equal(held[0].Lock().StartedAt) {
		t.Errorf("%d active since %v", n, since)
	}
	if n, since := other.Active(); n != 0 || !since.IsZero() {
		t.Errorf("%d active since %v", n, since)
	}
	for _, h := range held[:2] {
		if err := h.Hold(within(t, patience), time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	unknown := idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: "upstream_failed"}}
	if _, err := held[2].Settle(within(t, patience), unknown); err != nil { // and now it cools
		t.Fatal(err)
	}
	holds(3, held[0].Lock())
	if _, err := s.ForceRelease(within(t, patience), "a", held[0].Lock().Execution,
		idem.Cancel{By: "ops", At: time.Now()}, nil); err != nil {
		t.Fatal(err)
	}
	holds(2, held[1].Lock())
	if _, err := s.ForceRelease(within(t, patience), "b", held[1].Lock().Execution,
		idem.Cancel{By: "ops", At: time.Now()}, nil); err != nil {
		t.Fatal(err)
	}
	holds(1, held[2].Lock())
}

// The age of the oldest is read again where it could not be read.
func TestTheAgeOfTheOldestHoldIsReadAgainAfterAFailure(t *testing.T) {
	s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint}})
	l := mustClaim(t, s, routed("a", "one"), 0)
	if err := l.Hold(within(t, patience), time.Minute); err != nil {
		t.Fatal(err)
	}
	asked := 0
	find := func(ctx context.Context, id idem.ExecutionID) (*idem.Found, error) {
		if asked++; asked == 1 {
			return nil, idem.ErrStoreUnavailable
		}
		return s.Execution(ctx, id)
	}
	holdings := reap.NewHoldings(s.reaper, s.keeper, find)
	for _, known := range []bool{false, true, true} {
		holdings.Look(within(t, patience))
		if n, since := holdings.Count(); n != 1 || since.IsZero() == known {
			t.Errorf("%d since %v, after %d questions", n, since, asked)
		}
	}
	if asked != 2 {
		t.Errorf("it was read %d times", asked)
	}
}
