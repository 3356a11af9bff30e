package fault

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// An etcd goes back to an earlier copy of its data, with its revisions, under processes that go on:
// so soon that none of their leases runs out. Nothing is promised for what it has forgotten, but it
// is said, and whatever it makes of that, it does at once: nobody waits for what is not there.
func TestAnEtcdThatGoesBackInTimeIsReportedAndNothingWaitsForWhatItForgot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	member := testkit.StartEtcdIn(t, programs.Etcd, dir, testkit.MemberAddresses(t, 1))[0]
	data, earlier := filepath.Join(dir, "m0"), filepath.Join(dir, "earlier")
	up := cluster.NewUpstream(t)
	config := cluster.Config{
		Endpoints: []string{strings.TrimPrefix(member.Endpoint, "http://")}, Upstream: up.Addr,
		SessionTTL: 15 * time.Second,
		Routes: cluster.Route("hook", "lock: {release_delay: 0s}") +
			cluster.Route("queue", "lock: {strategy: wait, wait_timeout: 10m, release_delay: 0s}") +
			cluster.Route("parked", "lock: {release_delay: 0s}, park: {enabled: true, after: 0s}"),
	}
	a, b := cluster.StartReplica(t, programs, config), cluster.StartReplica(t, programs, config)
	sender := cluster.NewSender()
	begin := func(at *cluster.Replica, route, workflow, event string) <-chan cluster.Answer {
		return sender.Begin(context.Background(), at.Door,
			cluster.Delivery{Route: route, Workflow: workflow, Event: event})
	}
	runs, finish := hangs(up)
	parked := func(event string) {
		t.Helper()
		if got := <-begin(a, "parked", event, event); !got.Parked() {
			t.Fatalf("%s got %v", event, got)
		}
		testkit.Until(t, event+" has run", func() bool { return len(up.Of(event)) > 0 })
	}

	parked("first")
	running := begin(a, "hook", "copied", "copied")
	testkit.Receive(t, "a call runs", runs)
	member.Kill()
	if err := os.CopyFS(earlier, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	member.Restart(t)
	finish <- struct{}{}
	if got := testkit.Receive(t, "its answer", running); !got.Settled() {
		t.Fatalf("what ran when the data was copied got %v", got)
	}
	for i := range 20 { // so that the revisions of what follows are not those of what was before
		if got := <-begin(b, "hook", fmt.Sprint(i), fmt.Sprint(i)); !got.Settled() {
			t.Fatalf("event %d got %v", i, got)
		}
	}
	parked("second")
	forgotten := begin(a, "queue", "forgotten", "forgotten")
	testkit.Receive(t, "a call runs", runs)
	waiters := []<-chan cluster.Answer{begin(a, "queue", "forgotten", "waits at a"),
		begin(b, "queue", "forgotten", "waits at b")}
	testkit.Until(t, "both wait", func() bool { return waits(t, a) && waits(t, b) })

	member.Kill()
	if err := os.Rename(data, filepath.Join(dir, "lost")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(earlier, data); err != nil {
		t.Fatal(err)
	}
	member.Restart(t)
	for _, r := range []*cluster.Replica{a, b} {
		testkit.Until(t, "a replica meets it", func() bool {
			return (<-begin(r, "hook", "after"+r.Door, "after"+r.Door)).Settled()
		})
		r.AwaitLine(t, r.Stderr, `"level":"ERROR","msg":"etcd.went_back"`)
	}
	for _, waiter := range waiters {
		if got := testkit.Receive(t, "who waited for what is not there runs", waiter); !got.Settled() {
			t.Errorf("who waited got %v", got)
		}
	}
	if got := testkit.Receive(t, "the end of a call whose lock is forgotten", forgotten); got.Code != "lock_lost" {
		t.Errorf("the call whose lock is forgotten got %v", got)
	}
	parked("third")
	testkit.Until(t, "the lock that came back is freed", func() bool {
		return (<-begin(b, "hook", "copied", "next")).Settled()
	})
}

// hangs lets the events "copied" and "forgotten" hang: runs is told of their calls, and each ends
// when finish is.
func hangs(up *cluster.Upstream) (runs <-chan struct{}, finish chan<- struct{}) {
	running, end := make(chan struct{}, 10), make(chan struct{})
	up.Always(func(x *cluster.Exchange) bool {
		if x.Event != "copied" && x.Event != "forgotten" || x.Attempt > 1 {
			return cluster.Run(x)
		}
		_ = x.ReadBody()
		running <- struct{}{}
		if x.Event == "forgotten" {
			x.Gone()
			return false
		}
		<-end
		return x.Effect() && x.Answer(200, x.Receipt()) == nil
	})
	return running, end
}

func waits(t *testing.T, r *cluster.Replica) bool {
	return strings.Contains(r.Metrics(t), "hooklock_lock_waiting 1\n")
}
