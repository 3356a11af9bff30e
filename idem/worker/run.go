package worker

import (
	"context"
	"errors"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
)

// parkedRun is one execution that this process runs. Its methods are not safe for concurrent use; other goroutines may send on wake.
type parkedRun struct {
	c     *Worker
	held  *guard.ParkedExecution
	id    idem.ExecutionID
	scope idem.Scope    // of its lock
	bytes int64         // of its request
	wake  chan struct{} // something about it has changed

	tooOld   bool      // when it was taken; later the ledger reports it
	request  []byte    // for the first try, as it was read when it was taken; nil = to be read
	full     bool      // a limit had no slot for it, and nothing has woken it since
	inRow    int       // tries in a row that did not go through
	due      time.Time // of the next try, by the guard's clock; zero = now
	unneeded bool      // its stored request outside of the ledger can be deleted
}

// run runs the execution to its end, or until another process has it. t is a try that has just ended, or nil; leave is a slot that is already
// taken, or nil.
func (e *parkedRun) run(t *guard.Tried, leave func()) {
	defer e.over()
	for {
		if t != nil && e.follow(t) {
			return
		}
		if leave == nil {
			var over bool
			if leave, over = e.await(); over {
				return
			}
		}
		policy := e.c.o.Policy(e.held.Lock().Route)
		if policy == nil { // the route was removed just now
			leave()
			e.putDown()
			return
		}
		tried := e.try(policy)
		leave()
		leave, t = nil, &tried
	}
}

// over cleans up when this process has nothing to do with the execution any more.
func (e *parkedRun) over() {
	e.c.mu.Lock()
	if e.c.runs[e.scope] == e {
		delete(e.c.runs, e.scope)
	}
	e.c.mu.Unlock()
	e.held.Leave()
	e.c.o.Ledger.MarkReady(e.held.Lock().Scope)
	if e.unneeded && e.c.o.Drop != nil { // last: a disk that hangs must not delay the executions behind it
		e.c.o.Drop(e.id, e.bytes)
	}
}

// await waits until the execution may be tried, and for a slot. It returns over if there is nothing more to do here.
func (e *parkedRun) await() (leave func(), over bool) {
	e.held.OnStop(func(error) { poke(e.wake) })
	for {
		if err := e.held.Begin(); err != nil && e.c.life.Err() == nil {
			if e.stopped(err) {
				return nil, true
			}
			continue
		}
		lock := e.held.Lock()
		switch do, rest := whileParked(lock, e.known(lock)); do {
		case parkedPutDown:
			e.putDown()
			return nil, true
		case parkedExpire:
			if e.dead(&guard.Tried{Failure: idem.Failure{Code: idem.CodeTooOld}}, tooOldStep) {
				return nil, true
			}
		case parkedTry:
			if leave, err := e.c.slots.enter(e.c.life); err == nil {
				return leave, false
			}
		case parkedGiveBack:
			e.giveSlotsBack(lock)
		case parkedRest:
			e.sleep(rest)
		}
	}
}

// known returns what decides about the execution besides its lock.
func (e *parkedRun) known(lock *idem.Lock) parkedKnown {
	return parkedKnown{
		ending: e.c.life.Err() != nil,
		routed: e.c.o.Policy(lock.Route) != nil,
		paused: e.paused(lock),
		old:    e.old(),
		full:   e.full,
		due:    e.due.Sub(e.c.o.Now()),
	}
}

// sleep waits until something about the execution changes, at most for d.
func (e *parkedRun) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.wake:
		if p := e.held.Lock().Parked; p.NextAttempt.IsZero() && p.Blocked == "" && !p.Trying { // an operator wants it to run now
			e.due, e.tooOld = time.Time{}, false
		}
	case <-e.c.life.Done():
	}
	e.full = false
}

// giveSlotsBack frees the slots of an execution that was claimed, or taken over, and cannot be tried yet.
func (e *parkedRun) giveSlotsBack(lock *idem.Lock) {
	ctx, done := e.bounded()
	defer done()
	if err := e.held.Rest(ctx, *lock.Parked); err != nil { // Begin says what stops it
		_ = sleep(e.c.life, firstPause)
	}
}

// putDown leaves the execution to others, at once and not only when this process's session has expired.
func (e *parkedRun) putDown() {
	ctx, done := e.bounded()
	defer done()
	_ = e.held.Release(ctx) // goes on by itself, and at the latest the session's end does the same
}

