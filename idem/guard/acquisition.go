package guard

import (
	"cmp"
	"context"
	"errors"
	"time"

	"hooklock/idem"
)

// acquisition is one delivery on its way to the lock.
type acquisition struct {
	guard   *Guard
	request *idem.Request
	sender  context.Context

	asked     bool
	admission Admission     // what is known of it; nothing before it was asked
	entry     *idem.Waiting // in the queue, after its wait; nil = there is none
	overtaken time.Duration
	waited    bool
	followed  bool
	stored    bool // it was tried: if the request store does not take it, it is decided as if parking were off
}

// acquireLock does what idem.Next says, until the delivery has the lock or its sender an answer.
func (t *acquisition) acquireLock() {
	defer t.leaveQueue()
	g := t.guard
	for {
		now := t.currentSituation()
		switch idem.Next(&now) {
		case idem.ActClaim:
			g.lively.Store(g.options.Now().UnixNano())
			t.asked, t.admission = true, g.admitAtOnce(t.request)
		case idem.ActQueue:
			t.waitForLock()
		case idem.ActFollow:
			t.followed = true
			t.waitAtMost(t.request.Policy.AttachTimeout, false, t.awaitFirstDelivery)
		case idem.ActPark:
			if atOnce := !t.asked; t.parkDelivery() && atOnce { // its sender waits for nothing
				return
			}
		case idem.ActDrop:
			t.admission.Decision = idem.DecisionSkipped
			return
		default: // it has the lock, or the response says why it does not run
			return
		}
	}
}

// currentSituation says how far the delivery is.
func (t *acquisition) currentSituation() idem.Situation {
	p := t.request.Policy
	now := idem.Situation{SenderWaits: true, Acquisition: idem.Acquisition{
		NoLock: t.barReason(), Skips: p.Strategy == idem.Skip, Waits: p.Strategy.Waits(),
		Follows: p.InFlight == idem.Attach, Waited: t.waited,
	}}
	switch now.NoLock {
	case 0, idem.NoLockDuplicate, idem.NoLockDecided:
	case idem.NoLockNotAsked:
		now.AtOnce = t.guard.parksAtOnce(t.request)
		now.MayPark = now.AtOnce && !t.stored && t.guard.MayPark(t.request, t.parkOn())
	case idem.NoLockTaken:
		now.MayPark = !t.stored && t.guard.MayPark(t.request, t.parkOn())
		if !t.waited {
			t.overtaken = t.guard.overtakenWait(t.request, &t.admission.Verdict)
		}
		now.Waits = now.Waits || t.overtaken > 0
	default:
		now.MayPark = !t.stored && t.guard.MayPark(t.request, t.parkOn())
	}
	return now
}

// barReason says why the delivery does not have the lock.
func (t *acquisition) barReason() idem.NoLockReason {
	switch {
	case !t.asked:
		return idem.NoLockNotAsked
	case t.admission.Execution != nil:
		return 0
	case t.followed:
		return idem.NoLockDecided
	}
	switch t.admission.Decision {
	case idem.DecisionLocked:
		return idem.NoLockTaken
	case idem.DecisionLimited:
		return idem.NoLockLimited
	case idem.DecisionPaused:
		return idem.NoLockPaused
	case idem.DecisionInFlight:
		return idem.NoLockDuplicate
	case idem.DecisionQueueFull:
		return idem.NoLockNoRoom
	case idem.DecisionWaitTimeout:
		if t.entry != nil || t.request.Policy.Observe {
			return idem.NoLockNoRoom
		}
	}
	return idem.NoLockDecided
}

// admitAtOnce decides without waiting.
func (g *Guard) admitAtOnce(r *idem.Request) Admission {
	if rec := g.cache.get(r.Scope.Key, g.options.Now()); rec != nil {
		if v := idem.Decide(&idem.Obstacle{Record: rec}, r, g.options.Now()); v.Decision != "" {
			return Admission{Verdict: v}
		}
	}
	if r.Policy.Quiet > 0 && !r.Policy.Observe { // it waits even if the lock is free, because a newer one may come
		return Admission{Verdict: idem.Verdict{Decision: idem.DecisionLocked}}
	}
	ctx, cancel := context.WithTimeout(g.options.Base, g.options.RequestTimeout) // from here on the ledger may be asked
	defer cancel()
	mine, running, err := g.live.enterSpot(ctx, r.Scope)
	switch {
	case err != nil:
		return unavailableAdmission(err)
	case running != nil:
		return Admission{Verdict: idem.Decide(&idem.Obstacle{Lock: running}, r, g.options.Now())}
	}
	if wait, ok := g.quotas.takeToken(r.Policy, g.options.Now()); !ok {
		g.live.leaveSpot(mine)
		return Admission{Verdict: idem.Verdict{Decision: idem.DecisionThrottled, RetryAfter: wait}}
	}
	held, callbackKey, v, err := g.claimLock(ctx, r)
	if held == nil || v.Attempt > 1 { // no execution, so no new event
		g.quotas.addTokens(r.Policy, 1, g.options.Now())
	}
	if held == nil {
		g.live.leaveSpot(mine)
		if err != nil {
			return unavailableAdmission(err)
		}
		return Admission{Verdict: v}
	}
	g.live.addRunning(mine, held.Lock())
	return g.endIfStale(newExecution(g, r.Policy, r, held, mine, callbackKey), r)
}

