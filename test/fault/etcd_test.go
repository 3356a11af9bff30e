package fault

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// work is the usual script of an upstream that takes a moment.
func work(d time.Duration) cluster.Script {
	return func(x *cluster.Exchange) bool {
		if x.ReadBody() != nil {
			return false
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		<-timer.C
		return x.Effect() && x.Answer(200, x.Receipt()) == nil
	}
}

// etcdFault is something that happens to a cluster of three, of which two members always go on.
type etcdFault struct {
	name string
	// strike breaks something and returns what mends it. lasts is how long it stays broken.
	strike func(*testing.T, *cluster.Etcd) (mend func())
	lasts  time.Duration
}

var etcdFaults = []etcdFault{
	{"the leader is killed", func(t *testing.T, e *cluster.Etcd) func() {
		m := e.Members[e.Leader()]
		m.Kill()
		return func() { m.Restart(t); m.AwaitHealthy(t) }
	}, 2 * time.Second},
	{"the leader stands still for longer than a session lives", func(t *testing.T, e *cluster.Etcd) func() {
		m := e.Members[e.Leader()]
		m.Freeze(t)
		return func() { m.Thaw(t) }
	}, ttl + time.Second},
	{"an endpoint takes everything and answers nothing", func(_ *testing.T, e *cluster.Etcd) func() {
		e.Wires[0].Blackhole(true)
		return func() { e.Wires[0].Blackhole(false) }
	}, ttl + time.Second},
	{"the answers of an endpoint are lost", func(_ *testing.T, e *cluster.Etcd) func() {
		e.Wires[1].DropAnswers(true)
		return func() { e.Wires[1].Reset(); e.Wires[1].DropAnswers(false) }
	}, 2 * time.Second},
	{"every connection is reset", func(_ *testing.T, e *cluster.Etcd) func() {
		for _, w := range e.Wires {
			w.Reset()
		}
		return func() {}
	}, 0},
	{"an endpoint is slow", func(_ *testing.T, e *cluster.Etcd) func() {
		e.Wires[2].Delay(300 * time.Millisecond)
		return func() { e.Wires[2].Delay(0) }
	}, 2 * time.Second},
}

func TestTrafficGoesOnWhileEtcdLosesAMember(t *testing.T) {
	t.Parallel()
	e := cluster.StartEtcd(t, programs, 3)
	up := cluster.NewUpstream(t)
	up.Always(work(3 * time.Millisecond))
	var replicas []*cluster.Replica
	for i := range 2 {
		replicas = append(replicas, cluster.StartReplica(t, programs,
			cluster.Config{Endpoints: e.Endpoints(i), Upstream: up.Addr, SessionTTL: ttl}))
	}
	traffic := &cluster.Traffic{Senders: 8, Workflows: 5, Route: "hook", Doors: func() []string {
		return []string{replicas[0].Door, replicas[1].Door}
	}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	wait := traffic.Start(ctx)
	faults := etcdFaults
	if testing.Short() {
		faults = faults[:3]
	}
	for _, f := range faults {
		traffic.AwaitMore(t, 20)
		began := time.Now()
		mend := f.strike(t, e)
		timer := time.NewTimer(f.lasts)
		<-timer.C
		mend()
		traffic.AwaitMore(t, 20)
		t.Logf("%s: longest time without an event done %.1f s", f.name, traffic.Gap(began).Seconds())
	}
	cancel()
	finish(t, wait)
	t.Logf("%+v", traffic.Check(t, up))
	if overlaps, stale := up.Overlaps(); len(overlaps) > 0 || stale > 0 {
		t.Errorf("calls of one workflow overlapped at the upstream though no process stood still: %v, stale %d",
			overlaps, stale)
	}
	if n := up.Late(); n > 0 {
		t.Errorf("%d calls came after one of a newer holder though no process stood still", n)
	}
	for _, r := range replicas {
		if n := cluster.Count(r.Stderr, `"panic"`); n > 0 {
			t.Errorf("%d panics", n)
		}
		if n := cluster.Count(r.Stderr, `"etcd.went_back"`); n > 0 {
			t.Errorf("etcd is said %d times to have gone back in time, and lost nothing", n)
		}
	}
}

// finish waits until every sender has brought its last event to an end: no event is lost.
func finish(t *testing.T, wait func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); wait() }()
	select {
	case <-done:
	case <-time.After(cluster.Patience):
		t.Fatalf("events are not done %v after the last fault: they are lost", cluster.Patience)
	}
}

