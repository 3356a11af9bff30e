// Package ledgertest has what tests of a ledger share, in whatever package they stand: executions,
// and the steps that have to go through.
package ledgertest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/locker"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Store is a Store of package etcdlock, which tests beside its parts cannot import by name: each
// test binary has its own. Its methods are those of etcdlock.Store, Control and Locker.
type Store interface {
	idem.Ledger
	idem.ParkLedger
	Execution(context.Context, idem.ExecutionID) (*idem.Found, error)
	Cancel(context.Context, idem.ExecutionID, idem.Cancel, *idem.Audit) (found *idem.Found, before bool, err error)
	Executions(context.Context, idem.ExecutionQuery) (idem.ExecutionPage, error)
	Locks(context.Context, idem.LockQuery) (idem.LockPage, error)
	ParkedEntries(context.Context, idem.ParkedQuery) (idem.ParkedPage, error)
	Pause(context.Context, idem.Pause, *idem.Audit) (*idem.Pause, error)
	Pauses(context.Context) ([]idem.PauseState, error)
	PausedHere() []idem.PauseState
	Resume(context.Context, idem.PauseScope, *idem.Audit) (*idem.Pause, error)
	TryAcquire(context.Context, string) (*locker.Lock, error)
	AcquireLock(context.Context, idem.AcquireRequest) (*idem.Acquired, error)
	WaitReady(context.Context) error
	Close(context.Context) error
}

// Layout is that of a Store without a prefix of its own.
var Layout = protocol.NewLayout("/hooklock")

// Ready returns s, which was opened with err, once it is ready. It closes it with the test.
func Ready[S Store](tb testing.TB, s S, err error) S {
	tb.Helper()
	s = Open(tb, s, err)
	tb.Cleanup(func() { Close(tb, s) })
	return s
}

// Open is Ready for a test that closes the store itself.
func Open[S Store](tb testing.TB, s S, err error) S {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	Must(tb, s.WaitReady)
	return s
}

// Close closes s.
func Close(tb testing.TB, s interface{ Close(context.Context) error }) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), etcdtest.Patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		tb.Error(err)
	}
}

// Must fails the test where a call fails.
func Must(tb testing.TB, call func(context.Context) error) {
	tb.Helper()
	if err := call(etcdtest.Within(tb, etcdtest.Patience)); err != nil {
		tb.Fatal(err)
	}
}

var executions atomic.Uint32

// LockFor is what a delivery of event would put into the store.
func LockFor(workflow, event string) idem.Lock {
	sum := sha256.Sum256([]byte(event))
	key := idem.MakeKey(uint64(len(event)), [16]byte(sum[:16]))
	n := executions.Add(1)
	return idem.Lock{
		ExecutionFacts: idem.ExecutionFacts{
			Execution: idem.NewExecutionID(workflow, key, [4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}),
			Scope:     idem.Scope{Workflow: workflow, Key: key}, Route: "r", EventID: event, Attempt: 1,
			StartedAt: time.Now(), Retention: time.Hour,
		},
	}
}

// Keys are the keys of a lock at a Store without a prefix of its own.
func Keys(h *owned.Lock) protocol.Keys { return Layout.Keys(h.Lock()) }

// RepeatUnapplied repeats what is not applied, and provably never will be, because etcd has not
// answered in time: no answer is late where CPU is not scarce.
func RepeatUnapplied(try func() error) error {
	err := try()
	for errors.Is(err, idem.ErrNotClaimed) {
		err = try()
	}
	return err
}

// TryClaim claims.
func TryClaim(tb testing.TB, s idem.Ledger, l idem.Lock, prev int64) (held idem.RunningLock, seen *idem.Obstacle,
	err error) {
	tb.Helper()
	ctx := etcdtest.Within(tb, etcdtest.Patience)
	err = RepeatUnapplied(func() (err error) { held, seen, err = s.Claim(ctx, l, prev); return err })
	return held, seen, err
}

