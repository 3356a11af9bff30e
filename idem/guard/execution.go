package guard

import (
	"context"
	"errors"
	"time"

	"hooklock/idem"
)

// Why an execution has to stop, beside ErrLockLost and ErrCancelled: the causes of its Context.
var (
	// ErrMaxDuration says that it reached the route's max_duration.
	ErrMaxDuration = errors.New("max_duration reached")
	// ErrShutdown says that the process ends and has no time left.
	ErrShutdown = errors.New("hooklock shuts down")
)

// Execution is a delivery that was admitted, or one try of an accepted event. End ends it; only the
// first call counts, and one is deferred, for whatever else happens. Its methods are not safe for
// concurrent use, but for Context, Lock and Begin.
type Execution struct {
	guard  *Guard
	policy *idem.Policy
	// request is what was admitted; nil: its event was accepted before, and this is one of its
	// tries.
	request *idem.Request
	running idem.RunningLock
	spot    *spot
	began   time.Time // by the guard's clock; MaxDuration is counted from here
	// CallbackKey is the bearer token for callbacks about this execution. It goes to the upstream
	// and is never stored or logged.
	CallbackKey string

	ctx      context.Context
	stop     context.CancelCauseFunc
	deadline context.CancelFunc

	ended  bool
	parked bool
	result Tried // of a try of an accepted event that has ended
}

// newExecution returns the execution that has a lock; r is nil for a try of an accepted event.
func newExecution(g *Guard, p *idem.Policy, r *idem.Request, running idem.RunningLock, at *spot,
	callbackKey string) *Execution {
	x := &Execution{guard: g, policy: p, request: r, running: running, spot: at, began: g.options.Now(),
		CallbackKey: callbackKey}
	x.ctx, x.stop = context.WithCancelCause(g.options.Base)
	x.deadline = func() {}
	if d := p.MaxDuration; d > 0 {
		x.ctx, x.deadline = context.WithTimeoutCause(x.ctx, d, ErrMaxDuration)
	}
	running.OnStop(func(cause error) { x.stop(cause) })
	return x
}

// Lock returns the lock of the execution. The caller must not change it.
func (x *Execution) Lock() *idem.Lock { return x.running.Lock() }

// Context ends when the execution has to stop; its cause says why: ErrLockLost, ErrCancelled,
// ErrMaxDuration or ErrShutdown. It is the execution's life and not the sender's.
func (x *Execution) Context() context.Context { return x.ctx }

// Begin makes the last check before the first byte goes to the upstream. After an error nothing may
// be sent, and the caller ends the execution.
func (x *Execution) Begin() error {
	if err := context.Cause(x.ctx); err != nil {
		return err
	}
	return x.running.Begin()
}

// Ended reports whether it has ended, or this process has let go of it.
func (x *Execution) Ended() bool { return x.ended }

// Ending is what became of an execution, or of one try of it.
type Ending struct {
	// Record is what the ledger has now. nil if the lock was released, or if nothing was recorded.
	Record *idem.Record
	// Recorded means that the outcome is in the ledger. Otherwise the response says that it is not.
	Recorded bool
	// Lost means that another process had ended the execution before.
	Lost bool
	// Took is how long the ledger took.
	Took time.Duration
	// Cancelled means that the execution ended with a cancel that had been asked for.
	Cancelled bool
	// Hold is how long the lock outlives the answer. 0 if it does not.
	Hold time.Duration

	// Parked means that the event is accepted and that the execution has not ended: the park worker
	// decides what follows.
	Parked  bool
	Outcome idem.Outcome // what is known of a try of a parked execution
	// On is why the event was accepted with this end. "" if it had been before.
	On idem.ParkOn
	// Unsure says that it is unknown whether its event was accepted, so it may run. WouldPark:
	// under Observe, it would have been accepted.
	Unsure, WouldPark bool
	// Counted means that Tried.Counted is counted with what follows. It is not if the try brings no
	// outcome, because the service has no byte of it or asks for credentials.
	Counted bool

	Err error // why the outcome was not recorded, or the event not accepted, for the log
}

// End ends the execution with what came of the call of the service, if there was one, and stores
// what follows. The Guard takes over the memory of the answer.
func (x *Execution) End(t Tried) Ending {
	if x.ended {
		return Ending{Recorded: true}
	}
	x.fillTried(&t)
	j := idem.Judge(x.policy, t.Try())
	counted := x.countTry(&j, &t)
	end := x.writeTryEnd(&j, &t)
	end.Counted = counted
	return end
}

// countTry counts the try with what is written next of its execution.
func (x *Execution) countTry(j *idem.Judgement, t *Tried) bool {
	if t.Counted.Route == "" || j.IfSenderWaits == idem.ToRelease {
		return false
	}
	one, result := t.Counted, idem.CountFailed
	switch {
	case t.Answer == nil:
		result = idem.CountErrors
	case idem.Is2xx(t.Answer.Status):
		result = idem.CountSucceeded
	}
	one.Kinds |= idem.CountSetOf(result)
	x.running.Count(one)
	return true
}

