package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/claim"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/reap"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

func currentSession(tb testing.TB, s *Store) *session.Session {
	tb.Helper()
	session, _, err := s.keeper.Current()
	if err != nil {
		tb.Fatal(err)
	}
	return session
}

// endSession takes a session's lease away, as etcd may.
func endSession(tb testing.TB, e *etcdtest.Etcd, s *session.Session) {
	tb.Helper()
	if _, err := e.Client.Revoke(within(tb, patience), s.Lease); err != nil {
		tb.Fatal(err)
	}
}

// sessionsOf collects the events of a store.
func sessionsOf(o *Options) <-chan SessionEvent {
	events := make(chan SessionEvent, 64)
	o.OnSession = func(e SessionEvent) { events <- e }
	return events
}

func awaitOpened(tb testing.TB, events <-chan SessionEvent) SessionEvent {
	tb.Helper()
	for {
		select {
		case e := <-events:
			if e.Opened {
				return e
			}
		case <-time.After(patience):
			tb.Fatal("no session opened")
		}
	}
}

func TestARunningLockIsAdoptedByTheNextSession(t *testing.T) {
	e := etcdtest.Start(t)
	o := Options{Endpoints: []string{e.Endpoint}}
	events := sessionsOf(&o)
	s := openStore(t, o)
	awaitOpened(t, events)
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	held.OnStop(func(cause error) { t.Errorf("told to stop: %v", cause) })
	endSession(t, e, currentSession(t, s))
	awaitOpened(t, events)
	eventually(t, "adoption", func() bool {
		return held.Lock().Alive == protocol.SessionAlive(currentSession(t, s).Name)
	})
	if err := held.Begin(); err != nil {
		t.Fatal(err)
	}
	if alive := held.Lock().Alive; alive != protocol.SessionAlive(currentSession(t, s).Name) {
		t.Fatalf("alive key is %q", alive)
	}
	if rec, err := held.Settle(within(t, patience), success("")); err != nil || rec.Status != idem.Success {
		t.Fatalf("%+v %v", rec, err)
	}
}

func TestTheLockOfADeadProcessIsReapedAndItsLateEndCorrectsTheRecordAlone(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	proxy := etcdtest.NewWire(t, e.Endpoint)
	frozen := openStore(t, Options{Endpoints: []string{proxy.Endpoint}, SessionTTL: 2 * time.Second})
	other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, frozen, lockFor("w", "one"), 0)
	stopped := make(chan error, 1)
	held.OnStop(func(cause error) { stopped <- cause })
	old := currentSession(t, frozen)

	proxy.Blackhole(true)
	endSession(t, e, old)
	var next *owned.Lock
	eventually(t, "the other takes the lock over", func() bool {
		won, seen, err := tryClaim(t, other, lockFor("w", "two"), 0)
		if err != nil {
			t.Fatal(err)
		}
		if won != nil {
			next = won.(*owned.Lock)
			return true
		}
		if seen.Lock.Dead {
			if err := other.Reap(within(t, patience), seen.Lock); err != nil {
				t.Fatal(err)
			}
		}
		return false
	})
	if next.Lock().Token <= held.Lock().Token {
		t.Fatal("the successor's token is not larger")
	}
	if cause := <-stopped; !errors.Is(cause, idem.ErrLockLost) {
		t.Fatalf("told to stop with %v", cause)
	}
	proxy.Blackhole(false)
	rec, err := held.Settle(within(t, patience), success("late"))
	if err != nil || rec.Status != idem.Success || rec.ProvenAt.IsZero() || !rec.Answer.Whole {
		t.Fatalf("%+v %v", rec, err)
	}
	st, err := history.Look(within(t, patience), other.pool, keysOf(next))
	if err != nil || !st.Runs(next.Lock().Execution) || st.Lock.Token != next.Lock().Token ||
		st.Lock.Revision != next.Lock().Revision {
		t.Fatalf("the successor's lock was touched: %+v %v", st, err)
	}
	mustSettle(t, next)
}

func TestTheSweepReapsWhatADeadProcessLeft(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	everythingIsReaped(t, e, func(*idem.Lock) {})
}

// A sweep may take longer than etcd keeps the revision at which it began.
func TestASweepThatEtcdCompactsUnderComesToTheLastLock(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	var once sync.Once
	everythingIsReaped(t, e, func(*idem.Lock) { once.Do(func() { e.Compact(t) }) })
}

