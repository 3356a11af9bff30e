package fault

import (
	"context"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// No proxy here: the packets of real connections vanish, as when a cable is pulled.
func TestACableIsPulledBetweenAReplicaAndEtcd(t *testing.T) {
	etcd := etcdtest.Start(t)
	up := cluster.NewUpstream(t)
	journal := cluster.NewJournal(t, etcd.Client, "/hooklock")
	island := cluster.NewIsland(t, programs, cluster.Config{Endpoints: []string{etcd.Endpoint}, Upstream: up.Addr,
		SessionTTL: ttl})
	cluster.AwaitMore(t, island.Stderr, 0, `"session.opened"`)
	running, closed := make(chan struct{}), make(chan struct{})
	up.Next(func(x *cluster.Exchange) bool {
		_ = x.ReadBody()
		close(running)
		x.Gone()
		close(closed)
		return false
	})
	sender := cluster.NewSender()
	d := cluster.Delivery{Route: "hook", Workflow: "w", Event: "long"}
	answer := sender.Begin(context.Background(), island.Door, d)
	await(t, "the call runs", running)
	pulled := time.Now()
	island.Unplug()
	await(t, "the call is closed", closed)
	if after := time.Since(pulled); after > 2*ttl { // half of it is for a busy machine
		t.Errorf("the call was closed %v after the cable was pulled; a session lives %v", after, ttl)
	}
	if a := <-answer; a.Code != "lock_lost" || a.Executed != "unknown" {
		t.Errorf("its sender got %v (executed: %s)", a, a.Executed)
	}
	journal.Await("the end of the session", func(c cluster.Change) bool {
		return c.Deleted && len(c.Key) > 9 && c.Key[:9] == "sessions/"
	})
	refused := d
	refused.Event, refused.Workflow = "refused", "another"
	if a := sender.Send(context.Background(), island.Door, refused); a.Code != "store_unavailable" ||
		a.Executed != "no" {
		t.Errorf("a delivery without etcd got %v", a)
	}
	plugged := time.Now()
	island.Plug()
	cluster.AwaitMore(t, island.Stderr, 1, `"session.opened"`)
	t.Logf("the next session opened %.1f s after the cable was back", time.Since(plugged).Seconds())
	if end := journal.Await("the record", cluster.RecordOf("long")); end.Value.Ended() != "FAILED unknown" {
		t.Errorf("the record says %s", end.Value.Ended())
	}
	testkit.Until(t, "nothing is locked", func() bool { return len(journal.Left("locks/")) == 0 })
	for _, d := range []cluster.Delivery{d, refused} {
		if a := sender.Send(context.Background(), island.Door, d); a.String() != "200 executed" {
			t.Errorf("%s gets %v afterwards", d.Event, a)
		}
	}
	up.CheckFence()
}
