package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// NewestLock replaces the one that waits.
func NewestLock(workflow, event string) idem.Lock {
	l := LockFor(workflow, event)
	l.Latest = &idem.Series{}
	return l
}

// NewestParked is that of a delivery which is parked at once.
func NewestParked(workflow, event string) idem.Lock {
	l := ParkedLock(workflow, event)
	l.Latest = &idem.Series{}
	return l
}

// PauseOf is a pause of that scope, from now on.
func PauseOf(tb testing.TB, scope string) idem.Pause {
	tb.Helper()
	s, err := idem.ParsePauseScope(scope)
	if err != nil {
		tb.Fatal(err)
	}
	return idem.Pause{Scope: s, By: "somebody", Reason: "a migration", Since: time.Now()}
}

// MustPause pauses, and waits until every process has acknowledged it.
func MustPause(tb testing.TB, s Store, p idem.Pause) {
	tb.Helper()
	ctx := etcdtest.Within(tb, etcdtest.Patience)
	if _, err := s.Pause(ctx, p, nil); err != nil {
		tb.Fatal(err)
	}
	for len(PauseState(ctx, tb, s).Unacknowledged) > 0 {
		continue // each look asks etcd, and so lets it work
	}
}

// PauseState is the only pause, with how far it is known.
func PauseState(ctx context.Context, tb testing.TB, s Store) idem.PauseState {
	tb.Helper()
	states, err := s.Pauses(ctx)
	if err != nil || len(states) != 1 {
		tb.Fatalf("%+v %v", states, err)
	}
	return states[0]
}

// MustResume ends a pause, and waits until s knows.
func MustResume(tb testing.TB, s Store, p idem.Pause) {
	tb.Helper()
	if _, err := s.Resume(etcdtest.Within(tb, etcdtest.Patience), p.Scope, nil); err != nil {
		tb.Fatal(err)
	}
	for ctx := etcdtest.Within(tb, etcdtest.Patience); s.PausedHere() != nil && ctx.Err() == nil; {
		if _, err := s.Pauses(ctx); err != nil { // asks etcd, and so lets it work
			tb.Fatal(err)
		}
	}
}

// MustBeRefusedAsPaused claims, which has to be refused for that pause.
func MustBeRefusedAsPaused(tb testing.TB, s Store, l idem.Lock, by idem.Pause) {
	tb.Helper()
	held, seen, err := TryClaim(tb, s, l, 0)
	if err != nil || held != nil || seen == nil || seen.Paused == nil || seen.Paused.Scope != by.Scope ||
		seen.Paused.Reason != by.Reason {
		tb.Fatalf("claimed %v, saw %+v, %v", held, seen, err)
	}
}

// Stopped is the channel on which the owner hears why it has to stop.
func Stopped(h *owned.Lock) <-chan error {
	causes := make(chan error, 1)
	h.OnStop(func(cause error) { causes <- cause })
	return causes
}

// AwaitStop waits until the owner hears of want.
func AwaitStop(tb testing.TB, causes <-chan error, want error) {
	tb.Helper()
	select {
	case cause := <-causes:
		if !errors.Is(cause, want) {
			tb.Fatalf("stopped because of %v", cause)
		}
	case <-time.After(etcdtest.Patience):
		tb.Fatal("the owner was never told")
	}
}

// StepsOf spells steps.
func StepsOf(steps []idem.Step) string {
	var texts []string
	for _, s := range steps {
		texts = append(texts, fmt.Sprintf("%s %s", s.Name, s.Status))
	}
	return strings.Join(texts, ", ")
}

// MustKeepNothing fails where something is left of parked executions.
func MustKeepNothing(tb testing.TB, e *etcdtest.Etcd) {
	tb.Helper()
	for _, kind := range []string{protocol.KindRequests, protocol.KindParked, protocol.KindAges, protocol.KindLocks,
		protocol.KindQueue} {
		if left := KeysBelow(tb, e, "/hooklock/v1/"+kind); len(left) > 0 {
			tb.Errorf("left behind: %v", left)
		}
	}
}

// LetterStays fails where the request of a dead letter, or its entry in the index, is not there.
func LetterStays(tb testing.TB, s Store, id idem.ExecutionID) {
	tb.Helper()
	if _, err := s.Request(etcdtest.Within(tb, etcdtest.Patience), id); err != nil {
		tb.Errorf("its request: %v", err)
	}
	page, err := s.ParkedEntries(etcdtest.Within(tb, etcdtest.Patience), idem.ParkedQuery{State: idem.ParkDeadLetter})
	if err != nil || len(page.Entries) != 1 || page.Entries[0].Execution != id {
		tb.Errorf("%+v %v", page, err)
	}
}

