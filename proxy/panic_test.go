package proxy

import (
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// clumsy is an Observer with a bug: it panics at one event.
type clumsy struct {
	*events
	at EventName
}

func (c *clumsy) Event(name EventName, r *Report) {
	if name == c.at {
		panic("a bug")
	}
	c.events.Event(name, r)
}

func TestTheEndOfAnExecutionThatABugCutShortIsReported(t *testing.T) {
	etcd, up := etcdtest.Start(t), newService(t)
	r := newReplica(t, etcd, up, func(*idem.Policy) {})
	r.handler.o.Observer = &clumsy{r.events, EventAcquired}
	if got := await(t, r.send(t.Context(), "w", "1")); got.status != 500 || got.decision != "internal_error" {
		t.Errorf("got %+v", got)
	}
	if !r.events.heard(EventUnknown) || !r.events.heard(EventReleased) {
		t.Errorf("events %v", r.events.names)
	}
	r.events.mu.Lock()
	defer r.events.mu.Unlock()
	if len(r.events.reports) != 1 || !r.events.reports[0].Recorded || r.events.reports[0].Outcome != idem.Unknown || r.events.reports[0].Held == 0 {
		t.Errorf("reports %+v", r.events.reports)
	}
}