// MustClaim claims a lock that is free.
func MustClaim(tb testing.TB, s idem.Ledger, l idem.Lock, prev int64) *owned.Lock {
	tb.Helper()
	held, seen, err := TryClaim(tb, s, l, prev)
	if err != nil || held == nil {
		tb.Fatalf("claim: %+v %v", seen, err)
	}
	return held.(*owned.Lock)
}

// MustHold claims and holds.
func MustHold(tb testing.TB, s idem.Ledger, l idem.Lock, ttl time.Duration) *owned.Lock {
	tb.Helper()
	held := MustClaim(tb, s, l, 0)
	if err := held.Hold(etcdtest.Within(tb, etcdtest.Patience), ttl); err != nil {
		tb.Fatal(err)
	}
	return held
}

// TryEnqueue enqueues.
func TryEnqueue(tb testing.TB, s idem.Ledger, l idem.Lock, prev, behind int64) (place idem.QueueEntry,
	seen *idem.Obstacle,
	err error) {
	tb.Helper()
	ctx := etcdtest.Within(tb, etcdtest.Patience)
	err = RepeatUnapplied(func() (err error) { place, seen, err = s.Enqueue(ctx, l, prev, behind); return err })
	return place, seen, err
}

// InQueue is a place, with the ledger that has it.
type InQueue struct {
	idem.QueueEntry
	Ledger idem.Ledger // the one that it waits in
	Lock   idem.Lock   // as it was enqueued
}

// MustEnqueue enqueues an execution that may wait.
func MustEnqueue(tb testing.TB, s idem.Ledger, l idem.Lock) *InQueue {
	tb.Helper()
	place, seen, err := TryEnqueue(tb, s, l, 0, 0)
	if err != nil || place == nil {
		tb.Fatalf("enqueue: %+v %v", seen, err)
	}
	return &InQueue{QueueEntry: place, Ledger: s, Lock: l}
}

// MyTurn waits until the lock is free for p. A process that has not heard of its neighbour's
// session yet takes a lock of it for dead, as all that wait do: it reaps it, is refused, and waits
// on.
func MyTurn(ctx context.Context, p *InQueue) error {
	for {
		seen, err := p.Await(ctx, 0)
		if err != nil || seen.Lock == nil {
			return err
		}
		if err := p.Ledger.Reap(ctx, seen.Lock); err != nil {
			return err
		}
	}
}

// InTurn waits until p is the head of its queue, and returns its lock.
func InTurn(ctx context.Context, p *InQueue, l idem.Lock) (held idem.RunningLock, err error) {
	for held == nil && err == nil {
		if err = MyTurn(ctx, p); err == nil {
			held, _, err = p.ClaimHead(ctx, l, 0)
		}
		if errors.Is(err, idem.ErrNotClaimed) { // it keeps its turn
			err = nil
		}
	}
	return held, err
}

// Success is an end with a kept answer.
func Success(body string) idem.End {
	return idem.End{
		Status: idem.Success, Outcome: idem.Executed, FinishedAt: time.Now(), Remembered: true,
		Answer: &idem.Answer{Status: 200, Bytes: int64(len(body)), Whole: true,
			Header: []idem.HeaderField{{Name: "X-a", Value: "b"}}, Body: []byte(body)},
	}
}

// Failure is an end after which the event may run again.
func Failure() idem.End {
	return idem.End{Status: idem.Failed, Outcome: idem.Executed, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: "upstream_status"}}
}

// UnknownEnd is the end of a call that may have been executed.
func UnknownEnd() idem.End {
	return idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: string(idem.DecisionUpstreamFailed)}}
}