// everythingIsReaped fails the test unless another process reaps more locks of a dead one than it
// reads at a time. It calls onReaped for each.
func everythingIsReaped(t *testing.T, e *etcdtest.Etcd, onReaped func(*idem.Lock)) {
	t.Helper()
	dead := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	other := openStore(t, Options{Endpoints: []string{e.Endpoint}, OnReaped: onReaped})
	var keys []string
	for i := range reap.SweepPage + 20 {
		keys = append(keys, keysOf(mustClaim(t, dead, lockFor(fmt.Sprintf("w%d", i), "one"), 0)).Record)
	}
	closeStore(t, dead)
	for _, key := range keys {
		eventually(t, "record of "+key, func() bool {
			got, err := e.Client.Get(context.Background(), key)
			return err == nil && len(got.Kvs) == 1
		})
	}
	got, err := e.Client.Get(within(t, patience), other.layout.All(protocol.KindLocks), clientv3.WithPrefix(),
		clientv3.WithCountOnly())
	if err != nil || got.Count != 0 {
		t.Fatalf("%d locks left, %v", got.Count, err)
	}
}

// lateKV loses the next transaction when it is told to: its sender gets no answer, and it arrives
// when arrive is called.
type lateKV struct {
	clientv3.KV
	etcdtest.Through
	armed atomic.Bool
	late  chan *pb.TxnRequest
	lost  func() // not nil: the transaction is applied, only its answer is lost, and this is called
}

func newLateKV(c *clientv3.Client) *lateKV {
	kv := &lateKV{KV: c.KV, Through: etcdtest.ThroughOf(c), late: make(chan *pb.TxnRequest, 1)}
	c.KV = kv
	return kv
}

// Commit implements link.Committer.
func (kv *lateKV) Commit(ctx context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	// else it is a read, which the Store makes from time to time
	if txn.Success[0].GetRequestTxn() != nil && kv.armed.CompareAndSwap(true, false) {
		if kv.lost != nil {
			_, _ = kv.Through.Commit(ctx, txn)
			kv.lost()
			return nil, context.DeadlineExceeded
		}
		kv.late <- txn
		return nil, context.DeadlineExceeded
	}
	return kv.Through.Commit(ctx, txn)
}

