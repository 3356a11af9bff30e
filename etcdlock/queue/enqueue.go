package queue

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"hooklock/etcdlock/claim"
	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/view"
	"hooklock/idem"
)

// Enqueue takes a place in the queue of l.Scope, if the event's record is still at revision prev
// and no copy of it waits or runs. behind is the revision of the lock that was seen in the way, 0 =
// it was free: knowing it saves a request. Exactly one of the three results is set, as with Claim.
func (s *Entries) Enqueue(ctx context.Context, l idem.Lock, prev, behind int64) (idem.QueueEntry, *idem.Obstacle,
	error) {
	if l.Parked != nil {
		return s.enqueueParked(ctx, &l, prev, behind)
	}
	session, value, err := s.options.Claims.Prepare(&l)
	if err != nil {
		return nil, nil, err
	}
	p := &Entry{options: s.options, entry: view.Waiter{Execution: l.Execution, Scope: l.Scope, Session: session},
		route: l.Route}
	p.turn = newSlotTurn(p, &l)
	e := &enqueuing{entry: p, lock: &l, keys: p.etcdKeys(), value: value,
		at:        protocol.Revisions{Lock: behind, Record: prev},
		replacing: newReplacing(s.options, &l)}
	if e.handed = e.mayBeHandedTheLock(); e.handed {
		if e.value, err = protocol.EncodePlace(&l, prev); err != nil {
			return nil, nil, commit.Unavailable(err)
		}
		p.entry.Prev, p.entry.Lock = prev, &l
		s.options.View.Queues.Register(&p.entry)
	}
	obstacle, err := e.runInTime(ctx)
	if obstacle != nil || err != nil {
		return nil, obstacle, err
	}
	return p, nil, nil
}

// runInTime runs e until ctx ends. Then a task goes on with it, and leaves a place that it still
// gets.
func (e *enqueuing) runInTime(ctx context.Context) (*idem.Obstacle, error) {
	type result struct {
		obstacle *idem.Obstacle
		err      error
	}
	p := e.entry
	r, err := commit.InTime(ctx, p.options.Tasks.Start, func(life context.Context) result {
		obstacle, err := e.run(life)
		if obstacle != nil || err != nil {
			p.options.View.Queues.Unregister(&p.entry)
			p.turn.giveUpTurn()
		}
		return result{obstacle, err}
	}, func(life context.Context, late result) {
		if late.obstacle == nil && late.err == nil {
			_ = p.leaveQueue(life)
			p.turn.giveUpTurn()
		}
	})
	if errors.Is(err, commit.ErrClosed) { // it has not begun
		p.options.View.Queues.Unregister(&p.entry)
	}
	if err != nil {
		return nil, commit.Unavailable(p.options.Pool.Because(err))
	}
	return r.obstacle, r.err
}

// enqueuing is an Enqueue, or one of a parked execution, on its way to a definite end.
type enqueuing struct {
	entry  *Entry
	lock   *idem.Lock
	keys   protocol.Keys
	value  []byte              // of the entry
	handed bool                // it may be handed the lock
	count  *commit.Count       // of one that is parked at once
	kept   *idem.StoredRequest // the request of one that is parked at once; nil = it is not
	// what it compares; O is the revision of the lock under another strategy, which another event
	// has
	at        protocol.Revisions
	replacing *replacing // under strategy latest; nil = it has another one
	behind    int64      // the revision of the lock that it was sent behind
	seen      int64      // of the store, when it read that; 0 = it has not yet
}

// buildRequest makes the request that compares e.at.
func (e *enqueuing) buildRequest(life context.Context) (*commit.Request, error) {
	switch {
	case e.kept != nil:
		return e.enqueueParked(life)
	case e.handed:
		return e.handoverRequest(), nil
	}
	return e.enqueueRequest(life)
}

// mayBeHandedTheLock reports whether the holder that settles may make the execution the owner of
// the lock without asking it.
func (e *enqueuing) mayBeHandedTheLock() bool {
	return !e.lock.MayPark && !e.lock.Scope.PerEvent && e.entry.turn == nil && e.replacing == nil
}

// enqueueRequest is the Enqueue of a place that takes the lock by itself. It may take a slot
// waiter's turn with it, or replace an older entry.
func (e *enqueuing) enqueueRequest(life context.Context) (*commit.Request, error) {
	k, turn := e.entry.turn.atOnce(e.keys, e.at)
	k, value, err := e.addReplacement(life, k, e.value)
	if err != nil {
		return nil, err
	}
	return commit.NewRequest(k.Lock,
		protocol.Enqueue(k, e.at, protocol.Leased{Value: value, Lease: e.entry.entry.Session.Lease}, turn),
		len(value)).AddSlots(k).AddOtherLock(k, e.lock), nil
}

// handoverRequest is the Enqueue of a place that the lock may be handed to. It is made when it
// leaves.
func (e *enqueuing) handoverRequest() *commit.Request {
	p, k, at := e.entry, e.keys, e.at
	place := protocol.Leased{Value: e.value, Lease: p.entry.Session.Lease}
	r := commit.NewRequest(k.Lock, nil, len(e.value))
	r.Side, r.Slots, r.Contended = commit.Enqueues, []string{k.Entry}, p.options.View.Queues.OthersWait(&p.entry)
	r.Build = func() protocol.Op {
		at.Lock = p.options.View.Queues.Latest(&p.entry, at.Lock, e.seen)
		e.behind = at.Lock
		return protocol.Enqueue(k, at, place, protocol.Leased{})
	}
	r.OnApplied = func(answer commit.Reply) { p.options.View.Queues.NoteEntry(&p.entry, answer.Revision) }
	return r
}

