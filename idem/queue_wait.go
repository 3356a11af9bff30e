package idem

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Why a delivery stops waiting, beside its turn.
var (
	errWaited = errors.New("waited for as long as it may")
	// ErrSenderGone: the sender hung up while its delivery waited. There is nobody left to answer.
	ErrSenderGone = errors.New("the sender hung up while waiting")
)

// crowd counts who waits in this process, so that a flood is a refusal and not memory.
type crowd struct {
	mu         sync.Mutex
	since      list.List // when each came who is inside, the oldest first
	byWorkflow map[string]int
}

// seat is the place of one who waits.
type seat = *list.Element

// enter lets one in at now; nil: as many are inside as may be.
func (w *crowd) enter(workflow string, perWorkflow, overAll int, now time.Time) seat {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.roomLocked(workflow, perWorkflow, overAll) {
		return nil
	}
	if w.byWorkflow == nil {
		w.byWorkflow = map[string]int{}
	}
	w.byWorkflow[workflow]++
	return w.since.PushBack(now)
}

// room reports whether one more may be inside.
func (w *crowd) room(workflow string, perWorkflow, overAll int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.roomLocked(workflow, perWorkflow, overAll)
}

func (w *crowd) roomLocked(workflow string, perWorkflow, overAll int) bool {
	return w.since.Len() < overAll && w.byWorkflow[workflow] < perWorkflow
}

// waiting is how many are inside, and since when the first of them is; the zero time when nobody is.
func (w *crowd) waiting() (n int, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if first := w.since.Front(); first != nil {
		since, _ = first.Value.(time.Time)
	}
	return w.since.Len(), since
}

func (w *crowd) leave(workflow string, s seat) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since.Remove(s)
	if w.byWorkflow[workflow]--; w.byWorkflow[workflow] == 0 {
		delete(w.byWorkflow, workflow)
	}
}

// patience is how long a delivery waits: until d has passed, the sender has gone, or the process ends; where it may be parked, until the
// process is about to.
func (g *Guard) patience(sender context.Context, d time.Duration, parks bool) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(g.o.Base)
	drained := func() bool { return false }
	if parks {
		drained = context.AfterFunc(g.draining, func() { cancel(errDraining) })
	}
	over := time.AfterFunc(d, func() { cancel(errWaited) }) // a context with a deadline would be one more, for each who waits
	stop := context.AfterFunc(sender, func() { cancel(ErrSenderGone) })
	return ctx, func() {
		stop()
		drained()
		over.Stop()
		cancel(nil)
	}
}

// waited lets a delivery wait that came as far as a, at most for limit, and notes for how long it did.
func (g *Guard) waited(
	sender context.Context, a Admission, limit time.Duration, wait func(context.Context, *Request, Verdict) Admission, r *Request,
) Admission {
	v, before, since := a.Verdict, a.Waited, g.o.Now()
	seat := g.waiting.enter(r.Scope.Workflow, r.Policy.MaxWaiting, g.o.MaxWaiting(), since)
	if seat == nil {
		full := Verdict{Decision: DecisionQueueFull, Holder: v.Holder, HolderTrace: v.HolderTrace, ClosedUntil: v.ClosedUntil, Limit: v.Limit}
		return Admission{Verdict: full, Waited: before}
	}
	defer g.waiting.leave(r.Scope.Workflow, seat)
	parks := a.before() && g.MayPark(r, a.parkOn())
	if parks {
		limit = min(limit, r.Parking.Patience)
	}
	ctx, done := g.patience(sender, limit, parks)
	defer done()
	a = wait(ctx, r, v)
	a.Waited = before + g.o.Now().Sub(since)
	return a
}

// wait is strategy wait: the delivery takes its place in the queue, and is admitted when it is its turn.
func (g *Guard) wait(ctx context.Context, r *Request, first Verdict) Admission {
	w := &waiter{guard: g, r: r, ctx: ctx}
	w.behind(first)
	held, v, err := AwaitLock(ctx, g.o.Ledger, w, Verdict{Attempt: 1, Behind: first.Behind})
	switch {
	case held != nil:
		return g.judged(newExecution(g, r, held, g.live.settle(r.Scope, held.Lock()), w.callbackKey), r)
	case v.Decision == DecisionWaitTimeout:
		return w.gaveUp(err)
	case v.Decision != "":
		v.On = w.parks
		return Admission{Verdict: v, Err: err}
	}
	return unavailable(err)
}

// waiter is one delivery in the queue.
type waiter struct {
	guard       *Guard
	r           *Request
	ctx         context.Context
	parks       ParkOn // what it is parked for, at once or since its time was over; "" = it is not
	notParked   error  // why it could not be
	callbackKey string
	holder      Verdict   // who stands in the way
	freeAt      time.Time // when the lock is expected to be free; zero = nobody knows
	lostAt      time.Time // when its last place was lost; zero = it has lost none
}

// paused is the pause that it waits for; nil = none.
func (w *waiter) paused() *Pause {
	return w.guard.o.Ledger.Paused(w.r.Policy.Route, w.r.Scope.Workflow)
}

// behind notes who stands in the way.
func (w *waiter) behind(v Verdict) {
	w.holder, w.freeAt = v, time.Time{}
	if v.RetryAfter > 0 {
		w.freeAt = w.Now().Add(v.RetryAfter)
	}
}