// LeaveToAPerson is how a process lets go of an execution that waits for a person.
func LeaveToAPerson(t *testing.T, h idem.RunningLock) {
	t.Helper()
	p := *h.Lock().Parked
	p.Blocked = "it failed ten times"
	if err := h.RecordTry(etcdtest.Within(t, etcdtest.Patience), p); err != nil {
		t.Fatal(err)
	}
	Must(t, h.Release)
}

// SlotsOf is a limit that can be changed.
func SlotsOf(n int64) *atomic.Int64 {
	var v atomic.Int64
	v.Store(n)
	return &v
}

// LimitedLock counts against the limit.
func LimitedLock(workflow, event string) idem.Lock {
	l := LockFor(workflow, event)
	l.Slots = []idem.Slot{{LimitName: "erp", Rule: "erp", Index: -1}}
	return l
}

// TakenSlots are the keys of slots that are taken in etcd.
func TakenSlots(tb testing.TB, e *etcdtest.Etcd) (keys []string) {
	tb.Helper()
	r, err := e.Client.Get(etcdtest.Within(tb, etcdtest.Patience), Layout.All(protocol.KindSlots),
		clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		tb.Fatal(err)
	}
	for _, kv := range r.Kvs {
		keys = append(keys, string(kv.Key))
	}
	return keys
}

// CountKeys counts the keys with a prefix.
func CountKeys(tb testing.TB, e *etcdtest.Etcd, prefix string) int {
	tb.Helper()
	r, err := e.Client.Get(etcdtest.Within(tb, etcdtest.Patience), prefix, clientv3.WithPrefix(),
		clientv3.WithCountOnly())
	if err != nil {
		tb.Fatal(err)
	}
	return int(r.Count)
}

// RestNow writes down that a try has ended, and that it waits for a person where why is not "".
func RestNow(tb testing.TB, h idem.RunningLock, why string) {
	tb.Helper()
	p := *h.Lock().Parked
	p.Blocked = why
	if err := h.RecordTry(etcdtest.Within(tb, etcdtest.Patience), p); err != nil {
		tb.Fatal(err)
	}
}

// WithSlots lets l count against the limit of LimitedLock.
func WithSlots(l idem.Lock) idem.Lock {
	l.Slots = LimitedLock("", "").Slots
	return l
}

// AllExecutions goes through the pages of a list.
func AllExecutions(tb testing.TB, s Store, q idem.ExecutionQuery) (found []idem.Found) {
	tb.Helper()
	for pages := 0; ; pages++ {
		page, err := s.Executions(etcdtest.Within(tb, etcdtest.Patience), q)
		if err != nil {
			tb.Fatal(err)
		}
		if q.PageSize > 0 && len(page.Executions) > q.PageSize {
			tb.Fatalf("%d on a page of %d", len(page.Executions), q.PageSize)
		}
		found = append(found, page.Executions...)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return found
		}
		if pages > 10_000 {
			tb.Fatal("the pages do not end")
		}
	}
}

// AllLocks goes through the pages of a list.
func AllLocks(tb testing.TB, s Store, q idem.LockQuery) (locks []idem.LockView) {
	tb.Helper()
	for {
		page, err := s.Locks(etcdtest.Within(tb, etcdtest.Patience), q)
		if err != nil {
			tb.Fatal(err)
		}
		locks = append(locks, page.Locks...)
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			return locks
		}
	}
}

// EndedAs claims and settles an event, and returns its execution.
func EndedAs(tb testing.TB, s Store, workflow, event string, change func(*idem.Lock), end idem.End) idem.ExecutionID {
	tb.Helper()
	l := LockFor(workflow, event)
	if change != nil {
		change(&l)
	}
	if _, err := MustClaim(tb, s, l, 0).Settle(etcdtest.Within(tb, etcdtest.Patience), end); err != nil {
		tb.Fatal(err)
	}
	return l.Execution
}

// AwaitWaiters waits until n places are taken.
func AwaitWaiters(tb testing.TB, e *etcdtest.Etcd, n int64) {
	tb.Helper()
	etcdtest.Eventually(tb, fmt.Sprintf("%d wait", n), func() bool {
		got, err := e.Count(etcdtest.Within(tb, etcdtest.Patience), "/hooklock/v1/"+protocol.KindQueue)
		return err == nil && got == n
	})
}

