package fault

import (
	"context"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// An upstream may go on with a call whose process is dead: release_delay keeps the workflow closed
// for that long after the burial.
func TestAfterADeathTheWorkflowStaysClosedForItsReleaseDelay(t *testing.T) {
	t.Parallel()
	const delay = 2 * time.Second
	etcd := etcdtest.Start(t)
	s := newStage(t, etcd, "block", func(s *stage) {
		s.config.Routes = cluster.Route("hook", "lock: {release_delay: 2s}, idempotency: {on_unknown: block}")
	})
	reading := scripted(func(_ *stage, x *cluster.Exchange, now func()) { _ = x.ReadBody(); now() })(s)
	s.send()
	await(t, "the request was read", reading)
	lock := s.claimed()
	died := time.Now()
	s.victim.Kill()
	cooling := s.journal.Await("the lock cools down", func(c cluster.Change) bool {
		return c.Key == lock.Key && c.Value.Cooling
	})
	if record := s.journal.Await("the record",
		cluster.RecordOf(s.delivery.Event)); record.Revision != cooling.Revision {
		t.Errorf("the lock cools down from revision %d on, the record was written at %d", cooling.Revision,
			record.Revision)
	}
	d := s.delivery
	d.Event = "the-next-event"
	var next cluster.Answer
	refused := 0
	testkit.Until(t, "the workflow's next event runs", func() bool {
		next = s.sender.Send(context.Background(), s.healthy.Door, d)
		if next.Code == "workflow_locked" && next.RetryAfter != "" {
			refused++
			return false
		}
		return true
	})
	if next.String() != "200 executed" || refused == 0 {
		t.Fatalf("the next event got %v after %d refusals", next, refused)
	}
	// The lock began to cool down before this process heard of it, and its lease lives at least as
	// long as it says.
	if ran := s.up.Of(d.Event)[0].Arrived; ran.Sub(cooling.At) < delay-100*time.Millisecond {
		t.Errorf("the next event ran %v after the lock was reaped; release_delay is %v", ran.Sub(cooling.At), delay)
	} else if ran.Sub(died) > ttl+2*time.Second+delay {
		t.Errorf("the next event ran %v after the death; promised are %v", ran.Sub(died), ttl+2*time.Second+delay)
	}
	if a := s.copy(); a.Code != "outcome_unknown" {
		t.Errorf("a copy of the event that nobody knows about got %v", a)
	}
}
