package proxy

import (
	"strings"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// TestADuplicateGetsTheStatusOnceTheAnswerHasLeft: with the status it is told that the rest is not
// there any more, and the event does not run again.
func TestADuplicateGetsTheStatusOnceTheAnswerHasLeft(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	minute := func(p *idem.Policy) { p.ReplayRetention = time.Minute }
	a, b, c := newReplica(t, etcd, up, minute), newReplica(t, etcd, up, minute), newReplica(t, etcd, up, minute)
	event := strings.Repeat("1", 100)
	up.reply <- ""
	if got := await(t, a.send(t.Context(), "w", event)); got.decision != "executed" {
		t.Fatalf("got %+v", got)
	}
	want := "answer to event " + event
	for range 2 { // the second time from the cache
		if got := await(t, b.send(t.Context(), "w", event)); got.decision != "replayed" || got.body != want ||
			got.header.Get("Hooklock-Recorded") != "" {
			t.Errorf("in its time %+v", got)
		}
	}
	etcd.Expire(t, "/hooklock/v1/answers/")
	for range 2 {
		got := await(t, c.send(t.Context(), "w", event))
		if got.status != 200 || got.decision != "replayed" || got.body != "" ||
			got.header.Get("Hooklock-Recorded") != "false" || got.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("after its time %+v", got)
		}
	}
	ran(t, up, 1)
}

func TestADuplicateThatWaitsElsewhereGetsAnAnswerThatIsKeptApart(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	attach := func(p *idem.Policy) { p.ReplayRetention, p.InFlight = time.Minute, idem.Attach }
	a, b := newReplica(t, etcd, up, attach), newReplica(t, etcd, up, attach)
	event := strings.Repeat("1", 100)
	first := a.send(t.Context(), "w", event)
	<-up.begun
	copied := b.send(t.Context(), "w", event)
	following(t, b, 1)
	up.reply <- ""
	if got := await(t, first); got.decision != "executed" {
		t.Fatalf("got %+v", got)
	}
	if got := await(t, copied); got.decision != "attached" || got.body != "answer to event "+event ||
		got.header.Get("Hooklock-Recorded") != "" {
		t.Errorf("got %+v", got)
	}
}
