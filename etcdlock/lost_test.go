package etcdlock

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// lossyKV loses the answer of the next transaction that writes while armed. It is applied at once,
// or when arrive is called.
type lossyKV struct {
	clientv3.KV
	etcdtest.Through
	armed chan bool // true: applied at once
	late  chan *pb.TxnRequest
	reads atomic.Pointer[func(key string)] // called before a read, with its first key
	read  atomic.Pointer[func(key string)] // called when it is answered
	lost  atomic.Bool                      // an answer is, and its transaction is applied
}

// Commit implements link.Committer.
func (kv *lossyKV) Commit(ctx context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	if !decides(txn) { // a read, a session, or a note for people
		if read := kv.reads.Load(); read != nil && len(txn.Success) > 0 {
			(*read)(string(txn.Success[0].GetRequestRange().GetKey()))
		}
		r, err := kv.Through.Commit(ctx, txn)
		if read := kv.read.Load(); read != nil && len(txn.Success) > 0 {
			(*read)(string(txn.Success[0].GetRequestRange().GetKey()))
		}
		return r, err
	}
	select {
	case atOnce := <-kv.armed:
		if atOnce {
			_, _ = kv.Through.Commit(ctx, txn)
			kv.lost.Store(true)
		} else {
			kv.late <- txn
		}
		return nil, context.DeadlineExceeded
	default:
		return kv.Through.Commit(ctx, txn)
	}
}

// decides reports whether these are transactions that compare something.
func decides(txn *pb.TxnRequest) bool {
	return len(txn.Success) > 0 && len(txn.Success[0].GetRequestTxn().GetCompare()) > 0
}

// arrive applies the lost transaction, if it still can be.
func (kv *lossyKV) arrive(tb testing.TB) (applied bool) {
	tb.Helper()
	select {
	case txn := <-kv.late:
		r, err := kv.Through.Commit(within(tb, patience), txn)
		if err != nil {
			return false // its lease is gone
		}
		return r.Responses[0].GetResponseTxn().Succeeded
	default:
		return false
	}
}

// lossy is a store whose answers can be lost.
func lossy(tb testing.TB, e *etcdtest.Etcd, change ...func(*Options)) (*Store, *lossyKV) {
	tb.Helper()
	client := etcdtest.Dial(tb, e.Endpoint)
	kv := &lossyKV{KV: client.KV, Through: etcdtest.ThroughOf(client), armed: make(chan bool, 1),
		late: make(chan *pb.TxnRequest, 1)}
	client.KV = kv
	o := Options{Client: client}
	for _, f := range change {
		f(&o)
	}
	return openStore(tb, o), kv
}

// scenes are what is sent, on what, and how it has to stand afterwards, lost answer or not.
var scenes = map[string]struct {
	scene func(t *testing.T, other *Store) *idem.Lock
	send  func(s *Store, ctx context.Context, l *idem.Lock) error
	want  func(found *idem.Found) bool
	none  bool // no trace is left
}{
	"cancel": {running, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return first3(s.Cancel(ctx, l.Execution, byOps(true), byPerson()))
	}, func(f *idem.Found) bool { return f.Status() == idem.CancelRequested && f.Lock.Cancel.By == "ops" }, false},
	"cancel of a waiting one": {queuedUp, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return first3(s.Cancel(ctx, l.Execution, byOps(true), byPerson()))
	}, func(f *idem.Found) bool { return f.Status() == idem.Aborted && f.Record.Outcome == idem.NotExecuted }, false},
	"guard": {running, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return second(s.Guard(ctx, callbackOf(l), "one", nil))
	}, func(f *idem.Found) bool { return stepsOf(f.AllSteps()) == "one running" }, false},
	"heartbeat": {onHold, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return second(s.Heartbeat(ctx, callbackOf(l), time.Hour))
	}, func(f *idem.Found) bool { return f.Lock != nil && time.Until(f.Lock.HoldUntil) > 50*time.Minute }, false},
	"complete": {onHold, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return second(s.Complete(ctx, callbackOf(l), idem.Final{Status: idem.Success}))
	}, func(f *idem.Found) bool { return f.Status() == idem.Success }, false},
	"forget": {settledOne, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return second(s.Forget(ctx, l.Execution, idem.Cancel{By: "ops", Reason: "try", At: time.Now()}, byPerson()))
	}, nil, true},
	"force release": {running, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return second(s.ForceRelease(ctx, "w", l.Execution, byOps(false), byPerson()))
	}, func(f *idem.Found) bool { return f.Status() == idem.Aborted && f.Record.Abort.Forced }, false},
	"force release of a cooling lock": {coolingOne, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return second(s.ForceRelease(ctx, "w", l.Execution, byOps(false), byPerson()))
	}, func(f *idem.Found) bool { return f.Status() == idem.Failed }, false},
	"release": {acquired, func(s *Store, ctx context.Context, l *idem.Lock) error {
		return s.ReleaseLock(ctx, "w", idem.Callback{Execution: l.Execution, Token: l.Token, AnyKey: true})
	}, nil, true},
}

