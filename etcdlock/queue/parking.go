package queue

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/park"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/view"
	"hooklock/idem"
)

// How a delivery becomes a parked execution. The transaction that parks it also writes its request
// (protocol.Parking): so that is there exactly as long as the execution has not ended. Any process
// may run a parked entry, so one that may have been parked is never withdrawn: its sender is told
// that the outcome is unknown.

// enqueueParked is Enqueue of an execution that is parked at once.
func (s *Entries) enqueueParked(ctx context.Context, l *idem.Lock, prev, behind int64) (idem.QueueEntry,
	*idem.Obstacle, error) {
	kept := l.Parked.Kept
	l.Parked = park.As(*l.Parked)
	session, _, err := s.options.Claims.Prepare(l)
	if err != nil {
		return nil, nil, err
	}
	l.Alive = "" // no process has it
	value, err := protocol.EncodeLock(l)
	if err != nil {
		return nil, nil, commit.Unavailable(err)
	}
	type result struct {
		seen *idem.Obstacle
		err  error
	}
	p := &Entry{options: s.options, entry: view.Waiter{Execution: l.Execution, Scope: l.Scope, Session: session},
		parking: true}
	e := &enqueuing{
		entry: p, lock: l, keys: p.etcdKeys(), value: value, kept: kept, count: park.CountOf(l.Route),
		at: protocol.Revisions{Lock: behind, Record: prev}, replacing: newReplacing(s.options, l),
	}
	r, err := commit.InTime(ctx, s.options.Tasks.Start, func(life context.Context) result {
		seen, err := e.run(life)
		return result{seen, err}
	}, nil)
	switch {
	case errors.Is(err, commit.ErrClosed):
		return nil, nil, commit.Unavailable(err)
	case err != nil:
		return nil, nil, commit.Unknown(s.options.Pool.Because(err))
	case r.seen != nil || r.err != nil:
		return nil, r.seen, r.err
	}
	return p, nil, nil
}

// enqueueParked makes the Enqueue of an execution that is parked at once.
func (e *enqueuing) enqueueParked(life context.Context) (*commit.Request, error) {
	keep, err := park.Prepare(life, e.entry.options.Leases, e.lock, e.kept)
	if err != nil {
		return nil, err
	}
	k, value, err := e.addReplacement(life, e.keys, e.value)
	if err != nil {
		return nil, err
	}
	txn := protocol.EnqueueParked(k, e.at, protocol.Leased{Value: value}, keep)
	r := commit.NewRequest(k.Lock, txn, len(value)+len(e.kept.Value)).AddOtherLock(k, e.lock)
	r.SharedLease = keep.Age.Lease
	r.Counts, r.CountsApart = []*commit.Count{e.count}, true
	return r, nil
}

// Park implements idem.QueueEntry.
func (p *Entry) Park(ctx context.Context, as idem.Parked) error {
	p.parking = true
	parked, err := commit.InTime(ctx, p.options.Tasks.Start,
		(&parkingEntry{entry: p, as: park.As(as), kept: as.Kept, count: park.CountOf(p.route),
			abandoned: ctx.Done()}).run,
		func(life context.Context, late error) {
			// it is not parked, and no delivery waits with it: it would block its queue
			if late != nil && !errors.Is(late, idem.ErrNotRecorded) {
				_ = p.leaveQueue(life)
			}
		})
	switch {
	case errors.Is(err, commit.ErrClosed):
		err = commit.Unavailable(err)
	case err != nil:
		err = commit.Unknown(p.options.Pool.Because(err))
	default:
		err = parked
	}
	if p.parking = err == nil || errors.Is(err, idem.ErrNotRecorded); p.parking {
		p.turn.giveUpTurn()
	}
	return err
}

// parkingEntry is a place on its way to being a parked execution.
type parkingEntry struct {
	entry *Entry
	as    *idem.Parked
	kept  *idem.StoredRequest
	// closed when no caller waits for the result any more: what etcd has refused until then is not
	// tried again
	abandoned <-chan struct{}
	count     *commit.Count
	tried     bool // an attempt without a definite answer may have parked it
}

// run sends until the answer is definite, which is safe: the place is the same, and so is what is
// written.
func (e *parkingEntry) run(life context.Context) error {
	p, k := e.entry, e.entry.etcdKeys()
	full := false
	for pause := link.NewBackoff(); ; {
		st, err := history.Look(life, p.options.Pool, k)
		if err == nil {
			switch {
			case !st.Waits(p.entry.Execution), st.Place != p.entry.Revision, st.Copied.Parked != nil:
				return e.parkedAlready(st)
			case full && !e.tried:
				return commit.Unavailable(rpctypes.ErrNoSpace)
			}
			l := *st.Copied
			l.Parked, l.Alive = e.as, ""
			answer := park.Send(life, p.options.Sender, p.options.Leases, &l, k, e.kept, []*commit.Count{e.count},
				func(lock protocol.Leased, keep protocol.Parking) protocol.Op {
					return protocol.ParkWaiting(k, protocol.Revisions{Entry: p.entry.Revision}, lock, keep)
				})
			if err = answer.Err; err == nil && answer.Succeeded {
				return nil
			}
			if full = errors.Is(err, rpctypes.ErrNoSpace); full || err == nil {
				continue
			}
			e.tried = e.tried || !link.Definite(err)
		}
		switch {
		case !e.tried && (park.TooLarge(err) || link.Refuses(err) || isClosed(e.abandoned)):
			return commit.Unavailable(err)
		case pause.Wait(life) != nil:
			return commit.Unknown(err)
		}
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// parkedAlready is why the place is not one of a waiter any more. One that may have been parked has
// had the rest happen after that.
func (e *parkingEntry) parkedAlready(st *protocol.State) error {
	id := e.entry.entry.Execution
	ended := st.Ended(id)
	switch {
	case st.Waits(id) && st.Copied.Parked != nil, st.Runs(id) && st.Lock.Parked != nil:
		return nil
	case ended != nil && ended.Status == idem.Aborted:
		return idem.ErrCancelled
	case ended != nil && e.tried:
		return nil
	case e.tried:
		return fmt.Errorf("%w: its place is gone", idem.ErrNotRecorded)
	}
	return idem.ErrQueueEntryLost
}