// stopped ends an execution that was cancelled. over is false if that is not known yet.
func (e *parkedRun) stopped(err error) (over bool) {
	if errors.Is(err, idem.ErrLockLost) {
		if errors.Is(err, idem.ErrUnheard) { // the session is gone, and the next one may adopt the lock
			return sleep(e.c.life, firstPause) != nil
		}
		return true
	}
	cancel := e.held.Lock().Cancel
	if cancel == nil {
		return true
	}
	end := idem.End{Status: idem.Aborted, Outcome: e.held.Lock().Parked.Outcome(), Abort: cancel, FinishedAt: e.c.o.Now()}
	ctx, done := e.bounded()
	defer done()
	var rec *idem.Record
	if cancel.Skip {
		_, err = e.held.DeadLetter(ctx, end)
		e.tell(ToldDeadLetter, "skipped", cancel.Reason, err)
	} else if rec, err = e.held.Settle(ctx, end); err == nil {
		e.drop(rec)
	}
	return err == nil || errors.Is(err, idem.ErrLockLost) || errors.Is(err, idem.ErrNotRecorded)
}

// try sends the request once.
func (e *parkedRun) try(policy *idem.Policy) guard.Tried {
	if e.old() {
		return guard.Tried{Failure: idem.Failure{Code: idem.CodeTooOld}}
	}
	if t := keepsBack(policy, e.held.Lock().Stale); t != nil {
		return *t
	}
	ctx, cancel := e.bounded()
	defer cancel()
	request, err := e.request, error(nil)
	if e.request = nil; request == nil {
		request, err = e.c.o.Ledger.Request(ctx, e.id)
	}
	if err != nil {
		return guard.Tried{Failure: idem.Failure{Code: "request_unavailable", Detail: err.Error()}}
	}
	return e.held.Try(ctx, policy, func(x *guard.Execution) { e.c.o.Try(x, request) })
}

// paused reports whether the execution rests because it is paused.
func (e *parkedRun) paused(lock *idem.Lock) bool {
	return e.c.o.Ledger.Paused(lock.Route, lock.Scope.Workflow) != nil
}

// old reports whether its MaxAge is over.
func (e *parkedRun) old() bool { return e.tooOld || e.c.o.Ledger.Old(e.id) }

var tooOldStep = nextStep{code: idem.CodeTooOld, why: "it was not executed within the route's max_age"}

// ageLag is how long a worker waits before it asks the ledger again, after the ledger has found the age not to be over.
const ageLag = 50 * time.Millisecond

// follow writes down how a try ended, and what follows. over: the execution has ended, or another process has it.
func (e *parkedRun) follow(t *guard.Tried) (over bool) {
	lock := e.held.Lock()
	policy := e.c.o.Policy(lock.Route)
	switch {
	case errors.Is(t.Stopped, idem.ErrLockLost) && !errors.Is(t.Stopped, idem.ErrUnheard):
		e.tell(ToldLost, string(idem.DecisionLockLost), "", t.Stopped)
		return true
	case errors.Is(t.Stopped, idem.ErrCancelled):
		if t.Sent {
			_ = e.rest(t, nextStep{kind: stepRetry}, policy, false) // that it may have run stays known
		}
		return e.stopped(idem.ErrCancelled)
	case errors.Is(t.Stopped, idem.ErrPaused): // nothing was sent, and it rests as it is
		return false
	case errors.Is(t.Stopped, idem.ErrNoSlot): // the same
		e.full = true
		return false
	case t.Failure.Code == idem.CodeTooOld:
		return e.dead(t, tooOldStep)
	case t.Stale != nil:
		return e.superseded(t.Stale)
	case policy == nil || policy.Park == nil: // the route is gone, or parks no more
		policy = fallback(policy)
	}
	e.c.slots.outcome(outcomeOf(t, policy) != idem.NotExecuted || t.Stopped != nil || t.Hopeless || t.Failure.Code == "request_unavailable")
	step, failed := after(policy, lock.Parked.Failures, t)
	switch step.kind {
	case stepEnd:
		return e.done(t, policy)
	case stepDead:
		return e.dead(t, step)
	}
	if e.rest(t, step, policy, failed) {
		return true
	}
	if errors.Is(t.Stopped, guard.ErrShutdown) { // the worker that takes it over finds how far this try came, as after any other
		e.putDown()
		return true
	}
	return false
}

// fallback is the policy for tries of executions whose route is gone or parks no more: none of them is given up.
func fallback(p *idem.Policy) *idem.Policy {
	var q idem.Policy
	if p != nil {
		q = *p
	}
	q.Park = &idem.ParkPolicy{Attempts: 10, OnFailure: idem.FailureHold}
	return &q
}

// done ends the execution with the upstream's answer, or lets go of it if the upstream goes on.
func (e *parkedRun) done(t *guard.Tried, policy *idem.Policy) bool {
	end := e.held.End(policy, t)
	e.tell(ToldDone, "", "", end.Err)
	if end.Recorded && t.Hold == 0 {
		e.drop(end.Record)
	}
	return true
}