// byPerson returns what a person's token says of an action.
func byPerson() *idem.Audit { return &idem.Audit{At: time.Now(), Who: "ops", What: "action"} }

func first3[T, U any](_ T, _ U, err error) error { return err }

func running(t *testing.T, s *Store) *idem.Lock {
	t.Helper()
	return mustClaim(t, s, withKey(lockFor("w", "one")), 0).Lock()
}

func queuedUp(t *testing.T, s *Store) *idem.Lock {
	t.Helper()
	running(t, s)
	l := lockFor("w", "two")
	mustEnqueue(t, s, l)
	return &l
}

func onHold(t *testing.T, s *Store) *idem.Lock {
	t.Helper()
	return mustHold(t, s, withKey(lockFor("w", "one")), 10*time.Minute).Lock()
}

func settledOne(t *testing.T, s *Store) *idem.Lock {
	t.Helper()
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	mustSettle(t, held)
	return held.Lock()
}

func coolingOne(t *testing.T, s *Store) *idem.Lock {
	t.Helper()
	l := lockFor("w", "one")
	l.ReleaseDelay = time.Hour
	held := mustClaim(t, s, l, 0)
	if _, err := held.Settle(within(t, patience), unknownEnd()); err != nil {
		t.Fatal(err)
	}
	return held.Lock()
}

func acquired(t *testing.T, s *Store) *idem.Lock {
	t.Helper()
	return mustAcquireLock(t, s, idem.AcquireRequest{Workflow: "w", TTL: time.Hour}).Lock
}

func TestWhatIsAskedForIsTrueAlsoWhereItsAnswerGotLost(t *testing.T) {
	all := maps.Clone(scenes)
	maps.Copy(all, parkedScenes)
	for name, c := range all {
		for how, atOnce := range map[string]bool{"applied, and its answer lost": true,
			"applied after the next attempt": false} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				e := etcdtest.Start(t)
				other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
				s, kv := lossy(t, e)
				l := c.scene(t, other)
				kv.armed <- atOnce
				if err := c.send(s, within(t, patience), l); err != nil {
					t.Fatal(err)
				}
				if len(kv.armed) != 0 {
					t.Fatal("no answer was lost")
				}
				if kv.arrive(t) {
					t.Error("what was lost is applied once more")
				}
				found, err := other.Execution(within(t, patience), l.Execution)
				switch {
				case c.none && !errors.Is(err, idem.ErrNoExecution), !c.none && err != nil:
					t.Fatalf("%+v %v", found, err)
				case !c.none && !c.want(found):
					t.Fatalf("%+v lock %+v record %+v", found, found.Lock, found.Record)
				}
				byKey := slices.Contains([]string{"guard", "heartbeat", "complete", "release"}, name)
				if all := allAudits(t, other, idem.AuditQuery{}); !byKey &&
					(len(all) != 1 || all[0].Result != idem.AuditDone || all[0].After == "") {
					t.Errorf("its audits: %+v", all)
				}
			})
		}
	}
}

