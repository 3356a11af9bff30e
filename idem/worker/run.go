package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
)

// run is one execution that this process runs. Its methods are not safe for concurrent use; other
// goroutines may send on wake.
type run struct {
	worker  *Worker
	running *guard.ParkedExecution
	id      idem.ExecutionID
	scope   idem.Scope    // of its lock
	bytes   int64         // of its request
	wake    chan struct{} // something about it has changed

	tooOld  bool      // when it was taken; later the ledger reports it
	request []byte    // for the first try, as it was read when it was taken; nil = to be read
	full    bool      // a limit had no slot for it, and nothing has woken it since
	due     time.Time // of the next try, by the guard's clock; zero = now
	slot    *trySlot  // this worker's: it has it, or waits for it; nil = neither
	// closed when slot is one, and not a place in the line any more; nil = it was one from the
	// beginning
	given    chan struct{}
	ended    *ended // its latest try, until that is written down; nil = the ledger has all
	ending   bool   // its try was stopped because the process ends
	unneeded bool   // its stored request outside of the ledger can be deleted
}

// ended is a try that has ended, and what follows.
type ended struct {
	tried  guard.Tried
	policy *idem.Policy
	next   nextStep // its kind is 0 if nothing was tried
}

// run runs the execution to its end, or until another process has it. t is a try that has just
// ended, or nil. r may have a slot already.
func (r *run) run(t *guard.Tried) {
	defer r.cleanUp()
	if t != nil {
		r.noteEnd(t)
	}
	r.running.OnStop(func(error) { sendSignal(r.wake) })
	for over := false; !over; {
		over = r.doAction(r.nextAction())
	}
}

// nextAction says what the execution does now.
func (r *run) nextAction() idem.Action {
	lock, policy := r.running.Lock(), r.worker.options.Policy(r.running.Lock().Route)
	now := idem.Situation{
		Stop:      r.stopOf(lock),
		Ending:    r.ending || r.worker.life.Err() != nil,
		Unrouted:  policy == nil,
		TooOld:    r.isTooOld(),
		Paused:    r.isPaused(lock),
		Blocked:   lock.Parked.Blocked != "",
		Full:      r.full,
		Early:     r.due.After(r.worker.options.Now()),
		HasSlots:  lock.HasSlot(),
		OutOfTurn: !r.hasTurn(),
	}
	if policy != nil {
		if lock.Parked.On != idem.ParkAgain { // a person wants it, though newer ones went through
			now.Stale = policy.StalenessOf(lock.Stale)
		}
		now.MustAsk = r.worker.options.Ask != nil && lock.Parked.Asks(policy, lock.Question)
	}
	if r.ended != nil {
		now.After = r.ended.next.kind
	}
	return idem.Next(&now)
}

// stopOf returns why this process has to stop with the execution: what its latest try was told, or
// what is known now.
func (r *run) stopOf(lock *idem.Lock) idem.Stop {
	var err error
	if r.ended != nil {
		err = r.ended.tried.Stopped
	} else {
		err = r.running.Begin()
	}
	switch {
	case errors.Is(err, idem.ErrNotRenewed):
		return idem.StopNotRenewed
	case errors.Is(err, idem.ErrLockLost):
		return idem.StopLost
	case !errors.Is(err, idem.ErrCancelled):
		return 0
	case lock.Cancel == nil: // it was ended elsewhere
		return idem.StopLost
	case lock.Cancel.Skip:
		return idem.StopSkip
	}
	return idem.StopAbort
}

// doAction does one thing. over: this process has nothing more to do with the execution.
func (r *run) doAction(what idem.Action) (over bool) {
	if what != idem.ActCall {
		r.request = nil // nothing keeps a request in memory while it waits
	}
	if what != idem.ActCall && what != idem.ActAwaitTurn {
		r.leaveSlot()
	}
	switch what {
	case idem.ActLeave:
		if r.ended != nil {
			r.reportEvent(EventLost, string(idem.DecisionLockLost), "", r.ended.tried.Stopped)
		}
		return true
	case idem.ActSettle, idem.ActHold:
		return r.settleAnswered()
	case idem.ActDeadLetter:
		return r.settleDeadLetter(&r.ended.tried, r.ended.next)
	case idem.ActRecordTry, idem.ActBlock:
		return r.writePause(&r.ended.tried, r.ended.next, r.ended.policy)
	case idem.ActAbort, idem.ActSkip:
		return r.settleCancelled()
	case idem.ActSupersede:
		return r.settleSuperseded(r.running.Lock().Stale)
	case idem.ActRefuse:
		stale := r.running.Lock().Stale
		t := guard.Tried{Failure: idem.Failure{Code: idem.DecisionStale.Row().Code, Detail: stale.Reason()}}
		return r.settleDeadLetter(&t, nextStep{code: t.Failure.Code, why: t.Failure.Detail})
	case idem.ActExpire:
		return r.settleDeadLetter(&guard.Tried{Failure: idem.Failure{Code: idem.CodeTooOld}}, tooOldStep)
	case idem.ActHandOver:
		r.putDown()
		return true
	case idem.ActFreeSlots:
		r.giveSlotsBack(r.running.Lock())
	case idem.ActAwaitLock:
		return sleep(r.worker.life, firstPause) != nil
	case idem.ActAwaitChange:
		r.waitForChange(ageLook, nil)
	case idem.ActAwaitTime:
		r.waitForChange(min(r.due.Sub(r.worker.options.Now()), ageLook), nil)
	case idem.ActAwaitTurn:
		r.awaitTurn()
	case idem.ActAsk:
		return r.askService()
	case idem.ActCall:
		r.callUpstream()
	}
	return false
}