func (kv *lateKV) arrive(tb testing.TB) *pb.TxnResponse {
	tb.Helper()
	r, err := kv.Through.Commit(within(tb, patience), <-kv.late)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func TestAClaimThatArrivesLateLeavesNoGhost(t *testing.T) {
	ghosts, _ := lateClaim(t, false)
	if ghosts != 0 {
		t.Fatal("a lock that nobody owns")
	}
}

// Without this the test above would prove nothing.
func TestWithoutTheFenceALateClaimLeavesAGhost(t *testing.T) {
	if ghosts, applied := lateClaim(t, true); ghosts != 1 || !applied {
		t.Fatalf("%d ghosts, applied %v", ghosts, applied)
	}
}

func lateClaim(t *testing.T, unfenced bool) (ghosts int64, applied bool) {
	e := etcdtest.Start(t)
	client := etcdtest.Dial(t, e.Endpoint)
	kv := newLateKV(client)
	s := openStore(t, Options{Client: client})
	o := s.claimOptions()
	o.Unfenced = unfenced
	s.claims = claim.New(o)
	kv.armed.Store(true)
	if _, _, err := s.Claim(within(t, patience), lockFor("w", "one"), 0); !errors.Is(err, idem.ErrNotClaimed) {
		t.Fatalf("claim without an answer: %v", err)
	}
	retry := mustClaim(t, s, lockFor("w", "one"), 0)
	must(t, retry.Release)
	applied = kv.arrive(t).Responses[0].GetResponseTxn().Succeeded
	got, err := e.Client.Get(within(t, patience), s.layout.All(protocol.KindLocks), clientv3.WithPrefix(),
		clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return got.Count, applied
}

func TestAClaimInFlightFollowsTheEpochThatAFenceMoved(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	session := currentSession(t, s)
	// As if another claim of this process had fenced: the store does not know the new epoch yet.
	now, err := e.Client.Get(within(t, patience), session.Key)
	if err != nil || len(now.Kvs) != 1 {
		t.Fatalf("%v %v", now, err)
	}
	if _, err := e.Client.Put(within(t, patience), session.Key, string(now.Kvs[0].Value),
		clientv3.WithLease(session.Lease)); err != nil {
		t.Fatal(err)
	}
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	must(t, held.Release)
}

func TestAClaimIsTakenBackWhenItsCallerHasGone(t *testing.T) {
	e := etcdtest.Start(t)
	proxy := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, Options{Endpoints: []string{proxy.Endpoint}})
	proxy.DropAnswers(true)
	l := lockFor("w", "one")
	locks := func() int64 {
		got, err := e.Client.Get(within(t, patience), s.layout.All(protocol.KindLocks), clientv3.WithPrefix(),
			clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		return got.Count
	}
	ctx, cancel := context.WithCancel(context.Background())
	claimed := make(chan error, 1)
	go func() { _, _, err := s.Claim(ctx, l, 0); claimed <- err }()
	eventually(t, "the claim arrives", func() bool { return locks() == 1 })
	cancel()
	if err := <-claimed; !errors.Is(err, idem.ErrStoreUnavailable) {
		t.Fatalf("got %v", err)
	}
	proxy.Reset()
	proxy.DropAnswers(false)
	eventually(t, "the lock is given back", func() bool { return locks() == 0 })
}

func TestASettleWhoseAnswerGotLostIsKnownAgain(t *testing.T) {
	e := etcdtest.Start(t)
	proxy := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, Options{Endpoints: []string{proxy.Endpoint}})
	// The first settle brings the bucket.
	mustSettle(t, mustClaim(t, s, lockFor("w", "zero"), 0))
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	proxy.DropAnswers(true)
	type result struct {
		rec *idem.Record
		err error
	}
	settled := make(chan result, 1)
	go func() {
		rec, err := held.Settle(within(t, patience), success("body"))
		settled <- result{rec, err}
	}()
	eventually(t, "the settle arrives", func() bool {
		got, err := e.Client.Get(within(t, patience), keysOf(held).Record)
		return err == nil && len(got.Kvs) == 1
	})
	proxy.Reset()
	proxy.DropAnswers(false)
	r := <-settled
	if r.err != nil || r.rec.Status != idem.Success || string(r.rec.Answer.Body) != "body" {
		t.Fatalf("%+v %v", r.rec, r.err)
	}
}

func TestASettleGoesOnAfterItsCallerHasGone(t *testing.T) {
	e := etcdtest.Start(t)
	proxy := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, Options{Endpoints: []string{proxy.Endpoint}})
	held := mustClaim(t, s, lockFor("w", "one"), 0)
	proxy.Blackhole(true)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := held.Settle(ctx, success("")); !errors.Is(err, idem.ErrNotRecorded) {
		t.Fatalf("got %v", err)
	}
	proxy.Blackhole(false)
	eventually(t, "the record", func() bool {
		got, err := e.Client.Get(within(t, patience), keysOf(held).Record)
		return err == nil && len(got.Kvs) == 1
	})
}

