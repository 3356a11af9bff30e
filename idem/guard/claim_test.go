package guard

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"
	"time"

	"hooklock/idem"
)

// script is a Ledger whose claims are answered one after the other, the last one again and again.
type script struct {
	quiet
	answers []answered
	locks   []idem.Lock
	prevs   []int64
	reaped  []idem.ExecutionID
	reap    error
	copies  int
}

type answered struct {
	seen *idem.Obstacle // nil and no err: the lock is taken
	err  error
}

func (s *script) Claim(_ context.Context, l idem.Lock, prev int64) (idem.RunningLock, *idem.Obstacle, error) {
	s.locks, s.prevs = append(s.locks, l), append(s.prevs, prev)
	a := s.answers[min(len(s.locks), len(s.answers))-1]
	if a.err != nil || a.seen != nil {
		return nil, a.seen, a.err
	}
	return &oneLock{lock: l}, nil, nil
}
func (s *script) Reap(_ context.Context, dead *idem.Lock) error {
	s.reaped = append(s.reaped, dead.Execution)
	return s.reap
}
func (s *script) CountDuplicate(idem.ExecutionID, time.Duration) { s.copies++ }

// What a claim says is all that any process will ever know of the delivery.
func TestAClaimSaysAllOfItsDelivery(t *testing.T) {
	earlier := &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_first",
		Scope:       idem.Scope{Workflow: "w", Key: keyA},
		Fingerprint: idem.Fingerprint{1}, Attempt: 4}, End: idem.End{Status: idem.Failed, Outcome: idem.Executed}}
	l := &script{answers: []answered{{seen: &idem.Obstacle{Record: earlier, RecordRevision: 9}}, {}}}
	p := testPolicy()
	p.Route, p.MaxDuration, p.ReleaseDelay, p.ReplayBody = "orders", time.Hour, time.Minute, 77
	g := New(Options{Ledger: l, Base: t.Context(), Cache: NewCache(0), Now: func() time.Time { return noon }})
	r := &idem.Request{
		Scope: idem.Scope{Workflow: "w", Key: keyA}, EventID: "evt_1", Fingerprint: idem.Fingerprint{1}, Policy: p,
		TraceParent: "trace",
		Credentials: func(id idem.ExecutionID) string { return "login for " + string(id) },
	}
	a := g.Admit(t.Context(), r)
	if a.Execution == nil || len(l.locks) != 2 || !reflect.DeepEqual(l.prevs, []int64{0, 9}) {
		t.Fatalf("%+v, claims over %v", a, l.prevs)
	}
	got, key := l.locks[1], sha256.Sum256([]byte(a.Execution.CallbackKey))
	want := idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: got.Execution, Scope: r.Scope, Route: "orders",
		EventID:     "evt_1",
		Fingerprint: r.Fingerprint, Credentials: "login for " + string(got.Execution),
		CallbackHash: hex.EncodeToString(key[:10]), TraceParent: "trace", Attempt: 5,
		Earlier: []idem.Attempt{earlier.AsAttempt()}, StartedAt: noon, Retention: 24 * time.Hour},
		MaxDuration:  time.Hour,
		ReleaseDelay: time.Minute, ReplayBody: 77}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if l.locks[0].Attempt != 1 || l.locks[0].Execution == got.Execution || len(a.Execution.CallbackKey) != 16 {
		t.Errorf("the claim before: %+v; callback key %q", l.locks[0], a.Execution.CallbackKey)
	}
}

func TestTheRetentionIsThatOfWhatTheKeyIsMadeOf(t *testing.T) {
	for byPayload, want := range map[bool]time.Duration{false: 24 * time.Hour, true: time.Minute} {
		l := &script{answers: []answered{{}}}
		guardOf(t, l, &noon).Admit(t.Context(),
			&idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, ByPayload: byPayload, Policy: testPolicy()})
		if l.locks[0].Retention != want {
			t.Errorf("by payload %v: %s", byPayload, l.locks[0].Retention)
		}
	}
}