// writeTryEnd writes down what follows a try.
func (x *Execution) writeTryEnd(j *idem.Judgement, t *Tried) Ending {
	if x.handBack(t) {
		return Ending{Recorded: true, Parked: true, Outcome: j.Outcome}
	}
	now := idem.Situation{SenderWaits: true, After: j.IfSenderWaits, MayPark: x.isStorable(j.ParkOn, t)}
	var unstored Ending
	if idem.Next(&now) == idem.ActPark {
		if unstored = x.parkAfterCall(j.ParkOn, t); unstored.Parked {
			return unstored
		}
		now.MayPark = false
	}
	var end Ending
	switch idem.Next(&now) {
	case idem.ActRelease:
		end = x.releaseLock()
	case idem.ActHold:
		end = x.holdLock(t.Hold)
	default:
		end = x.writeRecord(x.endOf(j, t))
	}
	end.Unsure, end.WouldPark, end.Err = unstored.Unsure, unstored.WouldPark, errors.Join(unstored.Err, end.Err)
	return end
}

// fillTried adds to t what the guard knows.
func (x *Execution) fillTried(t *Tried) {
	switch {
	case t.Answer == nil && !t.Hopeless:
		t.Stopped = context.Cause(x.ctx)
	case t.Answer == nil:
	default:
		if w := x.guard.worker; w != nil {
			w.OnReached()
		}
		if !t.Challenge {
			t.RetryAfter = retryAfter(t.Answer, x.guard.options.Now())
		}
	}
}

// endOf returns the end of an execution that its latest try settles.
func (x *Execution) endOf(j *idem.Judgement, t *Tried) idem.End {
	end := idem.End{Status: j.Status, Outcome: j.Outcome, Remembered: j.Remembered, Answer: t.Answer, Error: &t.Failure}
	if a := t.Answer; a != nil {
		if end.Error = j.AnswerFailure(a.Status); !end.Remembered && x.policy.InFlight != idem.Attach ||
			a.Bytes > int64(x.policy.ReplayBody) {
			a.Whole, a.Header, a.Body = false, nil, nil
		}
	} else if errors.Is(t.Stopped, ErrMaxDuration) {
		end.Status, end.Error = idem.Aborted, nil
		end.Abort = &idem.Cancel{By: "policy", Reason: "max_duration of " + x.policy.MaxDuration.String() + " reached",
			At: x.guard.options.Now()}
	}
	return end
}

// releaseLock gives the lock back: the event is as if it had not come.
func (x *Execution) releaseLock() Ending {
	if !x.markEnded() {
		return Ending{Recorded: true}
	}
	defer x.close()
	ctx, cancel := x.requestContext()
	defer cancel()
	since := x.guard.options.Now()
	err := x.running.Release(ctx)
	took := x.guard.options.Now().Sub(since)
	if errors.Is(err, idem.ErrCancelled) {
		return Ending{Recorded: true, Cancelled: true, Took: took}
	}
	return Ending{Recorded: err == nil, Lost: errors.Is(err, idem.ErrLockLost), Took: took, Err: err}
}

// minHold is the shortest hold. etcd gives a lease whole seconds, and a shorter hold could not be
// renewed in time.
const minHold = 2 * time.Second

// maxHold is the longest one, for a policy without MaxDuration.
const maxHold = 10 * 365 * 24 * time.Hour

// holdLock lets go of an execution whose upstream answered and goes on: the lock outlives the
// answer, and any replica renews or ends it. It lives for ttl unless it is renewed: in whole
// seconds, at least minHold, and no longer than what is left of the policy's MaxDuration. If the
// hold cannot be written, this process keeps the lock until it can be, or until its session ends.
func (x *Execution) holdLock(ttl time.Duration) Ending {
	if !x.markEnded() {
		return Ending{Recorded: true}
	}
	defer x.close()
	since := x.guard.options.Now()
	if most := x.policy.MaxDuration; most > 0 {
		ttl = min(ttl, most-since.Sub(x.began))
	}
	ttl = max((min(ttl, maxHold) + time.Second - 1).Truncate(time.Second), minHold)
	ctx, cancel := x.requestContext()
	defer cancel()
	err := x.running.Hold(ctx, ttl)
	return Ending{Hold: ttl, Recorded: err == nil, Lost: errors.Is(err, idem.ErrLockLost),
		Took: x.guard.options.Now().Sub(since), Err: err}
}

func (x *Execution) writeRecord(end idem.End) Ending {
	if !x.markEnded() {
		return Ending{Recorded: true}
	}
	defer x.close()
	end.FinishedAt = x.guard.options.Now()
	seenAt := x.guard.cache.beginRead(end.FinishedAt)
	ctx, cancel := x.requestContext()
	defer cancel()
	rec, err := x.running.Settle(ctx, end)
	if err == nil {
		x.guard.cache.addIfLasting(x.policy, rec, seenAt, rec.Retention)
	}
	cancelled := err == nil && rec.Status == idem.Aborted && end.Abort == nil
	return Ending{
		Record: rec, Recorded: err == nil, Lost: errors.Is(err, idem.ErrLockLost), Cancelled: cancelled,
		Took: x.guard.options.Now().Sub(end.FinishedAt), Err: err,
	}
}

// requestContext returns the context for writing the end of an execution. It ignores that the
// execution was told to stop: its end must be written all the same.
func (x *Execution) requestContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(x.ctx), x.guard.options.RequestTimeout)
}

// close removes the execution from this process, after its end was written.
func (x *Execution) close() {
	x.guard.live.leaveSpot(x.spot)
	x.deadline()
	x.stop(nil)
}
