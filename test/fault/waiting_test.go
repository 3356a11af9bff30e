package fault

import (
	"context"
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/fault/cluster"
)

// A process dies while its delivery waits in the queue, behind an event that runs at the other
// replica. Copies of the waiting event are sent to that one.
func TestAProcessKilledWhileItWaitsLeavesTheQueue(t *testing.T) {
	etcd := etcdtest.Start(t)
	for name, c := range map[string]struct{ inFlight, code, executed string }{
		"conflict": {"conflict", "execution_in_flight", "no"},
		"attach":   {"attach", "lock_lost", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, etcd, "retry", func(s *stage) {
				s.config.Routes = cluster.Route("hook",
					"lock: {strategy: wait, wait_timeout: 20s, release_delay: 0s}, idempotency: {in_flight: "+
						c.inFlight+"}")
			})
			running, finish := make(chan struct{}), make(chan struct{})
			s.up.Next(func(x *cluster.Exchange) bool {
				_ = x.ReadBody()
				close(running)
				<-finish
				return x.Effect() && x.Answer(200, x.Receipt()) == nil
			})
			first := s.delivery
			first.Event = "the-one-that-runs"
			holding := s.sender.Begin(context.Background(), s.healthy.Door, first)
			await(t, "the first event runs", running)
			s.send()
			place := s.journal.Await("the place in the queue", func(c cluster.Change) bool {
				return strings.HasPrefix(c.Key, "queue/") && !c.Deleted
			})
			copied := s.sender.Begin(context.Background(), s.healthy.Door, s.delivery)
			if c.inFlight == "conflict" { // one that attaches does so before the place is given up, which takes seconds
				checkCopy(t, <-copied, c.code, c.executed)
			}
			died := time.Now()
			s.victim.Kill()
			gone := s.journal.Await("the place is given up", func(c cluster.Change) bool {
				return c.Key == place.Key && c.Deleted
			})
			if stayed := gone.At.Sub(died); stayed > ttl+2*time.Second {
				t.Errorf("the dead process kept its place for %v; promised are %v", stayed, ttl+2*time.Second)
			}
			if saw := s.sent().String(); saw != "cut" {
				t.Errorf("the sender saw %s", saw)
			}
			if c.inFlight == "attach" {
				checkCopy(t, <-copied, c.code, c.executed)
			}
			close(finish)
			if a := <-holding; a.String() != "200 executed" {
				t.Errorf("the event that ran all the time got %v", a)
			}
			if a := s.copy(); a.String() != "200 executed" || s.up.Of(s.delivery.Event)[0].Attempt != 1 {
				t.Errorf("the event that had waited gets %v afterwards", a)
			}
			s.checkAfterwards()
		})
	}
}

func checkCopy(t *testing.T, a cluster.Answer, code, executed string) {
	t.Helper()
	if a.Code != code || executed != "" && a.Executed != executed {
		t.Errorf("a copy got %v (executed: %s), not %s", a, a.Executed, code)
	}
}