func TestWithoutIdempotencyEachDeliveryIsItsOwnEvent(t *testing.T) {
	l := &script{answers: []answered{{}}}
	g := guardOf(t, l, &noon)
	p := testPolicy()
	p.Idempotency = false
	for range 2 {
		a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, Policy: p})
		if a.Execution == nil {
			t.Fatalf("%+v", a)
		}
		a.Execution.End(Tried{Answer: &idem.Answer{Status: 200}})
	}
	if l.locks[0].Scope.Key == l.locks[1].Scope.Key || l.locks[0].Scope.Key == keyA {
		t.Errorf("%q, %q", l.locks[0].Scope.Key, l.locks[1].Scope.Key)
	}
}

func TestStrategyNoneLocksTheEventAndNotTheWorkflow(t *testing.T) {
	l := &script{answers: []answered{{}}}
	g := guardOf(t, l, &noon)
	p := testPolicy()
	p.Strategy = idem.NoLock
	for _, key := range []idem.Key{keyA, keyB} {
		if a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: key},
			Policy: p}); a.Execution == nil {
			t.Errorf("%+v", a)
		}
	}
	if a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyB},
		Policy: p}); a.Decision != idem.DecisionInFlight {
		t.Errorf("a copy of a running event: %+v", a)
	}
	for _, l := range l.locks {
		if !l.Scope.PerEvent {
			t.Errorf("%+v", l.Scope)
		}
	}
}

func TestAConflictInOneProcessCostsNoCallToTheLedger(t *testing.T) {
	l := &script{answers: []answered{{}}}
	g := guardOf(t, l, &noon)
	first := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, Policy: testPolicy(),
		TraceParent: "trace"})
	for key, want := range map[idem.Key]idem.Decision{keyA: idem.DecisionInFlight, keyB: idem.DecisionLocked} {
		a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: key}, Policy: testPolicy()})
		if a.Decision != want || a.Holder != first.Execution.Lock().Execution || a.HolderTrace != "trace" {
			t.Errorf("%+v", a)
		}
	}
	if len(l.locks) != 1 || l.copies != 1 {
		t.Errorf("%d claims, %d copies", len(l.locks), l.copies)
	}
}

func TestAClaimGoesOnUntilTheLedgerHasSaidSomething(t *testing.T) {
	dead := &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_dead",
		Scope: idem.Scope{Workflow: "w", Key: keyB}},
		Dead: true}
	l := &script{answers: []answered{{err: idem.ErrNotClaimed}, {seen: &idem.Obstacle{Lock: dead}}, {}}}
	a := guardOf(t, l, &noon).Admit(t.Context(),
		&idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, Policy: testPolicy()})
	if a.Execution == nil || len(l.locks) != 3 || !reflect.DeepEqual(l.reaped, []idem.ExecutionID{"exec_dead"}) {
		t.Errorf("%+v: %d claims, reaped %v", a, len(l.locks), l.reaped)
	}
	if l.locks[0].Execution == l.locks[1].Execution || l.locks[2].Attempt != 1 {
		t.Errorf("%+v", l.locks)
	}
	l = &script{answers: []answered{{seen: &idem.Obstacle{Lock: dead}}}, reap: idem.ErrStoreUnavailable}
	if a := guardOf(t, l, &noon).Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA},
		Policy: testPolicy()}); a.Decision != idem.DecisionStoreUnavailable ||
		!errors.Is(a.Err, idem.ErrStoreUnavailable) {
		t.Errorf("%+v", a)
	}
}

func TestAClaimThatNeverEndsIsNoExecution(t *testing.T) {
	over, cancel := context.WithCancelCause(t.Context())
	cancel(ErrShutdown)
	l := &script{answers: []answered{{err: idem.ErrNotClaimed}}}
	g := New(Options{Ledger: l, Base: over, Cache: NewCache(0)})
	if a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA},
		Policy: testPolicy()}); a.Decision != idem.DecisionStoreUnavailable || !errors.Is(a.Err, ErrShutdown) {
		t.Errorf("%+v", a)
	}
	// A second one meets the first one's claim, and gives up with it.
	at, _, err := g.live.enterSpot(t.Context(), idem.Scope{Workflow: "w"})
	if err != nil {
		t.Fatal("the first one has kept its place")
	}
	defer g.live.leaveSpot(at)
	if a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyB},
		Policy: testPolicy()}); a.Decision != idem.DecisionStoreUnavailable || !errors.Is(a.Err, ErrShutdown) {
		t.Errorf("%+v", a)
	}
}

