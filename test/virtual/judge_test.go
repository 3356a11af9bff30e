package virtual

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/idem/worker"
)

// judge holds what the service and the senders saw against what is promised.
type judge struct {
	w *world

	mu        sync.Mutex
	events    map[string]*event
	workflows map[string]*workflow
	ends      map[idem.ExecutionID]idem.Status // as they were seen
	runs      int
	paused    map[string]time.Time // routes whose pause every process has acknowledged
	last      map[string]int       // counts for the closing line
}

// event is one event of a sender, and what became of it.
type event struct {
	id, route, workflow string
	n                   int64 // where it stands in the order of its workflow
	key                 idem.Key

	// The judge's.
	sentAt     time.Time
	visits     []*visit
	execution  idem.ExecutionID // the latest that a sender was told of as accepted
	acceptedAt time.Time        // when that was; zero: none was
	settled    time.Time        // when its success was known to be in the ledger
	explained  string           // why it need not run: a dead letter, a newer one, a person
	again      reruns
	newest     int // the visit whose answer is the newest that is known to be in the ledger
}

// workflow is what runs one at a time.
type workflow struct {
	live    []*visit
	token   int64
	newest  *event    // the newest by its number whose success is in the ledger
	unknown *visit    // the latest that ended without an answer
	forced  time.Time // when an operator took its lock away: what runs hears of it a moment later
	lastTry *event    // the latest event that was parked at once, in the order of their acceptance
}

// visit is one request at the service.
type visit struct {
	e         *event
	process   string
	execution idem.ExecutionID
	token     int64
	attempt   int
	n         int // it is the n-th of all
	began     time.Time
	over      bool
	status    int  // of its answer; 0 = none was given
	works     bool // it took effect
	ended     time.Time
}

func newJudge(w *world) *judge {
	return &judge{w: w, events: map[string]*event{}, workflows: map[string]*workflow{},
		ends: map[idem.ExecutionID]idem.Status{}, last: map[string]int{}, paused: map[string]time.Time{}}
}

func (j *judge) add(e *event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.sentAt = time.Now()
	j.events[e.id] = e
}

func (j *judge) event(id string) *event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events[id]
}

func (j *judge) workflowLocked(name string) *workflow {
	w := j.workflows[name]
	if w == nil {
		w = &workflow{}
		j.workflows[name] = w
	}
	return w
}

