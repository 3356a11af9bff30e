package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

var errDead = errors.New("the process is dead")

// mortalKV lets some transactions that decide something through and then nothing any more. The
// answer of the last one does not arrive.
type mortalKV struct {
	clientv3.KV
	etcdtest.Through
	left atomic.Int64
	dead chan struct{}
}

// Commit implements link.Committer.
func (kv *mortalKV) Commit(ctx context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	if !decides(txn) {
		return kv.Through.Commit(ctx, txn)
	}
	switch left := kv.left.Add(-1); {
	case left == 0:
		_, _ = kv.Through.Commit(ctx, txn)
		close(kv.dead)
		return nil, errDead
	case left == -1:
		select {
		case <-kv.dead:
		default:
			close(kv.dead)
		}
		return nil, errDead
	case left < 0:
		return nil, errDead
	}
	return kv.Through.Commit(ctx, txn)
}

// diesAfter runs do in a process of its own, which dies after some transactions; with 0 the first
// one does not arrive.
func diesAfter(t *testing.T, e *etcdtest.Etcd, writes int64, do func(ctx context.Context, s *Store, dies func())) {
	t.Helper()
	client := etcdtest.Dial(t, e.Endpoint)
	kv := &mortalKV{KV: client.KV, Through: etcdtest.ThroughOf(client), dead: make(chan struct{})}
	kv.left.Store(1 << 30)
	client.KV = kv
	s := openReady(t, Options{Client: client})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(ctx, s, func() { kv.left.Store(writes) })
	}()
	select {
	case <-kv.dead:
	case <-time.After(patience):
		t.Error("it has never come so far")
	}
	die(t, e, s)
	cancel()
	<-done
	if err := s.Close(ctx); err == nil && writes == 0 {
		t.Log("nothing was left undone")
	}
}

// TestADeathAtAnyMomentLeavesOneClearEnd lets the process that acts die before and after each
// transaction of a hold, a cancel, a complete and a force release. Whatever was asked is then true
// or not, the execution has one end in the time that its leases have, and its lock is free.
func TestADeathAtAnyMomentLeavesOneClearEnd(t *testing.T) {
	claimed := func(s *Store) *owned.Lock {
		held, _, err := s.Claim(context.Background(), withKey(lockFor("w", "one")), 0)
		if err != nil || held == nil {
			panic(fmt.Sprint("claim: ", err))
		}
		return held.(*owned.Lock)
	}
	for name, c := range map[string]struct {
		writes int64
		do     func(ctx context.Context, s *Store, dies func()) *idem.Lock // by the process that dies
		on     func(s *Store) *owned.Lock                                  // by another one, before
		ask    func(ctx context.Context, s *Store, l *idem.Lock)           // by the process that dies
		want   string
	}{
		"a hold that did not arrive": {0, func(ctx context.Context, s *Store, dies func()) *idem.Lock {
			h := claimed(s)
			dies()
			_ = h.Hold(ctx, time.Hour)
			return h.Lock()
		}, nil, nil, "FAILED unknown lock_lost"},
		"a hold without an answer": {1, func(ctx context.Context, s *Store, dies func()) *idem.Lock {
			h := claimed(s)
			dies()
			_ = h.Hold(ctx, time.Hour)
			return h.Lock()
		}, nil, nil, "FAILED unknown hold_expired"},
		"a cancel that did not arrive": {0, nil, held(time.Hour), func(ctx context.Context, s *Store, l *idem.Lock) {
			_, _, _ = s.Cancel(ctx, l.Execution, byOps(false), nil)
		}, "FAILED unknown hold_expired"},
		"a cancel without an answer": {1, nil, held(time.Hour), func(ctx context.Context, s *Store, l *idem.Lock) {
			_, _, _ = s.Cancel(ctx, l.Execution, byOps(false), nil)
		}, "ABORTED unknown ops"},
		"a complete that did not arrive": {0, nil, held(time.Hour), func(ctx context.Context, s *Store, l *idem.Lock) {
			_, _ = s.Complete(ctx, callbackOf(l), idem.Final{Status: idem.Success})
		}, "FAILED unknown hold_expired"},
		"a complete without an answer": {1, nil, held(time.Hour), func(ctx context.Context, s *Store, l *idem.Lock) {
			_, _ = s.Complete(ctx, callbackOf(l), idem.Final{Status: idem.Success})
		}, "SUCCESS executed"},
		"a force release without an answer": {1, nil, held(time.Hour),
			func(ctx context.Context, s *Store, l *idem.Lock) {
				_, _ = s.ForceRelease(ctx, "w", l.Execution, byOps(false), nil)
			}, "ABORTED unknown ops"},
		"a heartbeat without an answer": {1, nil, held(time.Hour), func(ctx context.Context, s *Store, l *idem.Lock) {
			_, _ = s.Heartbeat(ctx, callbackOf(l), time.Hour)
		}, "FAILED unknown hold_expired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := etcdtest.Start(t)
			other := openStore(t, Options{Endpoints: []string{e.Endpoint}})
			var l *idem.Lock
			if c.on != nil {
				l = c.on(other).Lock()
			}
			diesAfter(t, e, c.writes, func(ctx context.Context, s *Store, dies func()) {
				if c.do != nil {
					l = c.do(ctx, s, dies)
					return
				}
				dies()
				c.ask(ctx, s, l)
			})
			holds := other.layout.All(protocol.KindHolds)
			if n, err := e.Count(within(t, patience), holds); err != nil || n > 0 {
				e.Expire(t, holds)
			}
			eventually(t, "it ends", func() bool { return mustFind(t, other, l.Execution).Record != nil })
			r := mustFind(t, other, l.Execution).Record
			got := fmt.Sprintf("%s %s", r.Status, r.Outcome)
			if r.Error != nil {
				got += " " + r.Error.Code
			}
			if r.Abort != nil {
				got += " " + r.Abort.By
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			count(t, e, other.layout.All(protocol.KindLocks), 0)
			count(t, e, holds, 0)
			mustClaim(t, other, lockFor("w", "two"), 0)
		})
	}
}