// While nobody answers, a running call is closed when nobody can vouch for its lock any more, and
// what was begun ends as unknown.
func TestAllOfEtcdIsAwayForLongerThanASessionLives(t *testing.T) {
	t.Parallel()
	e := cluster.StartEtcd(t, programs, 3)
	up := cluster.NewUpstream(t)
	journal := cluster.NewJournal(t, e.Client, "/hooklock")
	r := cluster.StartReplica(t, programs, cluster.Config{
		Endpoints: e.Endpoints(0), Upstream: up.Addr, SessionTTL: ttl,
		Routes: cluster.Route("hook", "lock: {release_delay: 0s}") + cluster.Route("loose", "on_store_down: forward") +
			cluster.Route("strict", "on_store_down: reject"),
	})
	sender := cluster.NewSender()
	send := func(route, workflow, event string) cluster.Answer {
		return sender.Send(context.Background(), r.Door,
			cluster.Delivery{Route: route, Workflow: workflow, Event: event})
	}
	if a := send("hook", "w", "before"); a.String() != "200 executed" {
		t.Fatalf("before all: %v", a)
	}
	running, closed := make(chan struct{}), make(chan struct{})
	up.Always(func(x *cluster.Exchange) bool {
		if x.Event != "long" || x.Attempt > 1 {
			return cluster.Run(x)
		}
		_ = x.ReadBody()
		close(running)
		x.Gone()
		close(closed)
		return false
	})
	long := sender.Begin(context.Background(), r.Door, cluster.Delivery{Route: "hook", Workflow: "w", Event: "long"})
	await(t, "the call runs", running)

	began := time.Now()
	e.FreezeAll()
	await(t, "the call is closed", closed)
	if after := time.Since(began); after > 2*ttl { // half of it is for a busy machine
		t.Errorf("the call was closed %v after etcd was gone; a session lives %v", after, ttl)
	}
	if a := <-long; a.Code != "lock_lost" || a.Status != 503 || a.Executed != "unknown" || a.Recorded {
		t.Errorf("the sender of the running call got %v (executed: %s)", a, a.Executed)
	}
	if a := send("strict", "w2", "refused"); a.Code != "store_unavailable" || a.Status != 503 || a.Executed != "no" ||
		a.RetryAfter == "" {
		t.Errorf("on_store_down: reject answers %v (executed: %s, Retry-After %q)", a, a.Executed, a.RetryAfter)
	}
	if a := send("loose", "w3", "forwarded"); a.Status != 200 ||
		!strings.HasPrefix(a.Decision, "bypassed; would=store_unavailable") {
		t.Errorf("on_store_down: forward answers %v", a)
	}
	if n := len(up.Of("refused")); n != 0 {
		t.Errorf("the upstream saw a refused event %d times", n)
	}
	if left := 5*time.Second - time.Since(began); left > 0 {
		timer := time.NewTimer(left)
		<-timer.C
	}
	e.ThawAll()
	cluster.AwaitMore(t, r.Stderr, 1, `"session.opened"`)
	if end := journal.Await("the record", cluster.RecordOf("long")); end.Value.Ended() != "FAILED unknown" {
		t.Errorf("the record says %s", end.Value.Ended())
	}
	for what, want := range map[string]string{"before": "200 replayed", "long": "200 executed"} {
		if a := send("hook", "w", what); a.String() != want {
			t.Errorf("afterwards %s gets %v, not %s", what, a, want)
		}
	}
	if a := send("strict", "w2", "refused"); a.String() != "200 executed" {
		t.Errorf("a refused event gets %v afterwards", a)
	}
	up.CheckFence()
}

// A session that is lost costs nothing where nobody else wants its locks: the call goes on under
// the next one.
func TestALostSessionCostsNothingWhereNoOtherDeliveryWantsItsLocks(t *testing.T) {
	t.Parallel()
	e := cluster.StartEtcd(t, programs, 1)
	up := cluster.NewUpstream(t)
	journal := cluster.NewJournal(t, e.Client, "/hooklock")
	r := cluster.StartReplica(t, programs,
		cluster.Config{Endpoints: e.Endpoints(0), Upstream: up.Addr, SessionTTL: ttl})
	running, finish := make(chan struct{}), make(chan struct{})
	up.Next(func(x *cluster.Exchange) bool {
		_ = x.ReadBody()
		close(running)
		<-finish
		return x.Effect() && x.Answer(200, x.Receipt()) == nil
	})
	d := cluster.Delivery{Route: "hook", Workflow: "w", Event: "long"}
	answer := cluster.NewSender().Begin(context.Background(), r.Door, d)
	await(t, "the call runs", running)
	lock := journal.Await("its lock", cluster.LockOf("long"))
	leases, err := e.Client.Leases(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leases.Leases {
		if _, err := e.Client.Revoke(context.Background(), l.ID); err != nil {
			t.Fatal(err)
		}
	}
	journal.Await("the lock is adopted", func(c cluster.Change) bool {
		return c.Key == lock.Key && c.Created == lock.Created && c.Revision > lock.Revision &&
			c.Value.Alive != lock.Value.Alive
	})
	close(finish)
	if a := <-answer; !a.Settled() {
		t.Errorf("the sender got %v", a)
	}
	if end := journal.Await("the record", cluster.RecordOf("long")); end.Value.Ended() != "SUCCESS executed" {
		t.Errorf("the record says %s", end.Value.Ended())
	}
	testkit.Until(t, "nothing is locked", func() bool { return len(journal.Left("locks/")) == 0 })
	if n := cluster.Count(r.Stderr, `"lock.lost"`); n != 0 {
		t.Error(fmt.Sprint(n, " locks were lost"))
	}
}