// begin is the first byte of a request at the service.
func (j *judge) begin(p *process, e *event, l *idem.Lock) *visit {
	if p.net.isDead() {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	w, r := j.workflowLocked(e.workflow), j.w.route(e.route)
	v := &visit{e: e, process: p.name, execution: l.Execution, token: l.Token, attempt: l.Attempt,
		n: j.runs + 1, began: time.Now()}
	j.w.say("service", "%s begins: %s by %s, token %d", e.id, l.Execution, p.name, l.Token)
	excused := j.w.revoked() || time.Since(w.forced) < forceReaches
	for _, other := range w.live {
		if other.e == e && r.idempotency && !excused {
			j.failLocked("event %s runs twice at a time: %s and %s", e.id, other.execution, l.Execution)
		}
	}
	if len(w.live) >= r.most && !excused {
		j.failLocked("workflow %s: %s of %s runs beside %s of %s, and %d may", e.workflow, l.Execution, e.id,
			w.live[0].execution, w.live[0].e.id, r.most)
	}
	if r.most == 1 {
		if l.Token <= w.token && !excused {
			j.failLocked("workflow %s: token %d of %s came after %d", e.workflow, l.Token, l.Execution, w.token)
		}
		w.token = max(w.token, l.Token)
	}
	again := e.again.allows(l.Execution, l.Parked != nil)
	if r.idempotency {
		if again {
			j.attemptLocked(r, e, l)
		}
		if !again && !e.settled.IsZero() && time.Since(e.settled) < r.policy().Retention {
			j.failLocked("event %s runs again %v after its success was recorded", e.id, time.Since(e.settled))
		}
		if n := len(e.visits); n > 0 && e.visits[n-1].isUnknown(r) &&
			time.Since(e.visits[n-1].began) < r.policy().Retention &&
			(!again || e.visits[n-1].execution == l.Execution) {
			j.failLocked("event %s runs again although nobody knows how %s ended, or the service says that it did",
				e.id, e.visits[n-1].execution)
		}
	}
	j.attemptsLocked(r, e, l)
	if l.Execution == e.execution {
		j.fifoLocked(w, r, e)
	}
	if !again {
		j.orderLocked(w, r, e)
	}
	j.delayLocked(w, r, e)
	j.pausedLocked(e)
	e.visits = append(e.visits, v)
	w.live = append(w.live, v)
	j.runs++
	return v
}

// isUnknown reports whether nothing may run after the visit. A service that is asked says what took
// effect.
func (v *visit) isUnknown(r *route) bool {
	return v.status == 0 && (r.onUnknown == idem.UnknownBlock || r.onUnknown == idem.UnknownAsk && v.works)
}

// asked is what the service says became of an event.
func (j *judge) asked(id string) (idem.Outcome, int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	said, status := idem.NotExecuted, 404
	for _, v := range j.events[id].visits {
		switch {
		case !v.over:
			return idem.Unknown, 503, errors.New("it is at work")
		case v.works:
			said, status = idem.Executed, 200
		}
	}
	return said, status, nil
}

// attemptsLocked checks that an event whose sender repeats it does not run once more after it
// failed as often as it may. e begins.
func (j *judge) attemptsLocked(r *route, e *event, l *idem.Lock) {
	if !r.idempotency || r.attempts == 0 || l.Parked != nil || e.explained == byOperator {
		return
	}
	failed := 0
	for _, v := range e.visits {
		challenged := v.status == 401                                              // which is no outcome
		notExecuted := r.onUnknown == idem.UnknownAsk && v.status == 0 && !v.works // as the service says
		if v.over && (v.status == 0 || v.status >= 300) && !challenged && !notExecuted &&
			time.Since(v.ended) < r.policy().Retention {
			failed++
		}
	}
	if failed >= r.attempts {
		j.failLocked("event %s runs again after %d attempts that failed, and %d may", e.id, failed, r.attempts)
	}
}

// fifoLocked checks that events that were accepted one after the other begin in that order. e
// begins.
func (j *judge) fifoLocked(w *workflow, r *route, e *event) {
	if !r.fifo || len(e.visits) > 0 {
		return
	}
	if before := w.lastTry; before != nil && e.acceptedAt.Before(before.sentAt) && before.explained == "" {
		j.failLocked("workflow %s: %s, accepted at %v, begins after %s, which was sent at %v", e.workflow, e.id,
			j.w.at(e.acceptedAt), before.id, j.w.at(before.sentAt))
	}
	w.lastTry = e
}

// orderLocked checks that no event begins that was first sent after a newer one had gone through,
// where the route does not want that.
func (j *judge) orderLocked(w *workflow, r *route, e *event) {
	if r.order != idem.StaleSkip && r.order != idem.StaleReject {
		return
	}
	if newest := w.newest; newest != nil && newest.n > e.n && newest.settled.Before(e.sentAt) &&
		time.Since(newest.settled) < r.policy().Retention {
		j.failLocked("workflow %s: %s (%d) begins, and %s (%d) had gone through at %v, before it was sent", e.workflow,
			e.id, e.n, newest.id, newest.n, j.w.at(newest.settled))
	}
}

// delayLocked checks that a workflow rests after an execution of unknown outcome, which may still
// be at work. An operator may run that event at once. A process whose session was ended early may
// need more than a second to hear that another one has taken its event.
func (j *judge) delayLocked(w *workflow, r *route, e *event) {
	last := w.unknown
	switch {
	case last == nil || r.most > 1 || time.Since(last.ended) > r.delay-time.Second ||
		time.Since(w.forced) < forceReaches || j.w.revoked():
	case last.e == e && e.explained == byOperator:
		w.unknown = nil
	default:
		j.failLocked("workflow %s: %s begins %v after %s ended with an unknown outcome, and release_delay is %v",
			e.workflow, e.id, time.Since(last.ended), last.e.id, r.delay)
	}
}

// byOperator is why an event need not run, or may run again.
const byOperator = "an operator"

// pausedLocked checks that nothing begins where a pause was acknowledged by all processes.
func (j *judge) pausedLocked(e *event) {
	if since, paused := j.paused[e.route]; paused {
		j.failLocked("event %s begins, and its route is paused since %v, as every process has acknowledged", e.id,
			j.w.at(since))
	}
}

// pause notes that all processes have acknowledged the pause of a route, or with over that an
// operator is about to end it.
func (j *judge) pause(route string, over bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if over {
		delete(j.paused, route)
	} else {
		j.paused[route] = time.Now()
	}
}

// end is the last byte of a request, or of its answer. status 0: there was no answer.
func (j *judge) end(v *visit, status int, works bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	v.over, v.status, v.works, v.ended = true, status, works, time.Now()
	w := j.workflowLocked(v.e.workflow)
	w.live = slices.DeleteFunc(w.live, func(o *visit) bool { return o == v })
	if status == 0 {
		w.unknown = v
	}
	j.w.say("service", "%s ends: %s, answer %d, done %v", v.e.id, v.execution, status, works)
}

// completed is a held execution whose end the service has told.
func (j *judge) completed(v *visit) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.settledLocked(v.e)
}

func (j *judge) settledLocked(e *event) {
	e.settled = time.Now()
	if w := j.workflowLocked(e.workflow); w.newest == nil || w.newest.n < e.n || w.newest.settled.IsZero() {
		w.newest = e
	}
}

// answered is an answer of the service that is in the ledger, before its sender has it.
func (j *judge) answered(e *event, x *guard.Execution, policy *idem.Policy, status int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if status < 300 && policy.Keep.Has(status) {
		j.settledLocked(e)
		j.newestLocked(e, x.Lock().Execution)
	}
}

// accepted is a delivery whose sender is told that its event is accepted.
func (j *judge) accepted(e *event, id idem.ExecutionID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.execution != id { // the one before has ended, and what follows it says how
		e.execution, e.acceptedAt, e.explained = id, time.Now(), ""
	}
	j.last["accepted"]++
	j.w.tasks.Go(func() { j.follow(e, id) })
}