// drop lets over delete the stored request outside of the ledger, unless the execution has become a dead letter: it may have been skipped
// meanwhile.
func (e *parkedRun) drop(rec *idem.Record) {
	e.unneeded = rec == nil || !rec.RequestKept
}

// dead ends it as a dead letter.
func (e *parkedRun) dead(t *guard.Tried, step nextStep) bool {
	var last *idem.Evidence
	p := *e.held.Lock().Parked
	if policy := e.c.o.Policy(e.held.Lock().Route); policy != nil && t.Failure.Code != idem.CodeTooOld {
		last = evidenceOf(t, policy, e.c.o.Now())
		p = p.AfterTry(last)
	}
	ctx, cancel := e.bounded()
	defer cancel()
	_, err := e.held.DeadLetter(ctx, idem.End{
		Status: idem.Failed, Outcome: p.Outcome(), Tried: last, Error: &idem.Failure{Code: step.code, Detail: step.why}, Answer: t.Answer, FinishedAt: e.c.o.Now(),
	})
	if errors.Is(err, idem.ErrNotOld) { // it is being renewed just now; the ledger reports its new age in a moment
		e.tooOld, e.due = false, time.Time{}
		_ = sleep(e.c.life, ageLag)
		return false
	}
	e.tell(ToldDeadLetter, step.code, step.why, err)
	return true
}

// superseded ends it because a newer event of its scope has gone through.
func (e *parkedRun) superseded(by *idem.Stale) bool {
	now := e.c.o.Now()
	ctx, cancel := e.bounded()
	defer cancel()
	abort := by.Abort(now)
	rec, err := e.held.Settle(ctx, idem.End{Status: idem.Aborted, Outcome: e.held.Lock().Parked.Outcome(), Abort: abort, FinishedAt: now})
	e.tell(ToldSuperseded, string(idem.DecisionSuperseded), abort.Reason, err)
	if err == nil {
		e.drop(rec)
	}
	return true
}

// rest writes down what the execution waits for.
func (e *parkedRun) rest(t *guard.Tried, step nextStep, policy *idem.Policy, failed bool) (over bool) {
	e.inRow++
	pause := max(step.pause, pauseAfter(e.inRow))
	last := evidenceOf(t, orNone(policy), e.c.o.Now())
	for {
		now := e.c.o.Now()
		p := *e.held.Lock().Parked
		if !tells(&p, last) { // a request whose answer got lost has written it
			if failed {
				p.Failures++
			}
			p = p.AfterTry(last)
		}
		if e.due, p.NextAttempt = now.Add(pause), now.Add(pause); step.kind == stepBlock {
			p.Blocked, p.NextAttempt = step.why, time.Time{}
			if p.Blocked == "" {
				p.Blocked = step.code
			}
		}
		ctx, cancel := e.bounded()
		err := e.held.Rest(ctx, p)
		cancel()
		switch {
		case err == nil:
			what := ToldRetry
			if step.kind == stepBlock {
				what = ToldBlocked
			}
			e.tell(what, step.code, step.why, nil)
			return false
		case errors.Is(err, idem.ErrCancelled):
			return e.stopped(idem.ErrCancelled)
		case errors.Is(err, idem.ErrLockLost) && !errors.Is(err, idem.ErrUnheard):
			e.tell(ToldLost, string(idem.DecisionLockLost), "", err)
			return true
		}
		if sleep(e.c.life, firstPause) != nil {
			return true
		}
	}
}

// tells reports whether p already has the end of a try.
func tells(p *idem.Parked, last *idem.Evidence) bool {
	return !p.Trying && p.Last != nil && p.Last.At.Equal(last.At.Round(time.Millisecond)) && p.Last.Outcome == last.Outcome && p.Last.Code == last.Code
}

func orNone(p *idem.Policy) *idem.Policy {
	if p == nil {
		return &idem.Policy{}
	}
	return p
}

func (e *parkedRun) tell(what ToldKind, code, why string, err error) {
	e.c.o.Told(Told{What: what, Lock: e.held.Lock(), Code: code, Why: why, Err: err})
}

// bounded returns the context of one request to the ledger. The end of a try is written down also while the process ends.
func (e *parkedRun) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(e.c.life), e.c.o.RequestTimeout)
}

// keepsBack returns how the try of a parked execution ends that is not made because its event is stale; nil: it is made. Its sender has been
// told that the event is accepted, so if the route rejects stale ones, it becomes a dead letter.
func keepsBack(p *idem.Policy, stale *idem.Stale) *guard.Tried {
	switch {
	case stale == nil || !p.StopsStale():
		return nil
	case p.Order.OnStale == idem.StaleReject:
		return &guard.Tried{Hopeless: true, Failure: idem.Failure{Code: idem.DecisionStale.Row().Code, Detail: stale.Reason()}}
	}
	return &guard.Tried{Stale: stale}
}