// Lock implements Waiter.
func (w *waiter) Lock(v Verdict) (l Lock) {
	l, w.callbackKey = w.guard.newLock(w.r, v)
	if w.parks != "" {
		l.Parked = &Parked{Since: l.StartedAt, On: w.parks}
	}
	l.MayPark = w.r.Policy.Park != nil
	return l
}

// Now implements Waiter.
func (w *waiter) Now() time.Time { return w.guard.o.Now() }

// Request implements Waiter. It is no child of the time to wait, also because a context keeps the room for children that it once had.
func (w *waiter) Request() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(w.ctx), w.guard.o.RequestTimeout)
}

// Judge implements Waiter.
func (w *waiter) Judge(seen *Seen, placed bool) Verdict {
	seen.Queue = false
	if placed {
		seen.Waiting = nil // that is this place itself
		v := Decide(seen, w.r, w.Now())
		if v.taken() {
			w.behind(v)
		}
		return v
	}
	behind := int64(0)
	if l := seen.Lock; l != nil && l.Scope.PerEvent == w.r.Scope.PerEvent && (l.Cooling || l.Scope.Key != w.r.Scope.Key) {
		seen.Lock, behind = nil, l.Revision // another event: this one comes after it
	}
	v := Decide(seen, w.r, w.Now())
	v.Behind = behind
	return v
}

// Again implements Waiter. It tells an outage from the moment between two sessions, which a delivery that had its place sits out.
func (w *waiter) Again(err error) error {
	if errors.Is(err, ErrPlaceLost) {
		w.lostAt = w.Now()
		return nil
	}
	if w.lostAt.IsZero() || w.Now().Sub(w.lostAt) > w.guard.o.RequestTimeout {
		return err
	}
	timer := time.NewTimer(betweenSessions)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.ctx.Done():
	}
	return nil
}

// betweenSessions is how often a delivery whose place was lost looks for the next session.
const betweenSessions = 20 * time.Millisecond

// gaveUp is the answer to a delivery whose time is up. err is why its place is still taken.
func (w *waiter) gaveUp(err error) Admission {
	if cause := context.Cause(w.ctx); !errors.Is(cause, errWaited) {
		err = cause
	}
	v := Verdict{
		Decision: DecisionWaitTimeout, Holder: w.holder.Holder, HolderTrace: w.holder.HolderTrace,
		ClosedUntil: w.holder.ClosedUntil, Limit: w.holder.Limit, Full: w.holder.Full,
	}
	if p := w.paused(); p != nil {
		v = Verdict{Decision: DecisionPaused, Paused: p, RetryAfter: p.retryAfter(w.Now())}
	} else if !w.freeAt.IsZero() {
		v.RetryAfter = w.freeAt.Sub(w.Now())
	}
	if errors.Is(w.notParked, ErrNotRecorded) {
		a := unavailable(w.notParked)
		a.Unsure = true
		return a
	}
	return Admission{Verdict: v, Err: errors.Join(err, w.notParked)}
}

// attach is in_flight: attach. The copy waits for the end of the first one and gets what its sender got. It never runs anything itself.
func (g *Guard) attach(ctx context.Context, r *Request, v Verdict) Admission {
	seen, err := g.o.Ledger.Follow(ctx, v.Copy)
	for err == nil && seen.Lock != nil && seen.Lock.Dead && seen.Lock.Execution == v.Holder {
		if err = g.o.Ledger.Bury(ctx, seen.Lock); err == nil {
			seen, err = g.o.Ledger.Follow(ctx, seen.Lock) // somebody else may have ended it just before
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return Admission{Verdict: v, Err: err}
	case err != nil:
		return unavailable(err)
	}
	same := sameAs(seen, r, v)
	same.HolderTrace = v.HolderTrace
	return Admission{Verdict: same}
}

// sameAs is what the first one's sender got, as the ledger tells it.
func sameAs(seen *Seen, r *Request, v Verdict) Verdict {
	rec := seen.Record
	switch {
	case seen.Released:
		return Verdict{Decision: DecisionUpstreamUnreachable, Holder: v.Holder}
	case rec == nil || rec.Execution != v.Holder && !rec.Settled(): // nobody can tell any more
		return Verdict{Decision: DecisionLockLost, Holder: v.Holder}
	case rec.Answer != nil:
		return Verdict{Decision: DecisionAttached, Holder: rec.Execution, Record: rec, StatusOnly: r.stranger(&rec.Entry)}
	case rec.Superseded() != "":
		return Verdict{Decision: DecisionSuperseded, Holder: rec.Execution, Record: rec}
	case rec.Status == Aborted:
		return Verdict{Decision: DecisionAborted, Holder: rec.Execution, Record: rec}
	}
	if rec.Outcome == Executed || rec.Error == nil { // the upstream of a held one said that it failed, and no more
		return Verdict{Decision: DecisionUpstreamFailed, Holder: rec.Execution, Record: rec}
	}
	switch d := Decision(rec.Error.Code); d {
	case DecisionUpstreamFailed, DecisionUpstreamTimeout, DecisionInternalError:
		return Verdict{Decision: d, Holder: rec.Execution, Record: rec}
	}
	return Verdict{Decision: DecisionLockLost, Holder: rec.Execution, Record: rec}
}