// follow looks at an execution whose sender was told that it is accepted, until it has ended: until
// then it is listed, and its end is.
func (j *judge) follow(e *event, id idem.ExecutionID) {
	for !j.w.leaving.Load() {
		time.Sleep(10 * time.Minute)
		if j.listed(e, id) {
			return
		}
	}
}

// listed looks at an execution of e, and reports whether there is no need to look again.
func (j *judge) listed(e *event, id idem.ExecutionID) (over bool) {
	found, err := j.look(j.w.anyProcess(), id)
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case e.execution != id, !e.settled.Before(e.acceptedAt), e.explained != "":
		return true
	case errors.Is(err, idem.ErrNoExecution):
		j.failLocked("event %s: %s was accepted at %v, and nothing is known of it", e.id, id, j.w.at(e.acceptedAt))
		return true
	case err != nil || found.Record == nil && found.Short == nil:
		return false
	case found.Status() == idem.Success:
		j.settledLocked(e)
	default: // it may have run again since, in an execution whose sender was not told of it
		e.explained = string(found.Status())
	}
	return true
}

// reportParkedEvent is what became of a parked event.
func (j *judge) parkedEvent(t worker.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.events[t.Lock.EventID]
	if e == nil {
		return
	}
	j.last[string(t.What)]++
	if n := len(e.visits); t.What == worker.EventDone && t.Err == nil && n > 0 && e.visits[n-1].status >= 200 &&
		e.visits[n-1].status < 300 {
		j.settledLocked(e)
		j.newestLocked(e, t.Lock.Execution)
	}
}

// newestLocked notes that the last answer to an execution is in the ledger.
func (j *judge) newestLocked(e *event, id idem.ExecutionID) {
	for _, v := range e.visits {
		if v.execution == id {
			e.newest = max(e.newest, v.n)
		}
	}
}

// explain notes that a person, or a newer event, is why e need not run.
func (j *judge) explain(id, why string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := j.events[id]; e != nil {
		e.explained = why
	}
}

// forceReaches is how long what runs may go on after its lock was taken away by force; a process
// that is cut off hears of it when it is back.
const forceReaches = 10 * time.Minute

// force notes that an operator takes the lock of a workflow away.
func (j *judge) force(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w := j.workflowLocked(name)
	w.forced, w.unknown = time.Now(), nil
}

// allow notes that an operator lets the event run again: nothing of what was before counts.
func (j *judge) allow(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := j.events[id]; e != nil {
		e.settled, e.visits, e.newest, e.explained = time.Time{}, nil, 0, byOperator
	}
}

// anySettled is some event that has gone through, and when; nil without one.
func (j *judge) anySettled(w *world) (*event, time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events { // in any order
		if r := w.route(e.route); r.idempotency && r.order == "" && !e.settled.IsZero() && e.explained == "" {
			return e, e.settled
		}
	}
	return nil, time.Time{}
}

// renew notes that an event may run again, because it was forgotten. It is false where that is not
// so any more.
func (j *judge) renew(e *event) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e.settled.IsZero() || e.explained != "" || time.Since(e.settled) < j.w.kind.retention {
		return false
	}
	e.sentAt, e.settled, e.acceptedAt = time.Now(), time.Time{}, time.Time{}
	e.visits, e.newest, e.execution = nil, 0, ""
	return true
}

// drop forgets the events that were sent before and have ended, and how executions have ended.
func (j *judge) drop(before time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	maps.DeleteFunc(j.events, func(_ string, e *event) bool {
		over := !e.settled.IsZero() || e.explained != "" && e.explained != byOperator
		return e.sentAt.Before(before) && over
	})
	clear(j.ends)
}

// look asks a process for an execution, and checks that what has ended stays as it ended.
func (j *judge) look(p *process, id idem.ExecutionID) (*idem.Found, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	found, err := p.store.Execution(ctx, id)
	if err != nil || found.Record == nil && found.Short == nil {
		return found, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	status := found.Status()
	if was, known := j.ends[id]; known && was != status {
		j.failLocked("execution %s ended as %s and is %s now", id, was, status)
	}
	j.ends[id] = status
	return found, nil
}

func (j *judge) failLocked(format string, args ...any) {
	j.w.fail(format, args...)
}

// close is asked when everything is quiet: what was accepted has run, or something says why not.
func (j *judge) close() {
	for _, e := range j.events {
		if e.execution != "" && !j.listed(e, e.execution) {
			j.w.fail("event %s was accepted at %v, and has not ended: %d tries", e.id, j.w.at(e.acceptedAt),
				len(e.visits))
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, w := range j.workflows {
		if len(w.live) > 0 {
			j.failLocked("workflow %s: %s still runs at the end", name, w.live[0].e.id)
		}
	}
}

// unavailable reports whether an error says that the store did not answer, and nothing of the
// execution.
func unavailable(err error) bool {
	return errors.Is(err, idem.ErrStoreUnavailable) || errors.Is(err, context.DeadlineExceeded)
}
