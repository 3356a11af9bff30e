package idem

import (
	"context"
	"errors"
	"time"
)

// ClaimLock claims until the lock is held, or until judge says that it is over: then both results
// are nil. judge is given what stands in the way; if it returns a lock whose owner is dead, that
// execution is reaped before the next claim. A claim that was not applied is made again, so each
// one needs an execution ID of its own. Other errors are those of claim and reap, and the
// context's.
func ClaimLock(
	ctx context.Context, claim func() (RunningLock, *Obstacle, error), judge func(*Obstacle) (dead *Lock, over bool),
	reap func(context.Context, *Lock) error,
) (RunningLock, error) {
	for {
		held, seen, err := claim()
		switch {
		case errors.Is(err, ErrNotClaimed):
			err = nil
		case err == nil && held != nil:
			return held, nil
		case err == nil:
			dead, over := judge(seen)
			if over {
				return nil, nil
			}
			if dead != nil {
				err = reap(ctx, dead)
			}
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
}

// Waiter is what AwaitLock and Accept ask about the delivery that waits for a lock in its
// workflow's queue.
type Waiter interface {
	// Lock returns the lock that a new queue entry describes, and later the claim. Each call has an
	// execution ID that was not used before.
	Lock(v Verdict) Lock
	// Judge decides on what was seen: at the head of the queue, or, if queued is false, when no
	// entry was made. Without a Decision it reaps the dead owner, claims at the head of the queue,
	// or makes another entry behind Verdict.Behind. An entry at the head that is locked or in
	// flight waits on.
	Judge(seen *Obstacle, queued bool) Verdict
	// BeforeRetry is called after an error, such as ErrQueueEntryLost, and may wait. If it returns
	// nil, another entry is made; its error is that of AwaitLock or Accept.
	BeforeRetry(err error) error
	// RequestContext returns the context of one request to the ledger. It may outlive the wait.
	RequestContext() (context.Context, context.CancelFunc)
	// Now returns the time at which an execution begins.
	Now() time.Time
}

// Waiting is an entry in the queue.
type Waiting struct {
	QueueEntry
	Lock Lock // what the entry says of the execution
}

// WaitEnd is how a wait for a lock ended: with the lock, or with a Decision.
type WaitEnd struct {
	Running RunningLock // the lock; nil = the execution did not get it
	// Verdict says why there is no lock: it is the Waiter's own, aborted if the execution was
	// cancelled in the queue, or wait_timeout if the context has ended.
	Verdict Verdict
	// Entry is set after wait_timeout: the caller parks the entry or leaves it. nil = the entry is
	// gone, or is not there.
	Entry *Waiting
}

// AwaitLock waits in the queue until w has the lock, or may not have it. known is what w may claim
// over, as far as it knows; the zero value is nothing. An error beside a Decision says that the
// entry is not removed yet; the ledger goes on to remove it. Other errors are those that
// BeforeRetry returned.
func AwaitLock(ctx context.Context, ledger Ledger, w Waiter, known Verdict) (WaitEnd, error) {
	q := &queuing{Waiter: w, ctx: ctx, ledger: ledger, may: known}
	var end WaitEnd
	over, err := q.repeatUntilOver(func() (over bool, err error) {
		end, err = q.waitInQueue()
		return end.Running != nil || end.Verdict.Decision != "", err
	})
	if !over && err == nil {
		end.Verdict.Decision = DecisionWaitTimeout
	}
	return end, err
}

// Accept makes an entry that is parked from the beginning, so that w need not wait. store stores
// the request of an execution; known is as for AwaitLock. The verdict is parked, w's own, or has no
// Decision if ctx has ended. Errors are those that BeforeRetry returned.
func Accept(ctx context.Context, ledger Ledger, w Waiter,
	store func(context.Context, ExecutionID) (StoredRequest, error), known Verdict) (verdict Verdict, err error) {
	q := &queuing{Waiter: w, ctx: ctx, ledger: ledger, may: known}
	_, err = q.repeatUntilOver(func() (over bool, err error) {
		verdict, err = q.enqueueParked(store)
		return verdict.Decision != "", err
	})
	return verdict, err
}

// queuing is one call of AwaitLock or Accept.
type queuing struct {
	Waiter
	ctx    context.Context
	ledger Ledger
	may    Verdict // what it may claim over, as far as it knows
}

// repeatUntilOver calls try until that is over, ctx has ended, or BeforeRetry returns an error.
func (q *queuing) repeatUntilOver(try func() (over bool, err error)) (over bool, err error) {
	for q.ctx.Err() == nil {
		over, err := try()
		switch {
		case over:
			return true, err
		case err == nil || errors.Is(err, ErrNotClaimed) || q.ctx.Err() != nil:
			continue
		}
		if err := q.BeforeRetry(err); err != nil {
			return false, err
		}
	}
	return false, nil
}

// waitInQueue makes a queue entry and waits there. Without a result it has to be called again.
func (q *queuing) waitInQueue() (WaitEnd, error) {
	lock := q.Lock(q.may)
	request, cancel := q.RequestContext()
	place, seen, err := q.ledger.Enqueue(request, lock, q.may.Prev, q.may.Behind)
	cancel()
	switch {
	case err != nil:
		return WaitEnd{}, err
	case seen != nil:
		v, err := q.judgeRefusal(seen)
		return WaitEnd{Verdict: v}, err
	}
	held, v, err := q.waitForLock(place, lock)
	switch {
	case held != nil:
		return WaitEnd{Running: held}, err
	case v.Decision == DecisionWaitTimeout:
		return WaitEnd{Verdict: v, Entry: &Waiting{place, lock}}, err
	}
	request, cancel = q.RequestContext()
	defer cancel()
	if gone := place.Leave(request); err == nil {
		err = gone
	}
	return WaitEnd{Verdict: v}, err
}

// enqueueParked makes a queue entry that is parked.
func (q *queuing) enqueueParked(store func(context.Context, ExecutionID) (StoredRequest, error)) (Verdict, error) {
	lock := q.Lock(q.may)
	request, cancel := q.RequestContext()
	defer cancel()
	stored, err := store(request, lock.Execution)
	if err != nil {
		return Verdict{}, err
	}
	lock.Parked.Kept = &stored
	_, seen, err := q.ledger.Enqueue(request, lock, q.may.Prev, q.may.Behind)
	switch {
	case err != nil:
		return Verdict{}, err
	case seen != nil:
		return q.judgeRefusal(seen)
	}
	return Verdict{Decision: DecisionParked, Holder: lock.Execution, Accepted: true}, nil
}

// judgeRefusal decides on a delivery that got no entry: its event was settled, or a duplicate
// waits or runs.
func (q *queuing) judgeRefusal(seen *Obstacle) (Verdict, error) {
	v := q.Judge(seen, false)
	if v.Reap != nil {
		return Verdict{}, q.ledger.Reap(q.ctx, v.Reap)
	}
	q.may = v
	return v, nil
}

// waitForLock waits for the head of the queue, and claims.
func (q *queuing) waitForLock(place QueueEntry, lock Lock) (RunningLock, Verdict, error) {
	for {
		seen, err := place.Await(q.ctx, q.may.Prev)
		switch {
		case errors.Is(err, ErrCancelled) && seen.Record.Superseded() != "":
			return nil, supersededVerdict(seen.Record), nil
		case errors.Is(err, ErrCancelled):
			return nil, Verdict{Decision: DecisionAborted, Holder: seen.Record.Execution, Record: seen.Record,
				WhileWaiting: true}, nil
		case err != nil && !errors.Is(err, ErrQueueEntryLost) && q.ctx.Err() != nil:
			if seen != nil {
				q.Judge(seen, true) // what is in the way now
			}
			return nil, Verdict{Decision: DecisionWaitTimeout}, nil
		case err != nil:
			return nil, Verdict{}, err
		}
		switch v := q.Judge(seen, true); {
		case v.Reap != nil:
			err = q.ledger.Reap(q.ctx, v.Reap)
		case v.Taken(): // the record has changed, and the lock is still taken
			q.may.Prev = seen.RecordRevision
		case v.Decision != "":
			return nil, v, nil
		default:
			q.may = v
			lock.Attempt, lock.Earlier, lock.StartedAt = v.Attempt, v.Earlier, q.Now()
			var held RunningLock
			if held, err = q.claimHead(place, lock); held != nil {
				return held, Verdict{}, nil
			}
		}
		// that keeps its position; if the entry is gone, too, Await says why
		if err != nil && !errors.Is(err, ErrNotClaimed) {
			return nil, Verdict{}, err
		}
	}
}

func (q *queuing) claimHead(place QueueEntry, lock Lock) (RunningLock, error) {
	request, cancel := q.RequestContext()
	defer cancel()
	held, _, err := place.ClaimHead(request, lock, q.may.Prev)
	return held, err
}