// MustSettle settles with a success.
func MustSettle(tb testing.TB, h idem.RunningLock) *idem.Record {
	tb.Helper()
	r, err := h.Settle(etcdtest.Within(tb, etcdtest.Patience), Success("done"))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// ParkedNow is what is said of an execution that is parked at this moment, with a request to be
// stored.
func ParkedNow(body string) idem.Parked {
	kept := idem.StoredRequest{Value: []byte(body), Bytes: int64(len(body)), MaxAge: time.Hour}
	return idem.Parked{Since: time.Now(), On: idem.ParkLocked, Kept: &kept}
}

// ParkedLock is what a delivery that is parked at once puts into the store.
func ParkedLock(workflow, event string) idem.Lock {
	l := LockFor(workflow, event)
	p := ParkedNow("body of " + event)
	l.Parked = &p
	return l
}

// MustPark parks at once.
func MustPark(tb testing.TB, s idem.Ledger, l idem.Lock, behind int64) {
	tb.Helper()
	_, seen, err := s.Enqueue(etcdtest.Within(tb, etcdtest.Patience), l, 0, behind)
	if seen != nil || err != nil {
		tb.Fatalf("park: %+v %v", seen, err)
	}
}

// AnyRoute is for a process that has every route.
func AnyRoute(string) bool { return true }

// TakeNext takes the next parked execution that is ready at s.
func TakeNext(tb testing.TB, s idem.ParkLedger) *idem.Taken {
	tb.Helper()
	ctx := etcdtest.Within(tb, etcdtest.Patience)
	for {
		scope, _, err := s.NextReady(ctx)
		if err != nil {
			tb.Fatal(err)
		}
		taken, err := s.TakeParked(ctx, scope, AnyRoute)
		switch {
		case taken != nil:
			return taken
		case err != nil:
			tb.Fatal(err)
		}
	}
}

// MustAttempt announces a try.
func MustAttempt(tb testing.TB, h idem.RunningLock) {
	tb.Helper()
	p := *h.Lock().Parked
	p.Tries++
	if err := h.BeginTry(etcdtest.Within(tb, etcdtest.Patience), p, "hash "+time.Now().String()); err != nil {
		tb.Fatal(err)
	}
}

// MustFind finds an execution.
func MustFind(tb testing.TB, s Store, id idem.ExecutionID) *idem.Found {
	tb.Helper()
	f, err := s.Execution(etcdtest.Within(tb, etcdtest.Patience), id)
	if err != nil {
		tb.Fatalf("%s: %v", id, err)
	}
	return f
}

// ByOps is a cancel of a person.
func ByOps(final bool) idem.Cancel {
	return idem.Cancel{By: "ops", Reason: "wrong customer", At: time.Now(), Final: final}
}

// MustCancel cancels an execution that was not cancelled before.
func MustCancel(tb testing.TB, s Store, id idem.ExecutionID, c idem.Cancel) *idem.Found {
	tb.Helper()
	found, before, err := s.Cancel(etcdtest.Within(tb, etcdtest.Patience), id, c, nil)
	if err != nil || before {
		tb.Fatalf("cancel: %+v %v %v", found, before, err)
	}
	return found
}

const callbackKey = "KEY"

// WithKey lets the upstream of l speak with a callback key, that of CallbackOf.
func WithKey(l idem.Lock) idem.Lock {
	hash := sha256.Sum256([]byte(callbackKey))
	l.CallbackHash = hex.EncodeToString(hash[:10])
	l.ReplayBody = 1 << 10
	return l
}

// CallbackOf is what the upstream of l speaks with.
func CallbackOf(l *idem.Lock) idem.Callback {
	return idem.Callback{Execution: l.Execution, Token: l.Token, Key: callbackKey}
}

// KeysBelow lists the keys with a prefix.
func KeysBelow(tb testing.TB, e *etcdtest.Etcd, prefix string) (keys []string) {
	tb.Helper()
	r, err := e.Client.Get(etcdtest.Within(tb, etcdtest.Patience), prefix, clientv3.WithPrefix(),
		clientv3.WithKeysOnly())
	if err != nil {
		tb.Fatal(err)
	}
	for _, kv := range r.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// Count fails the test unless there are so many keys with a prefix.
func Count(t *testing.T, e *etcdtest.Etcd, prefix string, want int) {
	t.Helper()
	if n, err := e.Count(etcdtest.Within(t, etcdtest.Patience), prefix); err != nil || n != int64(want) {
		t.Fatalf("%d keys below %s, want %d: %v", n, prefix, want, err)
	}
}
