package etcdlock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// slowKV keeps the answer of the next transaction that decides something, until meanwhile has
// returned.
type slowKV struct {
	clientv3.KV
	etcdtest.Through
	meanwhile atomic.Pointer[func()]
}

// Commit implements link.Committer.
func (kv *slowKV) Commit(ctx context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	answer, err := kv.Through.Commit(ctx, txn)
	if decides(txn) {
		if f := kv.meanwhile.Swap(nil); f != nil {
			(*f)()
		}
	}
	return answer, err
}

func TestACancelThatArrivesBeforeTheAnswerToTheClaimStopsTheExecution(t *testing.T) {
	e := etcdtest.Start(t)
	client := etcdtest.Dial(t, e.Endpoint)
	kv := &slowKV{KV: client.KV, Through: etcdtest.ThroughOf(client)}
	client.KV = kv
	s, other := openStore(t, Options{Client: client}), openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := lockFor("w", "one")
	meanwhile := func() {
		mustCancel(t, other, l.Execution, byOps(false))
		eventually(t, "the process has heard of it", func() bool {
			return s.own.Early() == 1
		})
	}
	kv.meanwhile.Store(&meanwhile)
	held := mustClaim(t, s, l, 0)
	stopped := make(chan error, 1)
	held.OnStop(func(cause error) { stopped <- cause })
	select {
	case cause := <-stopped:
		if !errors.Is(cause, idem.ErrCancelled) {
			t.Errorf("told to stop with %v", cause)
		}
	case <-within(t, patience).Done():
		t.Error("nobody told it to stop")
	}
	mustSettle(t, held)
	if n := s.own.Early(); n != 0 {
		t.Errorf("%d are still kept", n)
	}
}
