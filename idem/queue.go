package idem

import (
	"context"
	"errors"
	"time"
)

// Waiter is who waits for a lock in its workflow's queue, as AwaitLock asks it.
type Waiter interface {
	// Lock is what takes a place, and later the lock: under an execution ID that was not used before. Where it is Parked, that is all: it waits
	// without w from then on.
	Lock(v Verdict) Lock
	// Keep is the request of what is parked.
	Keep(ctx context.Context, id ExecutionID) (Kept, error)
	// Stays is asked when the time to wait is over: true where it has parked the place, so that it waits on without w.
	Stays(place Place, lock Lock) bool
	// Judge decides on what was seen: at its turn, or, where placed is false, when there was no place for it. Without a Decision it
	// buries what is to be buried, claims at its turn, or takes another place behind Verdict.Behind. One that is locked or in flight at
	// its turn waits on.
	Judge(seen *Seen, placed bool) Verdict
	// Again is asked after an error, ErrPlaceLost among them: nil takes another place. It may wait before it says so.
	Again(err error) error
	// Request is the life of one request, for those that may go on when the time to wait is over.
	Request() (context.Context, context.CancelFunc)
	// Now is the time at which an execution begins.
	Now() time.Time
}

// AwaitLock waits in the queue until w has the lock, or until it may not have it, as the Decision of the verdict says: w's own, aborted where
// somebody cancelled it in the queue, and wait_timeout, or parked, when ctx has ended. Whoever has no lock has no place any more; an error beside a
// Decision says that it still has, which the ledger goes on to end. Other errors are those that Again returned. v is what w may claim over,
// as far as it knows.
func AwaitLock(ctx context.Context, ledger Ledger, w Waiter, v Verdict) (Held, Verdict, error) {
	q := &queuing{Waiter: w, ctx: ctx, ledger: ledger, may: v}
	for ctx.Err() == nil {
		held, v, err := q.take()
		switch {
		case held != nil || v.Decision != "":
			return held, v, err
		case err == nil || errors.Is(err, ErrNotClaimed) || ctx.Err() != nil:
			continue
		}
		if err := w.Again(err); err != nil {
			return nil, Verdict{}, err
		}
	}
	return nil, Verdict{Decision: DecisionWaitTimeout}, nil
}

// queuing is one that waits.
type queuing struct {
	Waiter
	ctx    context.Context
	ledger Ledger
	may    Verdict // what it may claim over, as far as it knows
}

// take takes a place and waits there. Without a result it has to begin again.
func (q *queuing) take() (held Held, v Verdict, err error) {
	lock := q.Lock(q.may)
	place, seen, err := q.enqueue(lock)
	switch {
	case err != nil:
		return nil, v, err
	case seen != nil:
		v, err = q.refused(seen)
		return nil, v, err
	}
	if lock.Parked != nil {
		return nil, accepted(lock.Execution), nil
	}
	held, v, err = q.wait(place, lock)
	if held == nil && !v.Accepted {
		request, cancel := q.Request()
		defer cancel()
		if left := place.Leave(request); err == nil {
			err = left
		}
	}
	return held, v, err
}

func (q *queuing) enqueue(lock Lock) (Place, *Seen, error) {
	request, cancel := q.Request()
	defer cancel()
	if lock.Parked == nil {
		return q.ledger.Enqueue(request, lock, q.may.Prev, q.may.Behind)
	}
	kept, err := q.Keep(request, lock.Execution)
	if err != nil {
		return nil, nil, err
	}
	lock.Parked.Bytes = kept.Bytes
	seen, err := q.ledger.EnqueueParked(request, lock, q.may.Prev, q.may.Behind, kept)
	return nil, seen, err
}

// accepted is what a delivery gets that was parked.
func accepted(id ExecutionID) Verdict {
	return Verdict{Decision: DecisionParked, Holder: id, Accepted: true}
}

// refused is for who got no place: its event was settled, or a copy of it waits or runs.
func (q *queuing) refused(seen *Seen) (Verdict, error) {
	v := q.Judge(seen, false)
	if v.Bury != nil {
		return Verdict{}, q.ledger.Bury(q.ctx, v.Bury)
	}
	q.may = v
	return v, nil
}

// wait waits for the turn of a place, and claims.
func (q *queuing) wait(place Place, lock Lock) (Held, Verdict, error) {
	for {
		seen, err := place.Await(q.ctx, q.may.Prev)
		switch {
		case errors.Is(err, ErrCancelled) && seen.Record.Superseded() != "":
			return nil, superseded(seen.Record), nil
		case errors.Is(err, ErrCancelled):
			return nil, Verdict{Decision: DecisionAborted, Holder: seen.Record.Execution, Record: seen.Record, WhileWaiting: true}, nil
		case err != nil && !errors.Is(err, ErrPlaceLost) && q.ctx.Err() != nil && q.Stays(place, lock):
			return nil, accepted(lock.Execution), nil
		case err != nil && !errors.Is(err, ErrPlaceLost) && q.ctx.Err() != nil:
			if seen != nil {
				q.Judge(seen, true) // what is in the way now
			}
			return nil, Verdict{Decision: DecisionWaitTimeout}, nil
		case err != nil:
			return nil, Verdict{}, err
		}
		switch v := q.Judge(seen, true); {
		case v.Bury != nil:
			err = q.ledger.Bury(q.ctx, v.Bury)
		case v.taken(): // the record has changed, and the lock is still taken
			q.may.Prev = seen.RecordRevision
		case v.Decision != "":
			return nil, v, nil
		default:
			q.may = v
			lock.Attempt, lock.Earlier, lock.StartedAt = v.Attempt, v.Earlier, q.Now()
			var held Held
			if held, err = q.claim(place, lock); held != nil {
				return held, Verdict{}, nil
			}
		}
		if err != nil && !errors.Is(err, ErrNotClaimed) { // that keeps its turn; where the place is gone, too, Await says why
			return nil, Verdict{}, err
		}
	}
}

func (q *queuing) claim(place Place, lock Lock) (Held, error) {
	request, cancel := q.Request()
	defer cancel()
	held, _, err := place.ClaimHead(request, lock, q.may.Prev)
	return held, err
}