// held is a lock that a process which lives has taken and holds.
func held(ttl time.Duration) func(s *Store) *owned.Lock {
	return func(s *Store) *owned.Lock {
		var h idem.RunningLock
		err := applied(func() (err error) {
			h, _, err = s.Claim(context.Background(), withKey(lockFor("w", "one")), 0)
			return err
		})
		if err != nil || h == nil || h.Hold(context.Background(), ttl) != nil {
			panic(fmt.Sprint("hold: ", err))
		}
		return h.(*owned.Lock)
	}
}

func TestAReapedExecutionIsReportedOnce(t *testing.T) {
	e := etcdtest.Start(t)
	var reaped atomic.Int64
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}, OnReaped: func(*idem.Lock) { reaped.Add(1) }})
	l := lockFor("w", "event")
	l.Alive, l.ReleaseDelay = protocol.SessionAlive("nobody"), time.Hour
	value, err := protocol.EncodeLock(&l)
	if err != nil {
		t.Fatal(err)
	}
	putRaw(t, e, map[string][]byte{strings.TrimPrefix(s.layout.Lock(l.Scope), s.layout.Root): value})
	at, err := history.Look(within(t, patience), s.pool, s.layout.Keys(&l))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second meets what the first has made
		if err := s.reaper.Reap(within(t, patience), at.Lock); err != nil {
			t.Fatal(err)
		}
	}
	if n := reaped.Load(); n != 1 {
		t.Errorf("told of %d reaped locks", n)
	}
	cools, err := history.Look(within(t, patience), s.pool, s.layout.Keys(&l))
	if err != nil || cools.Lock == nil || !cools.Lock.Cooling {
		t.Fatalf("%+v %v", cools, err)
	}
	// as at the end of its delay
	if _, err := e.Client.Delete(within(t, patience), s.layout.Alive(protocol.HoldAlive(l.Execution))); err != nil {
		t.Fatal(err)
	}
	if err := s.reaper.Reap(within(t, patience), cools.Lock); err != nil {
		t.Fatal(err)
	}
	count(t, e, s.layout.All(protocol.KindLocks), 0)
	if n := reaped.Load(); n != 1 {
		t.Errorf("the end of a release delay reaps nothing: told of %d", n)
	}
}

func TestALockThatWasStoppedDoesNotBegin(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	held := mustClaim(t, s, lockFor("w", "event"), 0)
	why := errors.New("why it was stopped")
	held.Stop(why)
	if err := held.Begin(); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