func TestAHoldIsHeldAlsoWhereItsAnswerGotLost(t *testing.T) {
	for how, atOnce := range map[string]bool{"applied": true, "applied after the next attempt": false} {
		t.Run(how, func(t *testing.T) {
			e := etcdtest.Start(t)
			other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
			s, kv := lossy(t, e)
			held := mustClaim(t, s, withKey(lockFor("w", "one")), 0)
			kv.armed <- atOnce
			if err := held.Hold(within(t, patience), time.Minute); err != nil {
				t.Fatal(err)
			}
			if kv.arrive(t) {
				t.Error("what was lost is applied once more")
			}
			if s.own.Has(held.Lock().Execution) || !held.Lock().Held {
				t.Errorf("%+v", held.Lock())
			}
			if _, err := other.Complete(within(t, patience), callbackOf(held.Lock()),
				idem.Final{Status: idem.Success}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The answer of a hold may get lost until its caller gives up, and ends the execution.
func TestEndingAHeldExecutionDeletesTheHold(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, s, withKey(lockFor("w", "one")), 0)
	if err := held.Hold(within(t, patience), time.Minute); err != nil {
		t.Fatal(err)
	}
	mustSettle(t, held)
	count(t, e, s.layout.All(protocol.KindLocks), 0)
	count(t, e, s.layout.All(protocol.KindHolds), 0)
}

// Whoever completes a hold tells of it. A process that does not know whether its hold was applied
// must not tell of it again.
func TestTheEndOfAHoldWhoseAnswerGotLostIsReportedOnce(t *testing.T) {
	e := etcdtest.Start(t)
	var told atomic.Int64
	tell := func(o *Options) { o.OnEnded = func(*idem.Record, bool) { told.Add(1) } }
	o := Options{Endpoints: []string{e.Endpoint}}
	tell(&o)
	other := openStore(t, o)
	s, kv := lossy(t, e, tell)
	held := mustClaim(t, s, withKey(lockFor("w", "one")), 0)
	cb := callbackOf(held.Lock())
	var once sync.Once
	look := func(key string) {
		if key == keysOf(held).Lock && kv.lost.Load() {
			once.Do(func() {
				if _, err := other.Complete(within(t, patience), cb, idem.Final{Status: idem.Success}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	kv.armed <- true
	kv.reads.Store(&look)
	if err := held.Hold(within(t, patience), time.Minute); err != nil {
		t.Fatal(err)
	}
	if n := told.Load(); n != 1 {
		t.Errorf("told %d times", n)
	}
}

func TestALockIsAcquiredOnceAlsoWhereTheAnswerGotLost(t *testing.T) {
	for how, atOnce := range map[string]bool{"applied": true, "applied after the next attempt": false} {
		t.Run(how, func(t *testing.T) {
			e := etcdtest.Start(t)
			other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
			s, kv := lossy(t, e)
			kv.armed <- atOnce
			got := mustAcquireLock(t, s, idem.AcquireRequest{Workflow: "w", TTL: time.Minute})
			if kv.arrive(t) {
				t.Error("what was lost is applied once more")
			}
			count(t, e, s.layout.All(protocol.KindLocks), 1)
			if err := other.ReleaseLock(within(t, patience), "w", client(got)); err != nil {
				t.Fatal(err)
			}
			count(t, e, s.layout.All(protocol.KindLocks), 0)
			count(t, e, s.layout.All(protocol.KindHolds), 0)
		})
	}
}

// A cancel that comes before the process knows that it has the lock finds nobody there who looks.
func TestACancelBetweenAClaimAndItsLostAnswerStopsTheExecution(t *testing.T) {
	e := etcdtest.Start(t)
	other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	s, kv := lossy(t, e)
	l := lockFor("w", "one")
	cancel := func(string) {
		if kv.lost.CompareAndSwap(true, false) {
			st, err := history.Look(within(t, patience), other.pool, other.layout.Keys(&l))
			if err != nil {
				t.Error(err)
				return
			}
			cancelIn(t, e, other.own.Make(*st.Lock, other.layout.Keys(&l), nil))
		}
	}
	kv.reads.Store(&cancel)
	kv.armed <- true
	awaitStop(t, stopped(mustClaim(t, s, l, 0)), idem.ErrCancelled)
}

// What is lost while somebody else ends the execution is not applied to what comes after.
func TestAnEndThatAnotherProcessWroteIsToldApart(t *testing.T) {
	e := etcdtest.Start(t)
	other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	s, kv := lossy(t, e)
	held := mustHold(t, other, withKey(lockFor("w", "one")), time.Minute)
	cb := callbackOf(held.Lock())
	kv.armed <- false
	ended := make(chan error, 1)
	go func() {
		_, err := s.Complete(within(t, patience), cb, idem.Final{Status: idem.Failed})
		ended <- err
	}()
	ops := <-kv.late // it has left, and got no answer
	if _, err := other.Complete(within(t, patience), cb, idem.Final{Status: idem.Success}); err != nil {
		<-ended
		t.Skip("the second attempt was faster")
	}
	kv.late <- ops
	if kv.arrive(t) {
		t.Error("what was lost is applied to what has ended")
	}
	if err := <-ended; !errors.Is(err, idem.ErrFinished) {
		t.Errorf("got %v", err)
	}
	if found := mustFind(t, s, cb.Execution); found.Status() != idem.Success {
		t.Errorf("%+v", found.Record)
	}
}
