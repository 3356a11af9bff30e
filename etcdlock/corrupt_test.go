package etcdlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/idem"
)

// refusedAsCorrupt fails the test unless err says that etcd takes nothing under the alarm CORRUPT,
// and was there long before a caller's time was up.
func refusedAsCorrupt(t *testing.T, what string, began time.Time, err error) {
	t.Helper()
	if !errors.Is(err, idem.ErrStoreUnavailable) ||
		!strings.Contains(err.Error(),
			"a member's data is damaged: replace that member, then disarm the CORRUPT alarm") {
		t.Errorf("%s: got %v", what, err)
	}
	if took := time.Since(began); took > patience/2 {
		t.Errorf("%s: refused after %v", what, took)
	}
}

// etcd refuses each write under this alarm before it is applied, so nothing has to be found out
// about any of them.
func TestUnderTheAlarmCorruptWhatIsNewIsRefusedAtOnceWithItsName(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, s, lockFor("busy", "one"), 0)
	place := mustEnqueue(t, s, lockFor("busy", "waits"))
	running := mustClaim(t, s, lockFor("slow", "one"), 0)
	disarm := e.RaiseCorrupt(t)
	for what, try := range map[string]func(context.Context) error{
		"claim": func(ctx context.Context) error {
			_, _, err := s.Claim(ctx, lockFor("new", "one"), 0)
			return err
		},
		"place": func(ctx context.Context) error {
			_, _, err := s.Enqueue(ctx, lockFor("busy", "two"), 0, 0)
			return err
		},
		"park":          func(ctx context.Context) error { return place.Park(ctx, parkedNow("body")) },
		"park, running": func(ctx context.Context) error { return running.Park(ctx, parkedNow("body")) },
		"park at arrival": func(ctx context.Context) error {
			_, _, err := s.Enqueue(ctx, parkedLock("another", "one"), 0, 0)
			return err
		},
	} {
		began := time.Now()
		refusedAsCorrupt(t, what, began, try(within(t, patience)))
	}
	if err := held.Begin(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := held.Settle(ctx, success("the answer")); !errors.Is(err, idem.ErrNotRecorded) {
		t.Errorf("settled: %v", err)
	}
	disarm()
	eventually(t, "the record", func() bool {
		st, err := history.Look(within(t, patience), s.pool, keysOf(held))
		return err == nil && st.Record != nil && string(st.Record.Answer.Body) == "the answer"
	})
	must(t, place.Leave)
}

func TestUnderTheAlarmCorruptNoSessionOpensAndTheReasonIsSaid(t *testing.T) {
	e := etcdtest.Start(t)
	disarm := e.RaiseCorrupt(t)
	s, err := Open(Options{Endpoints: []string{e.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	eventually(t, "the reason", func() bool {
		return s.Ready() != nil && strings.Contains(s.Ready().Error(), "disarm the CORRUPT alarm")
	})
	disarm()
	must(t, s.WaitReady)
}