// hasTurn reports whether the execution has a slot of this worker, and not only a place in the
// line.
func (r *run) hasTurn() bool {
	if r.slot == nil || r.given == nil {
		return r.slot != nil
	}
	select {
	case <-r.given:
		return true
	default:
		return false
	}
}

// awaitTurn waits for a slot, or for a change.
func (r *run) awaitTurn() {
	if r.slot == nil {
		given := make(chan struct{})
		lock := r.running.Lock()
		r.slot, r.given = r.worker.slots.joinQueue(lock.Route, lock.Scope.Workflow, func(*trySlot) { close(given) }),
			given
	}
	r.waitForChange(ageLook, r.given)
}

// leaveSlot gives the slot back, or leaves the line for one.
func (r *run) leaveSlot() {
	if r.slot != nil {
		r.slot.giveUpSlot()
		r.slot, r.given = nil, nil
	}
}

// cleanUp cleans up when this process has nothing to do with the execution any more.
func (r *run) cleanUp() {
	r.leaveSlot()
	r.worker.mu.Lock()
	if r.worker.runs[r.scope] == r {
		delete(r.worker.runs, r.scope)
	}
	r.worker.mu.Unlock()
	r.running.Leave()
	r.worker.options.Ledger.MarkReady(r.running.Lock().Scope)
	if r.unneeded && r.worker.options.Drop != nil { // last: a disk that hangs must not delay the executions behind it
		r.worker.options.Drop(r.id, r.bytes)
	}
}

// waitForChange waits until something about the execution changes, at most for d, or until it is
// given a slot.
func (r *run) waitForChange(d time.Duration, given <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-given:
		return
	case <-timer.C:
	case <-r.wake:
		// an operator wants it to run now
		if p := r.running.Lock().Parked; p.NextAttempt.IsZero() && p.Blocked == "" && !p.Trying {
			r.due, r.tooOld = time.Time{}, false
		}
	case <-r.worker.life.Done():
	}
	r.full = false
}

// giveSlotsBack frees the slots of an execution that was claimed, or taken over, and cannot be
// tried yet.
func (r *run) giveSlotsBack(lock *idem.Lock) {
	ctx, done := r.requestContext()
	defer done()
	if err := r.running.RecordTry(ctx, *lock.Parked); err != nil { // Begin says what stops it
		_ = sleep(r.worker.life, firstPause)
	}
}

// putDown leaves the execution to others, at once and not only when this process's session has
// expired.
func (r *run) putDown() {
	ctx, done := r.requestContext()
	defer done()
	_ = r.running.Release(ctx) // goes on by itself, and at the latest the session's end does the same
}

// settleCancelled ends an execution that was cancelled. over is false if that is not known yet.
func (r *run) settleCancelled() (over bool) {
	cancel := r.running.Lock().Cancel
	end := idem.End{Status: idem.Aborted, Outcome: r.running.Lock().Parked.Outcome(), Abort: cancel,
		FinishedAt: r.worker.options.Now()}
	ctx, done := r.requestContext()
	defer done()
	rec, err := r.running.Settle(ctx, end)
	if cancel.Skip {
		r.reportEvent(EventDeadLetter, "skipped", cancel.Reason, err)
	}
	if err == nil {
		r.markUnneeded(rec)
	}
	return err == nil || errors.Is(err, idem.ErrLockLost) || errors.Is(err, idem.ErrNotRecorded)
}