func TestASettleFindsANewLeaseWhenTheSharedOneIsGone(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	mustSettle(t, mustClaim(t, s, lockFor("w", "zero"), 0))
	records, err := e.Client.Get(within(t, patience), s.layout.All(protocol.KindRecords), clientv3.WithPrefix())
	if err != nil || len(records.Kvs) != 1 {
		t.Fatalf("%v %v", records, err)
	}
	if _, err := e.Client.Revoke(within(t, patience), clientv3.LeaseID(records.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	// In company: those without a part in it must not suffer.
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			held := mustClaim(t, s, lockFor(fmt.Sprintf("w%d", i), "one"), 0)
			if i%2 == 0 {
				if err := held.Release(within(t, patience)); err != nil {
					t.Error(err)
				}
				return
			}
			if _, err := held.Settle(within(t, patience), success("")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestAnUnknownOutcomeKeepsTheLockClosedForItsReleaseDelay(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := lockFor("w", "one")
	l.ReleaseDelay = time.Hour
	held := mustClaim(t, s, l, 0)
	end := idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: "upstream_failed"}}
	rec, err := held.Settle(within(t, patience), end)
	if err != nil {
		t.Fatal(err)
	}
	_, seen, err := tryClaim(t, s, lockFor("w", "one"), rec.Revision)
	if err != nil || seen == nil || seen.Lock == nil || !seen.Lock.Cooling || seen.Lock.Dead ||
		seen.Lock.CoolUntil.IsZero() {
		t.Fatalf("%+v %v", seen, err)
	}
	e.Expire(t, s.layout.All(protocol.KindHolds))
	eventually(t, "the lock is free", func() bool {
		won, seen, err := tryClaim(t, s, lockFor("w", "one"), rec.Revision)
		if err != nil {
			t.Fatal(err)
		}
		if won != nil {
			return won.Release(within(t, patience)) == nil
		}
		if seen.Lock.Dead {
			if err := s.Reap(within(t, patience), seen.Lock); err != nil {
				t.Fatal(err)
			}
		}
		return false
	})
	st, err := history.Look(within(t, patience), s.pool, keysOf(held))
	if err != nil || st.Record == nil || st.Prev != rec.Revision {
		t.Fatalf("the record of a cooling lock was touched: %+v %v", st, err)
	}
}

func TestTheFirstByteIsRefusedPastTheSessionsValidity(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	for _, name := range []string{"monotonic", "boot"} {
		t.Run(name, func(t *testing.T) {
			var mono, boot atomic.Int64 // what the clocks are ahead
			c := link.Clock{
				Now:  func() time.Time { return time.Now().Add(time.Duration(mono.Load())) },
				Boot: func() time.Duration { return link.SystemClock().Boot() + time.Duration(boot.Load()) },
			}
			s, err := Open(Options{Endpoints: []string{e.Endpoint}, Prefix: "/" + name, Clock: c})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closeStore(t, s) })
			must(t, s.WaitReady)
			held := mustClaim(t, s, lockFor("w", "one"), 0)
			stopped := make(chan error, 1)
			held.OnStop(func(cause error) { stopped <- cause })
			if err := held.Begin(); err != nil {
				t.Fatal(err)
			}
			ahead := &mono
			if name == "boot" {
				ahead = &boot
			}
			ahead.Store(int64(defaultTTL - session.Margin(defaultTTL)))
			if err := held.Begin(); !errors.Is(err, idem.ErrLockLost) {
				t.Fatalf("got %v", err)
			}
			if cause := <-stopped; !errors.Is(cause, idem.ErrLockLost) {
				t.Fatalf("stopped with %v", cause)
			}
		})
	}
}

func TestAloneTheLocksOfTheProcessBeforeAreFreeAtOnce(t *testing.T) {
	e := etcdtest.Start(t)
	before := openStore(t, Options{Endpoints: []string{e.Endpoint}, SessionTTL: time.Hour})
	held := mustClaim(t, before, lockFor("w", "one"), 0)
	// It never hears that its time is over: as if it were dead.
	before.stopKeeping()
	openStore(t, Options{Endpoints: []string{e.Endpoint}, Alone: true})
	eventually(t, "the record", func() bool {
		got, err := e.Client.Get(within(t, patience), keysOf(held).Record)
		return err == nil && len(got.Kvs) == 1
	})
}

// cancelIn asks for a cancel as the admin API will: in the lock.
func cancelIn(tb testing.TB, e *etcdtest.Etcd, h *owned.Lock) {
	tb.Helper()
	l := *h.Lock()
	l.Cancel = &idem.Cancel{By: "ops", Reason: "test", At: time.Now().UTC().Round(time.Millisecond), Final: true}
	value, err := protocol.EncodeLock(&l)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := e.Client.Put(within(tb, patience), keysOf(h).Lock, string(value)); err != nil {
		tb.Fatal(err)
	}
}

