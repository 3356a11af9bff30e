package etcdlock

import (
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

func TestAClaimThatWasOnItsWayTakesNoLockOnceThePauseIsAcknowledged(t *testing.T) {
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	l := lockFor("w", "event")
	session, value, err := s.claims.Prepare(&l)
	if err != nil {
		t.Fatal(err)
	}
	k := s.layout.Keys(&l)
	late := protocol.Claim(k, protocol.Revisions{Epoch: session.Epoch()}, protocol.Leased{Value: value})
	mustPause(t, s, pauseOf(t, "workflow:w"))
	response, err := etcdtest.ThroughOf(e.Client).Commit(within(t, patience),
		&pb.TxnRequest{Success: protocol.Writes{late}})
	if err != nil || response.Responses[0].GetResponseTxn().Succeeded {
		t.Fatalf("it took the lock after the acknowledgement: %v", err)
	}
}

func TestWhatWasKnownToBePausedStaysSoWhileEtcdIsAway(t *testing.T) {
	t.Parallel()
	e := etcdtest.Start(t)
	wire := etcdtest.NewWire(t, e.Endpoint)
	s := openStore(t, Options{Endpoints: []string{wire.Endpoint}, SessionTTL: 2 * time.Second})
	p := pauseOf(t, "route:r")
	mustPause(t, s, p)
	wire.Blackhole(true)
	defer wire.Blackhole(false)
	for ctx := within(t, patience); s.Ready() == nil && ctx.Err() == nil; {
		_, change, _ := s.keeper.Current()
		select {
		case <-change:
		case <-ctx.Done():
		}
	}
	refusedAsPaused(t, s, lockFor("w", "event"), p)
}

func TestAResumeEndsTheLeaseOfItsPauseOnce(t *testing.T) {
	t.Parallel()
	var seen operations
	seen.news.L = &seen.mu
	s := openStore(t, Options{Endpoints: []string{etcdtest.Start(t).Endpoint}, Prefix: "/resumed",
		OnOperation: seen.add})
	p := pauseOf(t, "route:stripe")
	p.For = time.Hour
	mustPause(t, s, p)
	mustResume(t, s, p)
	seen.await(t, "lease_revoke")
	closeStore(t, s) // waits for whatever else it has to end
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for _, op := range seen.all {
		if op.Code == link.CodeNotFound {
			t.Errorf("%s: etcd was asked for a lease that had ended", op.Name)
		}
	}
}