func TestOnlyNewEventsUseUpTheQuotaOfTheirRoute(t *testing.T) {
	p := testPolicy()
	p.NewPerSecond = 1
	again := &idem.Obstacle{Record: &idem.Record{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_first",
		Scope: idem.Scope{Workflow: "w", Key: keyA}, Attempt: 1},
		End: idem.End{Status: idem.Failed, Outcome: idem.Executed}}, RecordRevision: 3}
	l := &script{answers: []answered{{seen: again}, {},
		{seen: &idem.Obstacle{Lock: &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_other",
			Scope: idem.Scope{Workflow: "v", Key: keyB}}}}}, {}}}
	g := guardOf(t, l, &noon)
	for i, want := range []struct {
		workflow string
		decision idem.Decision
	}{{"w", ""}, {"v", idem.DecisionLocked}, {"u", ""}, {"t", idem.DecisionThrottled}} {
		// an event's second attempt, a refusal, a new event, one more
		a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: want.workflow, Key: keyA}, Policy: p})
		if a.Decision != want.decision || (a.Execution != nil) != (want.decision == "") {
			t.Errorf("delivery %d: %+v", i+1, a)
		}
		if a.Decision == idem.DecisionThrottled && a.RetryAfter != time.Second {
			t.Errorf("retry after %s", a.RetryAfter)
		}
	}
	if mine, _, err := g.live.enterSpot(t.Context(), idem.Scope{Workflow: "t"}); mine == nil || err != nil {
		t.Error("one that was throttled has kept its place")
	}
}

func TestAThrottledDeliveryLearnsWhenItsTurnIs(t *testing.T) {
	var q quotas
	p := testPolicy()
	p.NewPerSecond = 4
	for range 4 {
		q.takeToken(p, noon)
	}
	if wait, ok := q.takeToken(p, noon); ok || wait != time.Second/4 {
		t.Errorf("%s", wait)
	}
	if wait, ok := q.takeToken(p, noon.Add(time.Second/8)); ok || wait != time.Second/8 {
		t.Errorf("%s", wait)
	}
	q.addTokens(p, -3, noon.Add(time.Second/8))
	if wait, ok := q.takeToken(p, noon.Add(time.Second/8)); ok || wait != 7*time.Second/8 {
		t.Errorf("%s", wait)
	}
}

func TestExecutionsAreNamedFromTheRandomnessThatIsGiven(t *testing.T) {
	l := &script{answers: []answered{{}}}
	random := bytes.NewReader(bytes.Repeat([]byte{7}, 20))
	g := New(Options{Ledger: l, Base: t.Context(), Cache: NewCache(0), Random: random})
	g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, Policy: testPolicy()})
	if want := idem.NewExecutionID("w", keyA, [4]byte{7, 7, 7, 7}); l.locks[0].Execution != want {
		t.Errorf("%s, want %s", l.locks[0].Execution, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("without randomness, an execution got a name")
		}
	}()
	g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "v", Key: keyA}, Policy: testPolicy()})
}

// failing is a Ledger that cannot decide.
type failing struct {
	quiet
	err error
}

func (f *failing) Claim(context.Context, idem.Lock, int64) (idem.RunningLock, *idem.Obstacle, error) {
	return nil, nil, f.err
}

func TestADeliveryIsRefusedWhereTheLedgerCannotDecideAndTheNextOneMayTry(t *testing.T) {
	down := &failing{err: idem.ErrStoreUnavailable}
	p := testPolicy()
	p.NewPerSecond = 1
	g := New(Options{Ledger: down, Base: t.Context(), Cache: NewCache(0), Now: func() time.Time { return noon }})
	for range 3 { // neither the place in this process nor the route's quota is used up
		a := g.Admit(t.Context(), &idem.Request{Scope: idem.Scope{Workflow: "w", Key: keyA}, Policy: p})
		if a.Decision != idem.DecisionStoreUnavailable || !errors.Is(a.Err, idem.ErrStoreUnavailable) ||
			a.Execution != nil {
			t.Fatalf("%+v", a)
		}
	}
}
