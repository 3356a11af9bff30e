package callback_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

func TestAnAcquireThatTimesOutNamesTheHolder(t *testing.T) {
	e, a, _ := replicas(t)
	running := mustClaim(t, a, lockFor("w", "one"), 0)
	_, err := a.AcquireLock(within(t, patience),
		idem.AcquireRequest{Workflow: "w", TTL: time.Minute, Wait: 100 * time.Millisecond})
	var taken *idem.LockHeldError
	if !errors.As(err, &taken) || taken.Holder == nil || taken.Holder.Execution != running.Lock().Execution {
		t.Fatalf("got %v", err)
	}
	waiters(t, e, 0)
}

func TestALockThatWasCancelledLeavesARecord(t *testing.T) {
	_, a, b := replicas(t)
	got := mustAcquireLock(t, a, idem.AcquireRequest{Workflow: "w", TTL: time.Minute})
	mustCancel(t, b, got.Lock.Execution, byOps(false))
	if _, err := a.Heartbeat(within(t, patience), client(got), 0); !errors.Is(err, idem.ErrCancelled) {
		t.Fatalf("got %v", err)
	}
	if err := a.ReleaseLock(within(t, patience), "w", client(got)); err != nil {
		t.Fatal(err)
	}
	if r := mustFind(t, b, got.Lock.Execution).Record; r == nil || r.Status != idem.Aborted ||
		r.Outcome != idem.Unknown || r.Abort.By != "ops" {
		t.Fatalf("%+v", r)
	}
	mustAcquireLock(t, b, idem.AcquireRequest{Workflow: "w", TTL: time.Minute})
}

func TestTheLockAPIDoesNotTouchADeliverysLock(t *testing.T) {
	_, a, b := replicas(t)
	held := mustHold(t, a, withKey(lockFor("w", "one")), time.Minute)
	cb := idem.Callback{Execution: held.Lock().Execution, Workflow: "w", Token: held.Lock().Token, AnyKey: true}
	if err := b.ReleaseLock(within(t, patience), "w", cb); !errors.Is(err, idem.ErrLockHeld) {
		t.Errorf("release: %v", err)
	}
	if _, err := b.Heartbeat(within(t, patience), cb, 0); !errors.Is(err, idem.ErrLockHeld) {
		t.Errorf("renew: %v", err)
	}
}

// heldKV holds the answer of the transaction that puts a hold, once: it is applied, and its sender
// waits until it is let go.
type heldKV struct {
	clientv3.KV
	etcdtest.Through
	applied, goOn chan struct{}
	once          sync.Once
}

// Commit implements link.Committer.
func (kv *heldKV) Commit(ctx context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	r, err := kv.Through.Commit(ctx, txn)
	for i, op := range txn.Success {
		for _, put := range op.GetRequestTxn().GetSuccess() {
			if err == nil && r.Responses[i].GetResponseTxn().GetSucceeded() &&
				bytes.Contains(put.GetRequestPut().GetKey(), []byte("/"+protocol.KindHolds)) {
				kv.once.Do(func() {
					close(kv.applied)
					<-kv.goOn
				})
			}
		}
	}
	return r, err
}

// TestAClientThatGoesWhileItsLockIsPutOnAHoldLeavesNothing: what it waited for is given back, and
// its hold with it.
func TestAClientThatGoesWhileItsLockIsPutOnAHoldLeavesNothing(t *testing.T) {
	e := etcdtest.Start(t)
	client := etcdtest.Dial(t, e.Endpoint)
	kv := &heldKV{KV: client.KV, Through: etcdtest.ThroughOf(client), applied: make(chan struct{}),
		goOn: make(chan struct{})}
	client.KV = kv
	a, b := openStore(t, etcdlock.Options{Client: client}),
		openStore(t, etcdlock.Options{Endpoints: []string{e.Endpoint}})
	running := mustClaim(t, b, lockFor("w", "one"), 0)
	ctx, leave := context.WithCancel(within(t, patience))
	done := make(chan error, 1)
	go func() {
		_, err := a.AcquireLock(ctx, idem.AcquireRequest{Workflow: "w", TTL: time.Hour, Wait: patience})
		done <- err
	}()
	waiters(t, e, 1)
	mustSettle(t, running)
	select {
	case <-kv.applied:
	case err := <-done:
		t.Fatalf("it was not put on a hold: %v", err)
	}
	leave()
	if err := <-done; !errors.Is(err, idem.ErrStoreUnavailable) {
		t.Errorf("got %v", err)
	}
	close(kv.goOn)
	for _, kind := range []string{protocol.KindLocks, protocol.KindHolds} {
		eventually(t, kind+" is empty", func() bool {
			n, err := e.Count(within(t, patience), "/hooklock"+"/v1/"+kind)
			return err == nil && n == 0
		})
	}
}