// MustAcquireLock acquires a lock for a client.
func MustAcquireLock(tb testing.TB, s Store, q idem.AcquireRequest) *idem.Acquired {
	tb.Helper()
	got, err := s.AcquireLock(etcdtest.Within(tb, etcdtest.Patience), q)
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// PutRaw puts values as another release may have.
func PutRaw(t *testing.T, e *etcdtest.Etcd, values map[string][]byte) {
	t.Helper()
	for key, value := range values {
		if _, err := e.Client.Put(etcdtest.Within(t, etcdtest.Patience), "/hooklock/v1/"+key,
			string(value)); err != nil {
			t.Fatal(err)
		}
	}
}

// Session is that of a store.
type Session struct {
	Name  string           // as in its key
	Lease clientv3.LeaseID // which its locks live on
}

// SessionOf returns the session of s, as a lock of it says.
func SessionOf(tb testing.TB, e *etcdtest.Etcd, s Store) Session {
	tb.Helper()
	held := MustClaim(tb, s, LockFor("a workflow of its own", "event"), 0)
	alive := held.Lock().Alive
	Must(tb, held.Release)
	r, err := e.Client.Get(etcdtest.Within(tb, etcdtest.Patience), Layout.Alive(alive))
	if err != nil || len(r.Kvs) != 1 {
		tb.Fatalf("%s: %v", alive, err)
	}
	return Session{strings.TrimPrefix(Layout.Alive(alive), Layout.All(protocol.KindSessions)),
		clientv3.LeaseID(r.Kvs[0].Lease)}
}

// EndSession takes the lease of a session away, as etcd may.
func EndSession(tb testing.TB, e *etcdtest.Etcd, s Session) {
	tb.Helper()
	if _, err := e.Client.Revoke(etcdtest.Within(tb, etcdtest.Patience), s.Lease); err != nil {
		tb.Fatal(err)
	}
}

// WaitsAt lets p wait, and tells of the lock that it gets.
func WaitsAt(t *testing.T, p *InQueue, l idem.Lock) <-chan idem.RunningLock {
	t.Helper()
	got := make(chan idem.RunningLock, 1)
	ctx := etcdtest.Within(t, etcdtest.Patience)
	go func() {
		defer close(got)
		held, err := InTurn(ctx, p, l)
		if err != nil {
			t.Errorf("%s: %v", l.Execution, err)
			return
		}
		got <- held
	}()
	return got
}

// MustAcquire acquires a lock that is free.
func MustAcquire(tb testing.TB, s Store, workflow string) *locker.Lock {
	tb.Helper()
	l, err := s.TryAcquire(etcdtest.Within(tb, etcdtest.Patience), workflow)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// Left is how many keys there are beside the sessions.
func Left(tb testing.TB, e *etcdtest.Etcd) int64 {
	tb.Helper()
	all, err := e.Count(etcdtest.Within(tb, etcdtest.Patience), "/")
	if err != nil {
		tb.Fatal(err)
	}
	sessions, err := e.Count(etcdtest.Within(tb, etcdtest.Patience), "/hooklock/v1/"+protocol.KindSessions)
	if err != nil {
		tb.Fatal(err)
	}
	return all - sessions
}

// Client is what a Client of the lock API shows: a token of the admin API stands for the callback
// key.
func Client(got *idem.Acquired) idem.Callback {
	return idem.Callback{Execution: got.Lock.Execution, Workflow: got.Lock.Scope.Workflow, Token: got.Lock.Token,
		AnyKey: true}
}

// MustBeReplaced fails where l has not ended for by.
func MustBeReplaced(tb testing.TB, s Store, l, by idem.Lock) {
	tb.Helper()
	r := MustFind(tb, s, l.Execution).Record
	if r == nil || r.Status != idem.Aborted || r.Outcome != idem.NotExecuted || r.Superseded() != by.Execution ||
		!r.Final || r.RequestKept || r.Token != 0 {
		tb.Fatalf("%s: %+v, want superseded by %s", l.EventID, r, by.Execution)
	}
}

// MustHear fails if the waiter of p does not get the record with which its place ended.
func MustHear(tb testing.TB, p *InQueue, by idem.Lock) {
	tb.Helper()
	seen, err := p.Await(etcdtest.Within(tb, etcdtest.Patience), 0)
	if !errors.Is(err, idem.ErrCancelled) || seen.Record.Superseded() != by.Execution {
		tb.Fatalf("%+v %v", seen, err)
	}
}

// IDs are the IDs of executions.
func IDs(found []idem.Found) (all []idem.ExecutionID) {
	for i := range found {
		all = append(all, found[i].ID())
	}
	return all
}
