package proxy

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"hooklock/idem"
)

const (
	maxBodies = 4096 // that are remembered, of all routes
	maxTwins  = 8    // of one body that are told apart
)

// twins finds events that have one body, but for their ID. It remembers hashes and short keys, of
// this process alone. It is safe for concurrent use. Make one with newTwins.
type twins struct {
	seed maphash.Seed

	mu     sync.Mutex
	bodies map[uint64]*twinned
	order  []uint64 // of bodies, a ring
	oldest int      // in order, once that is full
}

// twinned is the events with one body.
type twinned struct {
	at    time.Time // of the first
	first string    // its short key
	later []string  // short keys
}

// twinScope is in what two events may be twins.
type twinScope struct {
	route, workflow string
	body            idem.Fingerprint // without the event ID
}

func newTwins() *twins {
	return &twins{seed: maphash.MakeSeed(), bodies: map[uint64]*twinned{}}
}

// findFirst notes an event that came now, and returns the key of the first one of its body that
// came within the window before; "" if there is none, or if this event was found before.
func (t *twins) findFirst(scope *twinScope, key string, now time.Time, window time.Duration) string {
	sum := maphash.Comparable(t.seed, *scope)
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.bodies[sum]
	switch {
	case known == nil:
		t.rememberBody(sum, &twinned{at: now, first: key})
		return ""
	case now.Sub(known.at) > window:
		*known = twinned{at: now, first: key}
		return ""
	case key == known.first || slices.Contains(known.later, key):
		return ""
	case len(known.later) < maxTwins:
		known.later = append(known.later, key)
	}
	return known.first
}

func (t *twins) rememberBody(sum uint64, body *twinned) {
	t.bodies[sum] = body
	if len(t.order) < maxBodies {
		t.order = append(t.order, sum)
		return
	}
	delete(t.bodies, t.order[t.oldest])
	t.order[t.oldest] = sum
	t.oldest = (t.oldest + 1) % maxBodies
}

// findTwin notes in the report that another event has the same body.
func (d *delivery) findTwin() {
	if d.route.TwinWindow == 0 || d.report.Key == "" {
		return
	}
	if body, ok := d.route.Keys.TwinPrint(&d.req.msg, &d.names); ok {
		scope := twinScope{d.route.Name, d.names.Workflow, body}
		d.report.TwinOf = d.handler.twins.findFirst(&scope, d.report.Key, d.report.Started, d.route.TwinWindow)
	}
}

// noteFirstTwin makes the delivery one of the first event with its body, for whatever reports it.
func (d *delivery) noteFirstTwin(first *idem.FirstTwin) {
	if first.Key == "" {
		return
	}
	d.report.Key, d.report.FirstEventID = first.Key.Short(), first.EventID
	if first.New {
		d.report.TwinOf = d.report.Key
	}
}