// endIfStale ends an execution at once that is older than what went through, if its route does not
// let it run.
func (g *Guard) endIfStale(x *Execution, r *idem.Request) Admission {
	stale := x.Lock().Stale
	now := idem.Situation{SenderWaits: true, Stale: r.Policy.StalenessOf(stale)}
	does := idem.Next(&now)
	if does == idem.ActCall || r.Policy.Observe {
		return Admission{Execution: x}
	}
	v := idem.Verdict{Decision: idem.DecisionStale, Holder: x.Lock().Execution, Stale: stale}
	if does == idem.ActRelease {
		return Admission{Verdict: v, Err: x.releaseLock().Err}
	}
	v.Decision = idem.DecisionSuperseded
	end := x.writeRecord(idem.End{Status: idem.Aborted, Outcome: idem.NotExecuted, Abort: stale.Abort(g.options.Now())})
	return Admission{Verdict: v, Unrecorded: !end.Recorded && !end.Lost, Err: end.Err}
}

func unavailableAdmission(err error) Admission {
	return Admission{Verdict: idem.Verdict{Decision: idem.DecisionStoreUnavailable}, Err: err}
}

// claimLock asks the ledger until it holds the lock, or knows why it may not.
func (g *Guard) claimLock(ctx context.Context, r *idem.Request) (held idem.RunningLock, callbackKey string,
	v idem.Verdict,
	err error) {
	v = idem.Verdict{Attempt: 1}
	var seenAt moment
	var unread error
	held, err = idem.ClaimLock(ctx, func() (idem.RunningLock, *idem.Obstacle, error) {
		var lock idem.Lock
		seenAt = g.cache.beginRead(g.options.Now())
		if r.Policy.Strategy == idem.Wait {
			// A delivery that cannot wait claims all the same: it may be a duplicate, which is
			// answered as one.
			ahead := g.options.Ledger.LastSeenLock(r.Scope)
			if ahead != nil && g.options.Ledger.Paused(r.Policy.Route, r.Scope.Workflow) == nil &&
				g.waiting.hasRoom(r.Scope.Workflow, r.Policy.MaxWaiting, g.options.MaxWaiting()) {
				return nil, &idem.Obstacle{Lock: ahead, Queue: true}, nil
			}
		}
		lock, callbackKey = g.newLock(r, v)
		return g.options.Ledger.Claim(ctx, lock, v.Prev)
	}, func(seen *idem.Obstacle) (dead *idem.Lock, over bool) {
		if unread = g.rememberRecord(ctx, r, seen, seenAt); unread != nil {
			return nil, true
		}
		if v = idem.Decide(seen, r, g.options.Now()); v.Decision != "" {
			return nil, true
		}
		if dead = v.Reap; dead != nil {
			v = idem.Verdict{Attempt: 1} // read again, as at first
		}
		return dead, false
	}, g.options.Ledger.Reap)
	return held, callbackKey, v, cmp.Or(err, unread)
}

// rememberRecord reads the answer of the record that was seen, which was written at any time
// before, and remembers both: unless a person lets the event run again, whose answer will be
// another one.
func (g *Guard) rememberRecord(ctx context.Context, r *idem.Request, seen *idem.Obstacle, at moment) error {
	rec := seen.Record
	if rec == nil {
		return nil
	}
	if rec.Settled() {
		if err := g.readAnswer(ctx, rec); err != nil {
			return err
		}
	}
	if !seen.Runs(r.Scope.Key) {
		g.cache.addIfLasting(r.Policy, rec, at, idem.ExtraRetention(rec.Retention))
	}
	return nil
}

// newLock returns the lock that a claim would write, and its callback key.
func (g *Guard) newLock(r *idem.Request, v idem.Verdict) (idem.Lock, string) {
	var random [20]byte
	g.readRandom(random[:])
	callbackKey, hash := idem.NewCallbackKey([10]byte(random[4:14]))
	id := idem.NewExecutionID(r.Scope.Workflow, r.Scope.Key, [4]byte(random[:4]))
	return r.Lock(id, hash, &v, g.options.Now()), callbackKey
}

// waitForLock lets the delivery wait in the queue. One that was overtaken is refused as at once if
// its moment is over.
func (t *acquisition) waitForLock() {
	g, p := t.guard, t.request.Policy
	limit, moment := p.WaitTimeout, !p.Strategy.Waits()
	if moment {
		limit = t.overtaken
	}
	parks := g.MayPark(t.request, t.parkOn())
	if parks {
		limit = min(limit, t.request.Parking.Patience)
	}
	t.waited = true
	t.waitAtMost(limit, parks, t.waitInQueue)
	if t.admission.Execution != nil && t.admission.Execution.Lock().Attempt == 1 {
		g.quotas.addTokens(p, -1, g.options.Now())
	}
	if d := t.admission.Decision; moment && (d == idem.DecisionWaitTimeout || d == idem.DecisionQueueFull) {
		t.admission.Decision = idem.DecisionLocked
	}
}