// run sends until the answer is definite. What it returns is why the execution may not wait.
func (e *enqueuing) run(life context.Context) (*idem.Obstacle, error) {
	if seen, err := e.lookAround(life, e.at.Lock); seen != nil || err != nil {
		return seen, err
	}
	for until, refusals := e.entry.options.Clock.Now().Add(commit.BatchWindow), 0; ; refusals++ {
		e.at.Epoch = e.entry.entry.Session.Epoch()
		r, err := e.buildRequest(life)
		if err != nil {
			return nil, commit.Unavailable(err)
		}
		r.HoldUntil, r.Refusals = until, refusals
		answer := e.entry.options.Sender.Do(life, r)
		e.entry.options.Leases.DropIfGone(r.SharedLease, answer.Err)
		switch {
		case answer.Applied():
			if r.OnApplied == nil { // else it knows
				e.entry.entry.Revision = answer.Revision
			}
			e.replacing.reportEnd()
			return nil, nil
		case e.dropMissingLease(answer.Err):
			continue
		case answer.Err != nil && link.Definite(answer.Err):
			return nil, commit.Unavailable(answer.Err)
		}
		if r.Build != nil && answer.Err == nil {
			e.at.Lock = e.behind
		}
		if seen, err := e.resolveUnapplied(life, answer); !errors.Is(err, errAgain) {
			return seen, err
		}
	}
}

// errAgain lets a transaction be sent again.
var errAgain = errors.New("send it again")

// dropMissingLease reports whether a lease was missing that is not the session's: that of its age,
// or of a record, which are shared.
func (e *enqueuing) dropMissingLease(err error) bool {
	return (e.entry.parking || e.replacing.dropMissingLease(err)) && errors.Is(err, rpctypes.ErrLeaseNotFound)
}

// resolveUnapplied is what follows a refusal, or an answer that got lost: errAgain, or a result.
func (e *enqueuing) resolveUnapplied(life context.Context, answer commit.Reply) (*idem.Obstacle, error) {
	st, err := e.stateAfter(life, answer)
	switch {
	case err != nil && e.entry.parking && answer.Err != nil:
		return nil, commit.Unknown(err)
	case err != nil:
		return nil, commit.Unavailable(err)
	}
	switch protocol.AfterEnqueue(st, &protocol.Unapplied{Lock: e.lock, At: e.at, Answer: claim.AnswerOf(answer.Err)}) {
	case protocol.Enter:
		e.entry.options.View.Queues.NoteFoundEntry(&e.entry.entry, st.Place)
		return nil, nil
	case protocol.FindLock: // it was handed the lock since
		if err = e.entry.takeFoundLock(life, st); err == nil && e.entry.won == nil { // and has lost it
			err = idem.ErrNotClaimed
		}
		return nil, err
	case protocol.Unsure:
		return nil, fmt.Errorf("%w: %w", idem.ErrNotRecorded, answer.Err)
	case protocol.Never:
		return nil, idem.ErrNotClaimed
	case protocol.Decide:
		return e.inTheWay(life, st)
	case protocol.NoSpace:
		return nil, commit.Unavailable(answer.Err)
	case protocol.BehindLock:
		e.at.Lock, e.seen = st.LockRevision(), st.Revision
		return e.orAgain(e.lookAround(life, e.at.Lock))
	case protocol.BesideOther:
		e.at.OtherLock = st.OtherRevision()
		return nil, errAgain
	}
	return e.explainRefusal(life)
}

// explainRefusal follows a refusal that lock, record and entry do not explain: the queue was
// compared, too, or the epoch has moved.
func (e *enqueuing) explainRefusal(life context.Context) (*idem.Obstacle, error) {
	moved, seen, err := e.queueMoved(life, e.at.Lock)
	if seen == nil && err == nil && !moved {
		if err = e.entry.entry.Session.LearnEpoch(life, e.entry.options.Pool, e.at.Epoch); err != nil {
			err = commit.Unavailable(err)
		}
	}
	return e.orAgain(seen, err)
}

// orAgain is errAgain, unless something is in the way.
func (e *enqueuing) orAgain(seen *idem.Obstacle, err error) (*idem.Obstacle, error) {
	if seen == nil && err == nil {
		err = errAgain
	}
	return seen, err
}

// inTheWay is why the execution may not wait.
func (e *enqueuing) inTheWay(life context.Context, st *protocol.State) (_ *idem.Obstacle, err error) {
	if st.Unread != nil {
		return nil, commit.Unavailable(st.Unread)
	}
	seen := st.Obstacle(e.entry.entry.Scope.Key)
	if l := seen.Lock; l != nil && l.Scope.Key == e.entry.entry.Scope.Key {
		if l.Dead, err = e.entry.options.Reaper.IsDead(life, l); err != nil {
			return nil, commit.Unavailable(err)
		}
	}
	return seen, nil
}

// stateAfter is how things stand after a refusal, or for certain after an answer got lost.
func (e *enqueuing) stateAfter(life context.Context, answer commit.Reply) (*protocol.State, error) {
	if answer.Err == nil {
		return protocol.ReadState(answer.Responses, answer.Revision)
	}
	return e.entry.options.Claims.LookAfter(life, answer.Err, e.entry.entry.Session, e.at.Epoch, e.entry.etcdKeys())
}