// callUpstream sends the request once, and notes how that ended.
func (r *run) callUpstream() {
	policy := r.worker.options.Policy(r.running.Lock().Route)
	if policy == nil { // the route was removed just now
		return
	}
	began := time.Now()
	t := r.tryOnce(policy)
	r.running.OnStop(func(error) { sendSignal(r.wake) })
	if t.Sent || t.Answer != nil {
		r.worker.slots.noteAnswer(policy.Route, time.Since(began))
	}
	r.leaveSlot()
	r.noteEnd(&t)
}

// tryOnce sends the request once.
func (r *run) tryOnce(policy *idem.Policy) guard.Tried {
	ctx, cancel := r.requestContext()
	defer cancel()
	request, err := r.request, error(nil)
	if r.request = nil; request == nil {
		request, err = r.worker.options.Ledger.Request(ctx, r.id)
	}
	if err != nil {
		return guard.Tried{Failure: idem.Failure{Code: "request_unavailable", Detail: err.Error()}}
	}
	return r.running.Try(ctx, policy, func(x *guard.Execution) { r.worker.options.Try(x, request) })
}

// noteEnd notes how a try ended, and what follows.
func (r *run) noteEnd(t *guard.Tried) {
	lock := r.running.Lock()
	policy := r.worker.options.Policy(lock.Route)
	if policy == nil || policy.Park == nil { // the route is gone, or parks no more
		policy = fallbackPolicy(policy, lock)
	}
	switch {
	case errors.Is(t.Stopped, idem.ErrPaused): // nothing was sent, and it rests as it is
		return
	case errors.Is(t.Stopped, idem.ErrNoSlot): // the same
		r.full = true
		return
	}
	r.ended = &ended{tried: *t, policy: policy}
	r.ending = errors.Is(t.Stopped, guard.ErrShutdown) // what takes it finds how far this try came, as after any other
	switch {
	case errors.Is(t.Stopped, idem.ErrCancelled) && !t.Sent:
	case errors.Is(t.Stopped, idem.ErrCancelled):
		r.ended.next.kind = idem.ToTryAgain // that it may have run stays known
	default:
		if asked := min(t.RetryAfter, mostAsked); asksToBeLeft(t) && r.worker.slots.noteRefusal(lock.Route, asked) {
			r.reportEvent(EventLeftAlone, "", fmt.Sprintf("%s, and asks for %v", textOf(t), asked), nil)
		}
		reached := idem.Judge(policy, t.Try()).Outcome != idem.NotExecuted
		r.worker.slots.noteOutcome(reached || t.Stopped != nil || t.Hopeless || t.Failure.Code == "request_unavailable")
		r.ended.next = stepAfterTry(policy, &lock.ExecutionFacts, lock.Parked.Failures, lock.Question != nil, t)
	}
}

// isPaused reports whether the execution rests because it is paused.
func (r *run) isPaused(lock *idem.Lock) bool {
	return r.worker.options.Ledger.Paused(lock.Route, lock.Scope.Workflow) != nil
}

// isTooOld reports whether its MaxAge is over.
func (r *run) isTooOld() bool { return r.tooOld || r.worker.options.Ledger.IsTooOld(r.id) }

var tooOldStep = nextStep{code: idem.CodeTooOld, why: "it was not executed within the route's max_age"}

// ageLag is how long a worker waits before it asks the ledger again, after the ledger has found the
// age not to be over.
const ageLag = 50 * time.Millisecond

// fallbackPolicy is the policy for tries of executions whose route is gone or parks no more: none
// of them is given up. On a route that parks nothing, one that a person lets run again must not
// close its workflow until a person looks.
func fallbackPolicy(p *idem.Policy, lock *idem.Lock) *idem.Policy {
	var q idem.Policy
	if p != nil {
		q = *p
	}
	q.Park = &idem.ParkPolicy{Attempts: 10, OnFailure: idem.FailureHold}
	if lock.Parked.On == idem.ParkAgain {
		q.Park = &idem.ParkPolicy{Attempts: 3, OnFailure: idem.FailureSkip}
	}
	return &q
}

// settleAnswered ends the execution with the upstream's answer, or lets go of it if the upstream
// goes on.
func (r *run) settleAnswered() bool {
	t := &r.ended.tried
	end := r.running.End(r.ended.policy, t)
	r.reportEvent(EventDone, "", "", end.Err)
	if end.Recorded && t.Hold == 0 {
		r.markUnneeded(end.Record)
	}
	return true
}

// markUnneeded has cleanUp delete the stored request outside of the ledger, unless the execution is
// a dead letter: it may have been skipped meanwhile.
func (r *run) markUnneeded(rec *idem.Record) {
	r.unneeded = rec == nil || !rec.RequestKept
}

