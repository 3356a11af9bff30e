package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// sidecar is the configuration of one of several replicas.
func sidecar(t *testing.T, upstream string, members []*testkit.Member) string {
	return fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
data_dir: %q
log: {level: info}
upstream: %s
etcd: {endpoints: ["%s"]}
shutdown_timeout: 5s
routes:
  - {name: fail-fast, path: "/fail-fast/{w}", workflow: "all/{path.w}"}
  - {name: wait, path: "/wait/{w}", workflow: "all/{path.w}", lock: {strategy: wait, wait_timeout: 10s}}
`, t.TempDir(), upstream, strings.Join(testkit.Endpoints(members), `", "`))
}

// Four replicas share one cluster of three members, of which one dies on the way. Senders deliver
// each event through several replicas at once, and again until it was taken.
func TestFourReplicasOnThreeMembersRunEachEventOnceAndEachWorkflowAlone(t *testing.T) {
	const workflows, events, copies = 6, 12, 3
	members := testkit.StartEtcd(t, etcdProgram, 3)
	up := testkit.NewUpstream(t, func(r *testkit.Received) string {
		return testkit.OK(r.Header.Get("Idempotency-Key"))
	})
	var replicas [4]*testkit.Hooklock
	for i := range replicas {
		replicas[i] = testkit.Serve(t, hooklockProgram, sidecar(t, up.URL, members))
	}
	var done atomic.Int64
	var kill sync.Once
	var senders sync.WaitGroup
	failures := make(chan error, workflows*events*copies)
	for w := range workflows {
		for e := range events {
			for c := range copies {
				path, id := fmt.Sprintf("/%s/w%d", [2]string{"fail-fast", "wait"}[e%2], w),
					fmt.Sprintf("event-%d-%d", w, e)
				senders.Go(func() {
					if err := deliver(t, replicas[(w+e+c)%len(replicas)].Addr, path, id); err != nil {
						failures <- err
					}
					if done.Add(1) == workflows*events*copies/3 {
						kill.Do(members[1].Kill)
					}
				})
			}
		}
	}
	senders.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	ran := map[string]int{}
	for _, r := range up.Received("") {
		ran[r.Header.Get("Idempotency-Key")]++
	}
	if len(ran) != workflows*events {
		t.Errorf("%d of %d events ran", len(ran), workflows*events)
	}
	for id, n := range ran {
		if n != 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
	for w := range workflows {
		if most := up.MostAtOnce(fmt.Sprintf("all/w%d", w)); most != 1 {
			t.Errorf("of workflow %d, %d ran at once", w, most)
		}
	}
}

// deliver does what senders do: it sends an event again until its answer comes.
func deliver(t *testing.T, addr, path, id string) error {
	c := testkit.Dial(t, addr)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	var last string
	for {
		c.Say(testkit.Request(path, "{}", "Idempotency-Key: "+id))
		a, err := c.TryAnswer("POST")
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", id, err)
		case a.Status == 200 && string(a.Body) == id:
			return nil
		case a.Status != 409 && a.Status != 503:
			return fmt.Errorf("%s: %v", id, a)
		}
		last = a.Decision()
		select {
		case <-again.C:
		case <-t.Context().Done():
			return fmt.Errorf("%s: %s until the end: %w", id, last, t.Context().Err())
		}
	}
}