// waitAtMost lets the delivery wait for something, at most for limit, and records how long it did.
// parks: the wait ends when the process is about to.
func (t *acquisition) waitAtMost(limit time.Duration, parks bool, something func(context.Context)) {
	g, r, v, waited, since := t.guard, t.request, t.admission.Verdict, t.admission.Waited, t.guard.options.Now()
	seat := g.waiting.addWaiter(r.Scope.Workflow, r.Policy.MaxWaiting, g.options.MaxWaiting(), since)
	if seat == nil {
		full := idem.Verdict{Decision: idem.DecisionQueueFull, Holder: v.Holder, HolderTrace: v.HolderTrace,
			ClosedUntil: v.ClosedUntil, FullLimit: v.FullLimit}
		t.admission = Admission{Verdict: full, Waited: waited}
		return
	}
	defer g.waiting.removeWaiter(r.Scope.Workflow, seat)
	ctx, done := g.waitContext(t.sender, limit, parks)
	defer done()
	something(ctx)
	t.admission.Waited = waited + g.options.Now().Sub(since)
}

// waitInQueue enqueues the delivery, which is admitted from the head of the queue.
func (t *acquisition) waitInQueue(ctx context.Context) {
	g, r := t.guard, t.request
	w := &waiter{guard: g, request: r, ctx: ctx}
	w.setHolder(t.admission.Verdict)
	end, err := idem.AwaitLock(ctx, g.options.Ledger, w, idem.Verdict{Attempt: 1, Behind: t.admission.Behind})
	switch t.entry = end.Entry; {
	case end.Running != nil:
		t.admission = g.endIfStale(newExecution(g, r.Policy, r, end.Running,
			g.live.noteWonLock(r.Scope, end.Running.Lock()), w.callbackKey), r)
	case end.Verdict.Decision == idem.DecisionWaitTimeout:
		t.admission = w.gaveUp()
	case end.Verdict.Decision != "":
		t.admission = Admission{Verdict: end.Verdict, Err: err}
	default:
		t.admission = unavailableAdmission(err)
	}
}

// awaitFirstDelivery lets a duplicate wait for the end of the first delivery, whose answer it gets.
// It never runs anything itself.
func (t *acquisition) awaitFirstDelivery(ctx context.Context) {
	first, ledger := t.admission.Verdict, t.guard.options.Ledger
	seen, err := ledger.AwaitEnd(ctx, first.Copy)
	for err == nil && seen.Lock != nil && seen.Lock.Dead && seen.Lock.Execution == first.Holder {
		if err = ledger.Reap(ctx, seen.Lock); err == nil {
			seen, err = ledger.AwaitEnd(ctx, seen.Lock) // another process may have ended it just before
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		t.admission = Admission{Verdict: first, Err: err}
	case err != nil:
		t.admission = unavailableAdmission(err)
	default:
		same := idem.DecideAttached(seen, t.request, first.Holder)
		same.HolderTrace = first.HolderTrace
		t.admission = Admission{Verdict: same}
	}
}

// leaveQueue takes the delivery out of the queue, if it is still there.
func (t *acquisition) leaveQueue() {
	if t.entry == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.guard.options.Base), t.guard.options.RequestTimeout)
	defer cancel()
	t.admission.Err = errors.Join(t.admission.Err, t.entry.Leave(ctx))
}

// parkDelivery parks the delivery where it waits, or at the end of the queue, or finds that another
// one of its event was before it. It returns false if it could not be stored.
func (t *acquisition) parkDelivery() bool {
	t.stored = true
	if t.request.Policy.Observe {
		t.admission.Decision = idem.DecisionParked
		return true
	}
	g, r, on, waited := t.guard, t.request, t.parkOn(), t.admission.Waited
	if t.entry == nil {
		a := g.enqueueParked(r, t.admission.Verdict, on)
		if errors.Is(a.Err, errNotStored) {
			return false
		}
		t.admission, t.asked = a, true
	} else if err := g.parkEntry(r, t.entry, on); errors.Is(err, idem.ErrNotRecorded) {
		t.admission = unavailableAdmission(err)
		t.admission.Unsure = true
	} else if err != nil {
		t.admission.Err = errors.Join(t.admission.Err, err)
		return false
	} else {
		t.admission = Admission{Verdict: idem.Verdict{Decision: idem.DecisionParked, Holder: t.entry.Lock.Execution,
			Accepted: true, On: on}}
		t.entry = nil
	}
	if t.admission.Waited = waited; t.admission.Accepted {
		g.quotas.addTokens(r.Policy, -1, g.options.Now())
	}
	return true
}

// parkOn returns the reason for which the delivery would be parked now.
func (t *acquisition) parkOn() idem.ParkOn {
	switch {
	case !t.asked && t.request.Parking.AtOnce:
		return idem.ParkSenderLimit
	case t.admission.Decision == idem.DecisionPaused:
		return idem.ParkPaused
	}
	return idem.ParkLocked
}