// settleDeadLetter ends it as a dead letter.
func (r *run) settleDeadLetter(t *guard.Tried, step nextStep) bool {
	var last *idem.Evidence
	p := *r.running.Lock().Parked
	if policy := r.worker.options.Policy(r.running.Lock().Route); policy != nil && t.Failure.Code != idem.CodeTooOld {
		last = t.Evidence(policy, r.worker.options.Now())
		p = p.AfterTry(last)
	}
	ctx, cancel := r.requestContext()
	defer cancel()
	_, err := r.running.Settle(ctx, idem.End{
		Status: idem.Failed, Outcome: p.Outcome(), RequestKept: true, Tried: last, Answer: t.Answer,
		Error: &idem.Failure{Code: step.code, Detail: step.why}, FinishedAt: r.worker.options.Now(),
	})
	if errors.Is(err, idem.ErrNotOld) { // it is being renewed just now; the ledger reports its new age in a moment
		r.tooOld, r.due = false, time.Time{}
		_ = sleep(r.worker.life, ageLag)
		return false
	}
	r.reportEvent(EventDeadLetter, step.code, step.why, err)
	return true
}

// settleSuperseded ends it because a newer event of its scope has gone through.
func (r *run) settleSuperseded(by *idem.Stale) bool {
	now := r.worker.options.Now()
	ctx, cancel := r.requestContext()
	defer cancel()
	abort := by.Abort(now)
	rec, err := r.running.Settle(ctx, idem.End{Status: idem.Aborted, Outcome: r.running.Lock().Parked.Outcome(),
		Abort:      abort,
		FinishedAt: now})
	r.reportEvent(EventSuperseded, string(idem.DecisionSuperseded), abort.Reason, err)
	if err == nil {
		r.markUnneeded(rec)
	}
	return true
}

// writePause writes down what the execution waits for.
func (r *run) writePause(t *guard.Tried, step nextStep, policy *idem.Policy) (over bool) {
	last := t.Evidence(orNone(policy), r.worker.options.Now())
	for {
		now := r.worker.options.Now()
		p := *r.running.Lock().Parked
		if !hasEndOf(&p, last) { // a request whose answer got lost has written it
			if step.failed {
				p.Failures++
			}
			p = p.AfterTry(last)
			p.Pauses++
		}
		first, most := pausesOf(policy)
		p.Pause = max(step.pause, pauseAfter(first, most, p.Pauses))
		p.NextAttempt = now.Add(p.Pause)
		if step.kind == idem.ToBlock {
			p.Blocked, p.NextAttempt, p.Pause = step.why, time.Time{}, 0
			if p.Blocked == "" {
				p.Blocked = step.code
			}
		}
		ctx, cancel := r.requestContext()
		err := r.running.RecordTry(ctx, p)
		cancel()
		switch {
		case err == nil:
			r.planNextTry()
			what := EventRetry
			if step.kind == idem.ToBlock {
				what = EventBlocked
			}
			r.reportEvent(what, step.code, step.why, nil)
			r.ended = nil
			return false
		case errors.Is(err, idem.ErrCancelled): // what follows is decided anew
			r.ended = nil
			return false
		case errors.Is(err, idem.ErrLockLost) && !errors.Is(err, idem.ErrNotRenewed):
			r.reportEvent(EventLost, string(idem.DecisionLockLost), "", err)
			return true
		}
		if sleep(r.worker.life, firstPause) != nil {
			return true
		}
	}
}

// planNextTry makes the next try due when its lock says.
func (r *run) planNextTry() {
	r.due = time.Time{}
	now := r.worker.options.Now()
	p := r.running.Lock().Parked.Resumed(now, 0) // the process that accepted it may have another clock
	if at := p.NextAttempt; !at.IsZero() {
		r.due = now.Add(at.Sub(now)) // on the monotonic clock: the wall clock may be set meanwhile
	}
}

// hasEndOf reports whether p already has the end of a try.
func hasEndOf(p *idem.Parked, last *idem.Evidence) bool {
	return !p.Trying && p.Last != nil && p.Last.At.Equal(last.At.Round(time.Millisecond)) &&
		p.Last.Outcome == last.Outcome && p.Last.Code == last.Code
}

func orNone(p *idem.Policy) *idem.Policy {
	if p == nil {
		return &idem.Policy{}
	}
	return p
}

func (r *run) reportEvent(what EventKind, code, why string, err error) {
	r.worker.options.OnEvent(Event{What: what, Lock: r.running.Lock(), Code: code, Why: why, Err: err})
}

// requestContext returns the context of one request to the ledger. The end of a try is written down
// also while the process ends.
func (r *run) requestContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.worker.life), r.worker.options.RequestTimeout)
}
