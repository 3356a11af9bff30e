package park

import (
	"time"

	"hooklock/idem"
)

// contents is what the index has, with its counts. Its caller holds the mutex of the Index.
type contents struct {
	options *Options
	entries map[idem.ExecutionID]*entry
	queues  map[string]*queue // by the key of their lock
	// perEvent are the locks of queues under strategy none, by the lock of their workflow: if a
	// client has that, it holds them back.
	perEvent    map[string]map[string]bool
	bytes       int64
	events      int
	deadLetters int
	blocked     int // queues
	oldest      ages
}

// entry is a stored request.
type entry struct {
	idem.ParkedEntry
	lock     string // its key
	revision int64
	old      bool // its MaxAge is over
	spared   bool // that was so while it was paused: it counts as old after its next try has begun
}

// queue is a lock with the executions that are parked before it or in it. There is at least one.
type queue struct {
	lock       string // its key
	scope      idem.Scope
	route      string // of its executions; "" = they are, or were, of several
	executions int    // executions
	blocked    int    // of these
	ready      bool   // it is listed, to be looked at
	// what proves the owner of the lock alive, as the last look found it; "" = nothing does, or it
	// was not looked at
	alive string
}

func newContents(o *Options) contents {
	return contents{options: o, entries: map[idem.ExecutionID]*entry{}, queues: map[string]*queue{},
		perEvent: map[string]map[string]bool{}}
}

// put adds or replaces an entry. first: it is the first of its queue.
func (c *contents) put(e *entry) (first bool) {
	if before := c.entries[e.Execution]; before != nil {
		c.uncountEntry(before)
	}
	c.entries[e.Execution] = e
	c.bytes += e.Bytes
	if e.State == idem.ParkDeadLetter {
		c.deadLetters++
		c.dropFromQueue(e)
		return false
	}
	q := c.queues[e.lock]
	if q == nil {
		q, first = &queue{lock: e.lock, scope: e.Scope}, true
		if !e.PerEvent {
			q.scope.Key = ""
		}
		c.queues[e.lock] = q
		c.setPerEvent(e, true)
	}
	if q.executions == 0 {
		q.route = e.Route
	} else if q.route != e.Route {
		q.route = ""
	}
	q.executions++
	c.events++
	if e.State == idem.ParkBlocked {
		if q.blocked++; q.blocked == 1 {
			c.blocked++
		}
	}
	c.noteAge(aged{e.Since, e.Execution})
	return first
}

func (c *contents) drop(id idem.ExecutionID) {
	e := c.entries[id]
	if e == nil {
		return
	}
	c.uncountEntry(e)
	delete(c.entries, id)
	c.dropFromQueue(e)
}

// dropFromQueue is called for an execution that is not in its queue any more, and drops a queue
// that is empty now.
func (c *contents) dropFromQueue(e *entry) {
	c.options.OnLeftQueue(e.Execution)
	if q := c.queues[e.lock]; q != nil && q.executions == 0 {
		q.ready = false
		delete(c.queues, e.lock)
		c.setPerEvent(e, false)
	}
}

// setPerEvent notes whether there is a queue of e, if its lock is the event's own.
func (c *contents) setPerEvent(e *entry, there bool) {
	if !e.PerEvent {
		return
	}
	workflow := c.options.Layout.Lock(idem.Scope{Workflow: e.Workflow})
	switch of := c.perEvent[workflow]; {
	case there && of == nil:
		c.perEvent[workflow] = map[string]bool{e.lock: true}
	case there:
		of[e.lock] = true
	default:
		if delete(of, e.lock); len(of) == 0 {
			delete(c.perEvent, workflow)
		}
	}
}

func (c *contents) uncountEntry(e *entry) {
	c.bytes -= e.Bytes
	if e.State == idem.ParkDeadLetter {
		c.deadLetters--
		return
	}
	q := c.queues[e.lock]
	q.executions--
	c.events--
	if e.State == idem.ParkBlocked {
		if q.blocked--; q.blocked == 0 {
			c.blocked--
		}
	}
}

// markSpared notes that an execution grew too old while it is paused.
func (c *contents) markSpared(e *entry) {
	if e.old && e.State != idem.ParkDeadLetter && c.options.Paused(e.Route, e.Workflow) {
		e.spared = true
	}
}

// oldestSince returns when the execution was parked that has been parked for longest; zero = none
// is parked.
func (c *contents) oldestSince() time.Time { return c.oldest.oldestParked(c.isParked) }

// noteAge notes since when an execution is parked, which may be noted already.
func (c *contents) noteAge(a aged) { c.oldest.addAge(a, c.events, c.isParked) }

// isParked reports whether the execution with that age is still parked.
func (c *contents) isParked(a aged) bool {
	e := c.entries[a.id]
	return e != nil && e.State != idem.ParkDeadLetter && e.Since.Equal(a.since)
}