func TestACancelFoundInTheOwnLockIsHonoured(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	unknown := idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: "x"}}
	for name, c := range map[string]struct {
		end  func(*owned.Lock) (*idem.Record, error)
		want idem.Status
		out  idem.Outcome
		err  error
	}{
		"unknown outcome": {func(h *owned.Lock) (*idem.Record, error) {
			return h.Settle(within(t, patience), unknown)
		}, idem.Aborted, idem.Unknown, nil},
		"known outcome": {func(h *owned.Lock) (*idem.Record, error) {
			return h.Settle(within(t, patience), success(""))
		}, idem.Success, idem.Executed, nil},
		"never began": {func(h *owned.Lock) (*idem.Record, error) {
			return nil, h.Release(within(t, patience))
		}, idem.Aborted, idem.NotExecuted, idem.ErrCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			held := mustClaim(t, s, lockFor(name, "one"), 0)
			cancelIn(t, e, held)
			if _, err := c.end(held); !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			st, err := history.Look(within(t, patience), s.pool, keysOf(held))
			if err != nil || st.Lock != nil || st.Record == nil || st.Record.Status != c.want ||
				st.Record.Outcome != c.out {
				t.Fatalf("%+v %v", st, err)
			}
			if c.want == idem.Aborted && (st.Record.Abort == nil || st.Record.Abort.By != "ops" ||
				!st.Record.Abort.Final) {
				t.Fatalf("%+v", st.Record.Abort)
			}
		})
	}
}

func TestAValueOfANewerReleaseMakesTheStoreUnavailable(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := lockFor("w", "one")
	for key, value := range map[string]string{s.layout.Record(l.Scope): "\x63", s.layout.Lock(l.Scope): `{"v":99}`} {
		if _, err := e.Client.Put(within(t, patience), key, value); err != nil {
			t.Fatal(err)
		}
		var newer *protocol.NewerError
		if _, _, err := s.Claim(within(t, patience), l, 0); !errors.Is(err, idem.ErrStoreUnavailable) ||
			!errors.As(err, &newer) {
			t.Fatalf("got %v", err)
		}
		if _, err := e.Client.Delete(within(t, patience), key); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForgetsAndBrokenWatchesReachTheCache(t *testing.T) {
	e := etcdtest.Start(t)
	proxy := etcdtest.NewWire(t, e.Endpoint)
	forgot, reset := make(chan idem.ExecutionID, 1), make(chan struct{}, 64)
	s := openStore(t, Options{
		Endpoints: []string{proxy.Endpoint}, OnForget: func(id idem.ExecutionID) {
			forgot <- id
		}, OnReset: func() { reset <- struct{}{} },
	})
	if _, err := e.Client.Put(within(t, patience), s.layout.All(protocol.KindForgets)+"exec_a", ""); err != nil {
		t.Fatal(err)
	}
	if id := <-forgot; id != "exec_a" {
		t.Fatalf("got %q", id)
	}
	endSession(t, e, currentSession(t, s))
	<-reset
	must(t, s.WaitReady)
	if ids, err := s.ListForgotten(within(t, patience)); err != nil ||
		!slices.Equal(ids, []idem.ExecutionID{"exec_a"}) {
		t.Fatalf("got %q %v", ids, err)
	}
}

func TestAFullStoreFreesWhatMayRunAgainAndKeepsTryingTheRest(t *testing.T) {
	e := etcdtest.StartWithQuota(t, 1<<20)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	mustSettle(t, mustClaim(t, s, lockFor("w", "zero"), 0))
	again, kept := mustClaim(t, s, lockFor("again", "one"), 0), mustClaim(t, s, lockFor("kept", "one"), 0)
	fill := string(make([]byte, 256<<10))
	eventually(t, "the store is full", func() bool {
		_, err := e.Client.Put(within(t, patience), "fill", fill)
		return err != nil
	})
	failed := idem.End{Status: idem.Failed, Outcome: idem.Executed, FinishedAt: time.Now(),
		Error: &idem.Failure{Code: "upstream_status"}}
	if _, err := again.Settle(within(t, patience), failed); !errors.Is(err, ErrStoreFull) ||
		!errors.Is(err, idem.ErrNotRecorded) {
		t.Fatalf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := kept.Settle(ctx, success("")); !errors.Is(err, idem.ErrNotRecorded) || errors.Is(err, ErrStoreFull) {
		t.Fatalf("got %v", err)
	}
	if st, err := history.Look(within(t, patience), s.pool, keysOf(again)); err != nil || st.Lock != nil {
		t.Fatalf("%+v %v", st, err)
	}
	if _, _, err := s.Claim(within(t, patience), lockFor("new", "one"), 0); !errors.Is(err, idem.ErrStoreUnavailable) {
		t.Fatalf("got %v", err)
	}
	e.MakeRoom(t)
	eventually(t, "the record", func() bool {
		st, err := history.Look(within(t, patience), s.pool, keysOf(kept))
		return err == nil && st.Lock == nil && st.Record != nil && st.Record.Settled()
	})
}
