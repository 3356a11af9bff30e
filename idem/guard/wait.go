package guard

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"hooklock/idem"
)

// Why a delivery stops waiting before it has the lock.
var (
	errWaited = errors.New("waited for as long as it may")
	// errSenderGone: the sender hung up while its delivery waited, so that an answer would reach
	// nothing.
	errSenderGone = errors.New("the sender hung up while waiting")
)

// waiterLimit bounds the deliveries that wait in this process, so that a flood is refused instead
// of exhausting memory.
type waiterLimit struct {
	mu         sync.Mutex
	since      list.List // arrival times of the waiters, the oldest first
	byWorkflow map[string]int
}

// seat counts one waiter.
type seat = *list.Element

// addWaiter counts a waiter that came at now; nil: the limit is reached.
func (w *waiterLimit) addWaiter(workflow string, perWorkflow, overAll int, now time.Time) seat {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.hasRoomLocked(workflow, perWorkflow, overAll) {
		return nil
	}
	if w.byWorkflow == nil {
		w.byWorkflow = map[string]int{}
	}
	w.byWorkflow[workflow]++
	return w.since.PushBack(now)
}

// hasRoom reports whether one more may wait.
func (w *waiterLimit) hasRoom(workflow string, perWorkflow, overAll int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hasRoomLocked(workflow, perWorkflow, overAll)
}

func (w *waiterLimit) hasRoomLocked(workflow string, perWorkflow, overAll int) bool {
	return w.since.Len() < overAll && w.byWorkflow[workflow] < perWorkflow
}

// countWaiters returns how many wait, and since when the first of them does; the zero time if none
// does.
func (w *waiterLimit) countWaiters() (n int, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if first := w.since.Front(); first != nil {
		since, _ = first.Value.(time.Time)
	}
	return w.since.Len(), since
}

func (w *waiterLimit) removeWaiter(workflow string, s seat) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since.Remove(s)
	if w.byWorkflow[workflow]--; w.byWorkflow[workflow] == 0 {
		delete(w.byWorkflow, workflow)
	}
}

// waitContext returns the context of a wait: it ends when d has passed, the sender has gone, or the
// process ends; for a delivery that may be parked, when the process is about to end.
func (g *Guard) waitContext(sender context.Context, d time.Duration, parks bool) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(g.options.Base)
	drained := func() bool { return false }
	if parks {
		drained = context.AfterFunc(g.draining, func() { cancel(errDraining) })
	}
	// a context with a deadline would be one more for each waiter
	over := time.AfterFunc(d, func() { cancel(errWaited) })
	stop := context.AfterFunc(sender, func() { cancel(errSenderGone) })
	return ctx, func() {
		stop()
		drained()
		over.Stop()
		cancel(nil)
	}
}

// waiter is one delivery in the queue.
type waiter struct {
	guard       *Guard
	request     *idem.Request
	ctx         context.Context
	parks       idem.ParkOn // what it is accepted for from the beginning; "" = it waits
	callbackKey string
	holder      idem.Verdict // the execution that stands in the way
	freeAt      time.Time    // when the lock is expected to be free; zero = not known
	lostAt      time.Time    // when its last queue entry was lost; zero = none was
}

// currentPause returns the pause that the delivery waits for; nil = none.
func (w *waiter) currentPause() *idem.Pause {
	return w.guard.options.Ledger.Paused(w.request.Policy.Route, w.request.Scope.Workflow)
}

// setHolder records the execution that stands in the way.
func (w *waiter) setHolder(v idem.Verdict) {
	w.holder, w.freeAt = v, time.Time{}
	if v.RetryAfter > 0 {
		w.freeAt = w.Now().Add(v.RetryAfter)
	}
}

// Lock implements Waiter.
func (w *waiter) Lock(v idem.Verdict) (l idem.Lock) {
	l, w.callbackKey = w.guard.newLock(w.request, v)
	if w.parks != "" {
		l.Parked = &idem.Parked{Since: l.StartedAt, On: w.parks}
		if d := w.request.Policy.Park.Delay; d > 0 {
			l.Parked.NextAttempt, l.Parked.Pause = l.StartedAt.Add(d), d
		}
	}
	l.MayPark = w.request.Policy.Park != nil
	return l
}

// Now implements Waiter.
func (w *waiter) Now() time.Time { return w.guard.options.Now() }

// RequestContext implements Waiter. Its context is no child of the wait's, also because a context
// keeps the memory for children that it once had.
func (w *waiter) RequestContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(w.ctx), w.guard.options.RequestTimeout)
}

// Judge implements Waiter.
func (w *waiter) Judge(seen *idem.Obstacle, placed bool) idem.Verdict {
	seen.Queue = false
	if placed {
		seen.Waiting = nil // that is this entry itself
		v := idem.Decide(seen, w.request, w.Now())
		if v.Taken() {
			w.setHolder(v)
		}
		return v
	}
	behind := int64(0)
	if l := seen.Lock; l != nil && l.Scope.PerEvent == w.request.Scope.PerEvent &&
		(l.Cooling || l.Scope.Key != w.request.Scope.Key) {
		seen.Lock, behind = nil, l.Revision // another event: this one comes after it
	}
	v := idem.Decide(seen, w.request, w.Now())
	v.Behind = behind
	return v
}

// BeforeRetry implements Waiter. It tells an outage from the moment between two sessions, in which
// a delivery that had an entry waits.
func (w *waiter) BeforeRetry(err error) error {
	if errors.Is(err, idem.ErrQueueEntryLost) {
		w.lostAt = w.Now()
		return nil
	}
	if w.lostAt.IsZero() || w.Now().Sub(w.lostAt) > w.guard.options.RequestTimeout {
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

// betweenSessions is how often a delivery whose entry was lost looks for the next session.
const betweenSessions = 20 * time.Millisecond

// gaveUp returns the answer to a delivery whose wait is over.
func (w *waiter) gaveUp() Admission {
	var err error
	if cause := context.Cause(w.ctx); !errors.Is(cause, errWaited) {
		err = cause
	}
	v := idem.Verdict{
		Decision: idem.DecisionWaitTimeout, Holder: w.holder.Holder, HolderTrace: w.holder.HolderTrace,
		ClosedUntil: w.holder.ClosedUntil, FullLimit: w.holder.FullLimit, Full: w.holder.Full,
	}
	if p := w.currentPause(); p != nil {
		v = idem.Verdict{Decision: idem.DecisionPaused, Paused: p, RetryAfter: p.RetryAfter(w.Now())}
	} else if !w.freeAt.IsZero() {
		v.RetryAfter = w.freeAt.Sub(w.Now())
	}
	return Admission{Verdict: v, Err: err}
}
