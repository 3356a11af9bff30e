package etcdlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Place is a place in the queue of a workflow: first come, first served, over all processes. It lives as long as the session that
// took it. Await and ClaimHead are for one goroutine; end it with a successful ClaimHead or with Leave.
//
// It implements idem.Place. It is small because thousands may wait: what follows from its names is made when it is needed.
type Place struct {
	store     *core
	session   *session.Session
	execution idem.ExecutionID
	scope     idem.Scope
	route     string
	q         int64      // create revision: the order in the queue
	limits    *limitsOf  // nil = it counts against none
	prev      int64      // the revision of the event's record
	first     *idem.Lock // what it says, where the lock may be handed to it
	behind    int64      // the revision of the lock that it was sent behind
	seen      int64      // of the store, when it read that; 0 = it has not yet
	queue     *queue     // nil = it is not told of anything
	before    string     // the place before its own, as far as this process knows; "" = it has to look
	since     int64      // the revision at which that place was taken: it may have gone before this one was
	won       *owned     // the lock, where it was handed to this place
	parking   bool       // it was to be parked, and how that ended the Store finds out by itself

	series    *idem.Series // under strategy latest: until when it rests; nil = it does not
	replacing *replacing   // while it takes its place under strategy latest
}

// limitsOf is what a place says of the limits that its execution counts against.
type limitsOf struct {
	route string
	slots []idem.Slot
}

func limitsOfLock(l *idem.Lock) *limitsOf {
	if len(l.Slots) == 0 {
		return nil
	}
	return &limitsOf{route: l.Route, slots: l.Slots}
}

// waits is the lock as it waits for slots.
func (p *Place) waits() *idem.Lock {
	l := p.lock()
	l.Route, l.Slots = p.limits.route, p.limits.slots
	return &l
}

// lock is what the place says of its execution.
func (p *Place) lock() idem.Lock {
	return idem.Lock{Entry: idem.Entry{Execution: p.execution, Scope: p.scope, Holder: p.store.holder(p.session)}, Alive: protocol.SessionAlive(p.session.Name)}
}

func (p *Place) keys() protocol.Keys {
	l := p.lock()
	return p.store.layout.Keys(&l)
}

// Enqueue takes a place in the queue of l.Scope, if the event's record is still at revision prev and no copy of it waits or runs. behind
// is the revision of the lock that was seen in the way, 0 = it was free: knowing it saves a request. Exactly one of the three results
// is set, as with Claim.
func (s *Ledger) Enqueue(ctx context.Context, l idem.Lock, prev, behind int64) (idem.Place, *idem.Seen, error) {
	session, value, err := s.prepare(&l)
	if err != nil {
		return nil, nil, err
	}
	type result struct {
		seen *idem.Seen
		err  error
	}
	p := &Place{store: s.core, session: session, execution: l.Execution, scope: l.Scope, route: l.Route, limits: limitsOfLock(&l), replacing: newReplacing(s.core, &l)}
	k := p.keys()
	if !l.MayPark && !l.Scope.PerEvent && p.limits == nil && p.replacing == nil {
		if value, err = protocol.EncodePlace(&l, prev); err != nil {
			return nil, nil, unavailable(err)
		}
		p.prev, p.first = prev, &l
		s.lineUp(p)
	}
	r, err := commit.InTime(ctx, s.tasks.Start, func(life context.Context) result {
		seen, err := p.enqueue(life, prev, behind, func(at protocol.Seen) (*commit.Request, error) {
			if p.queue != nil {
				return p.come(k, at, value), nil
			}
			k, turn := p.turnAtOnce(k, at)
			k, value, err := p.replace(life, k, value)
			if err != nil {
				return nil, err
			}
			return commit.NewRequest(k.L, protocol.Enqueue(k, at, protocol.Leased{Value: value, Lease: session.Lease}, turn), len(value)).AddSlots(k).AddOtherLock(k, &l), nil
		})
		if seen != nil || err != nil {
			p.stepOut()
		}
		return result{seen, err}
	}, func(life context.Context, late result) {
		if late.seen == nil && late.err == nil {
			_ = p.leave(life)
		}
		p.leaveLine()
	})
	if p.limits != nil && (r.seen != nil || r.err != nil) {
		p.leaveLine()
	}
	switch {
	case errors.Is(err, commit.ErrClosed):
		p.stepOut()
		return nil, nil, unavailable(err)
	case err != nil:
		return nil, nil, unavailable(err)
	case r.seen != nil || r.err != nil:
		return nil, r.seen, r.err
	}
	p.replacing = nil
	return p, nil, nil
}

// come is the Enqueue of a place that the lock may be handed to. It is made when it leaves.
func (p *Place) come(k protocol.Keys, at protocol.Seen, value []byte) *commit.Request {
	place := protocol.Leased{Value: value, Lease: p.session.Lease}
	r := commit.NewRequest(k.L, nil, len(value))
	r.Side, r.Slots, r.Contended = commit.Enqueues, []string{k.Q}, p.store.othersWait(p)
	r.Build = func() protocol.Op {
		at.L = p.store.latest(p, at.L, p.seen)
		p.behind = at.L
		return protocol.Enqueue(k, at, place, protocol.Leased{})
	}
	r.OnApplied = func(answer commit.Reply) { p.store.entered(p, answer.Revision) }
	return r
}

func (p *Place) stepOut() {
	if p.queue != nil {
		p.store.stepOut(p)
	}
}

// enqueue takes what make makes to a definite end: an Enqueue, or one of a parked execution.
func (p *Place) enqueue(life context.Context, prev, behind int64, build func(protocol.Seen) (*commit.Request, error)) (*idem.Seen, error) {
	other := int64(0) // the revision of the lock under another strategy, which another event has
	if seen, err := p.lookAround(life, behind); seen != nil || err != nil {
		return seen, err
	}
	for until, refusals := p.store.clock.Now().Add(commit.BatchWindow), 0; ; refusals++ {
		epoch := p.session.Epoch()
		r, err := build(protocol.Seen{Epoch: epoch, L: behind, O: other, Prev: prev})
		if err != nil {
			return nil, unavailable(err)
		}
		r.HoldUntil, r.Refusals = until, refusals
		answer := p.store.sender.Do(life, r)
		p.store.leases.DropIfGone(r.SharedLease, answer.Err)
		if answer.Err == nil && answer.Succeeded {
			if r.OnApplied == nil { // else it knows
				p.q = answer.Revision
			}
			p.replacing.done()
			return nil, nil
		}
		switch {
		case (p.parking || p.replacing.forgot(answer.Err)) && errors.Is(answer.Err, rpctypes.ErrLeaseNotFound): // that of its age, or of a record, which are shared
			continue
		case answer.Err != nil && link.Definite(answer.Err):
			return nil, unavailable(answer.Err)
		}
		if r.Build != nil && answer.Err == nil {
			behind = p.behind
		}
		st, err := p.afterEnqueue(life, answer, epoch)
		switch {
		case err != nil && p.parking && answer.Err != nil:
			return nil, unknown(err)
		case err != nil:
			return nil, unavailable(err)
		case st.Waits(p.execution): // the answer got lost, or an earlier one
			p.store.found(p, st.Place)
			return nil, nil
		case !p.parking && st.Runs(p.execution): // and it was handed the lock since
			if err = p.found(life, st); err == nil && p.won == nil { // and has lost it
				err = idem.ErrNotClaimed
			}
			return nil, err
		case p.parking && (st.Runs(p.execution) || st.Ended(p.execution) != nil): // it was carried on since
			return nil, nil
		case p.parking && answer.Err != nil && link.Fencing(answer.Err) && st.Prev != prev: // and may have ended
			return nil, fmt.Errorf("%w: %w", idem.ErrNotRecorded, answer.Err)
		case answer.Err != nil && link.Fencing(answer.Err):
			return nil, idem.ErrNotClaimed
		case st.Place != 0 || st.Prev != prev || st.CopyInOther(p.scope.Key) || st.LockRevision() != behind && st.CopyRuns(p.scope.Key) != nil:
			return p.inTheWay(life, st)
		case answer.Err != nil: // the store is full: another attempt would get the same answer
			return nil, unavailable(answer.Err)
		case st.LockRevision() != behind: // the lock has changed hands, and no copy has it
			behind, p.seen = st.LockRevision(), st.Revision
			if seen, err := p.lookAround(life, behind); seen != nil || err != nil {
				return seen, err
			}
			continue
		case st.OtherRevision() != other:
			other = st.OtherRevision()
			continue
		}
		if again, seen, err := p.queueMoved(life, behind); seen != nil || err != nil {
			return seen, err
		} else if again {
			continue
		}
		if err := p.session.Moved(life, p.store.pool, epoch); err != nil {
			return nil, unavailable(err)
		}
	}
}

// inTheWay is why the execution may not wait.
func (p *Place) inTheWay(life context.Context, st *protocol.State) (_ *idem.Seen, err error) {
	if st.Unread != nil {
		return nil, unavailable(st.Unread)
	}
	seen := st.Seen(p.scope.Key)
	if l := seen.Lock; l != nil && l.Scope.Key == p.scope.Key {
		if l.Dead, err = p.store.isDead(life, l); err != nil {
			return nil, unavailable(err)
		}
	}
	return seen, nil
}

// afterEnqueue is how things stand after a refusal, or for certain after an answer got lost.
func (p *Place) afterEnqueue(life context.Context, answer commit.Reply, epoch int64) (*protocol.State, error) {
	if answer.Err == nil {
		return stateIn(answer)
	}
	if link.Fencing(answer.Err) {
		if err := p.session.Fence(life, p.store.pool, epoch); err != nil {
			return nil, err
		}
	}
	return p.store.look(life, p.keys())
}

// Await waits until it is this place's turn: nobody is before it, nothing of it is paused and the lock is free, or dead and to be buried first; or until the
// event's record is not at revision prev any more. It returns what it found. idem.ErrPlaceLost: the place has gone with its session.
// idem.ErrCancelled: somebody cancelled this execution, and the record found is its own. Other errors are the context's; the place
// is then still taken.
func (p *Place) Await(ctx context.Context, prev int64) (*idem.Seen, error) {
	if p.before != "" {
		p.store.hub.wait(ctx, p.session.Over, p.since, p.store.layout.Queued(p.scope), p.before)
	}
	var behind *idem.Seen
	for {
		if p.won == nil {
			p.won = p.store.handed(p)
		}
		if p.won != nil {
			return &idem.Seen{}, nil
		}
		if answered := p.store.unanswered(p); answered != nil {
			select {
			case <-answered:
				continue
			case <-p.session.Over:
			case <-ctx.Done():
			}
		}
		if p.waitsAsKnown(ctx) {
			continue
		}
		at, err := p.look(ctx)
		if p.won = p.store.handed(p); p.won != nil {
			continue
		}
		switch {
		case p.session.Err() != nil:
			return nil, fmt.Errorf("%w: %w", idem.ErrPlaceLost, p.session.Err())
		case err != nil:
			return cmp.Or(p.atLimit(), behind), err
		case at.Place != p.q && at.Runs(p.execution):
			if err := p.found(ctx, at.State); err != nil {
				return nil, err
			}
			continue
		case at.Place != p.q && at.Ended(p.execution) != nil && at.Record.Outcome != idem.NotExecuted:
			return nil, idem.ErrLockLost // it was handed the lock, and somebody has ended it since
		case at.Place != p.q && at.Ended(p.execution) == nil && !at.vouched:
			return nil, idem.ErrPlaceLost // etcd knows it before this session does
		case at.Place != p.q:
			return p.cancelled(at.State), idem.ErrCancelled
		case at.Unread != nil:
			return nil, unavailable(at.Unread)
		case at.Prev != prev:
			return at.Seen(p.scope.Key), nil
		case at.before != "":
			p.leaveLine()
			p.store.hub.wait(ctx, p.session.Over, at.Revision, p.store.layout.Queued(p.scope), at.before)
			continue
		case at.Lock == nil && p.store.pauses.of(p.route, p.scope.Workflow) != nil:
			p.leaveLine()
			p.store.pauses.wait(ctx, p.route, p.scope.Workflow, func(ctx context.Context) {
				p.store.hub.wait(ctx, p.session.Over, at.Revision, p.store.layout.Queued(p.scope))
			})
			continue
		case at.Lock == nil && p.rests(ctx, at):
			continue
		case at.Lock == nil && p.limits == nil:
			return at.Seen(p.scope.Key), nil
		case at.Lock == nil:
			if !p.awaitSlot(ctx, at) {
				continue
			}
			return at.Seen(p.scope.Key), nil
		}
		if at.Lock.Dead, err = p.store.isDead(ctx, at.Lock); err != nil {
			return nil, err
		}
		if at.Lock.Dead {
			return at.Seen(p.scope.Key), nil
		}
		behind = p.awaitSeen(ctx, at.State)
	}
}

// awaitSeen waits for the end of the lock that was found, and returns what is known of it.
func (p *Place) awaitSeen(ctx context.Context, st *protocol.State) *idem.Seen {
	p.leaveLine()
	if p.queue != nil {
		p.store.sees(p, st)
	}
	p.awaitLock(ctx, st)
	return st.Seen(p.scope.Key)
}

// waitsAsKnown waits for the lock that p is next behind, or for the place before its own, where this process knows which that is; false: p has to look.
func (p *Place) waitsAsKnown(ctx context.Context) bool {
	if l := p.store.behindOurs(p); l != nil {
		// Its own place was there when the queue was read, which may be before l was taken: who was cancelled between would not hear of it.
		p.awaitLock(ctx, &protocol.State{Lock: l, Revision: min(l.Revision, p.q)})
		return true
	}
	before, since := p.store.ahead(p)
	if before != "" {
		p.store.hub.wait(ctx, p.session.Over, since, p.store.layout.Queued(p.scope), before)
	}
	return before != ""
}

// found takes the lock that the place was found to have become, with the mark of its scope. The error is the context's.
func (p *Place) found(ctx context.Context, st *protocol.State) (err error) {
	if k := p.store.layout.Keys(st.Lock); k.M != "" {
		if st, err = p.store.look(ctx, k); err != nil {
			return unavailable(err)
		}
		if !st.Runs(p.execution) {
			return nil // another look finds out
		}
	}
	p.won = p.store.take(p, st)
	return nil
}

// cancelled is how this execution ended: a place that goes while its session lives was cancelled, also where its record was forgotten or
// written over since.
func (p *Place) cancelled(st *protocol.State) *idem.Seen {
	r := st.Ended(p.execution)
	if r == nil {
		l := p.lock()
		r = protocol.RecordOf(&l, idem.End{Status: idem.Aborted, Outcome: idem.NotExecuted})
	}
	return &idem.Seen{Record: r, RecordRevision: r.Revision}
}

// awaitLock waits for the end of the lock, or of who holds it. A lock of our own goes with it from session to session.
func (p *Place) awaitLock(ctx context.Context, st *protocol.State) {
	y := p.store.layout
	keys := []string{y.Queued(p.scope), y.Lock(st.Lock.Scope)}
	if st.Lock.IsParked() { // whoever runs it, it ends with its lock
		p.store.hub.wait(ctx, p.session.Over, st.Revision, keys...)
		return
	}
	keys = append(keys, y.Alive(protocol.HoldAlive(st.Lock.Execution)))
	if !protocol.IsHold(st.Lock.Alive) && !p.store.holds(st.Lock.Execution) {
		keys = append(keys, y.Alive(st.Lock.Alive))
	}
	p.store.hub.wait(ctx, p.session.Over, st.Revision, keys...)
}

// ClaimHead takes the lock for l, which has the execution ID of the place, if nobody is before it and the event's record is at
// revision prev. Its results are those of Claim. Without a lock the place is still taken: wait again, or leave.
func (p *Place) ClaimHead(ctx context.Context, l idem.Lock, prev int64) (idem.Held, *idem.Seen, error) {
	if err := p.session.Err(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", idem.ErrPlaceLost, err)
	}
	if p.won != nil {
		return p.won, nil, nil
	}
	mine := p.lock()
	l.Execution, l.Scope, l.Alive = mine.Execution, mine.Scope, mine.Alive
	if l.Holder == "" { // a client of the lock API has named itself
		l.Holder = mine.Holder
	}
	value, err := protocol.EncodeLock(&l)
	if err != nil {
		return nil, nil, unavailable(err)
	}
	k := p.store.layout.Keys(&l)
	c := &claimer{store: p.store, session: p.session, lock: l, keys: k, value: value, prev: prev, q: p.q}
	c.txn = func(at protocol.Seen) protocol.Op {
		return protocol.ClaimAsHead(c.keys, at, protocol.Leased{Value: c.value})
	}
	if p.limits == nil {
		held, seen, err := c.run(ctx)
		if held != nil {
			p.stepOut()
		} else {
			p.store.unlearn(k.L) // should somebody be before it after all, it has to read that
		}
		return held, seen, err
	}
	turn := p.store.slots.turnOf(p.execution)
	if turn != "" {
		c.keys.T = p.store.layout.Turn(turn, p.execution)
	}
	held, seen, err := c.run(ctx)
	if held != nil {
		p.store.slots.leave(p.execution)
	}
	return held, seen, err
}

// Leave gives the place up; should a claim of it still arrive, the Store gives that back, too. It goes on by itself when ctx ends first.
func (p *Place) Leave(ctx context.Context) error {
	if p.parking {
		p.leaveLine()
		return nil
	}
	left, err := commit.InTime(ctx, p.store.tasks.Start, func(life context.Context) error {
		defer p.leaveLine()
		return p.leave(life)
	}, nil)
	if err != nil {
		return unavailable(err)
	}
	return left
}

// leave repeats until the answer is definite. A refusal means that the place has become a lock, or nothing.
func (p *Place) leave(life context.Context) error {
	k := p.keys()
	p.stepOut()
	if p.won == nil {
		p.won = p.store.handed(p)
	}
	if p.won != nil {
		return p.won.giveBack(life)
	}
	if p.limits != nil {
		if turn := p.store.slots.turnOf(p.execution); turn != "" {
			k.U = p.store.layout.Turn(turn, p.execution)
		}
	}
	for pause := link.NewBackoff(); ; {
		answer := p.store.sender.Do(life, commit.NewRequest(k.L, protocol.Leave(k, protocol.Seen{Q: p.q}), 0).AddSlots(k))
		err := answer.Err
		if err == nil && answer.Succeeded {
			return nil
		}
		if err == nil {
			var st *protocol.State
			if st, err = stateIn(answer); err == nil {
				return p.giveBack(life, st)
			}
		}
		if pause.Wait(life) != nil {
			return unavailable(fmt.Errorf("leave the queue: %w", err))
		}
	}
}

// giveBack releases the lock that the place has become by a claim whose answer nobody waited for.
func (p *Place) giveBack(life context.Context, st *protocol.State) error {
	if !st.Runs(p.execution) || st.Lock.Parked != nil {
		return nil
	}
	return p.store.take(p, st).giveBack(life)
}

// giveBack releases a lock that nobody waited for. Where somebody has ended the execution, or asked for that, it has no lock either.
func (h *owned) giveBack(life context.Context) error {
	h.startEnding()
	err := h.release(life)
	if errors.Is(err, idem.ErrCancelled) || errors.Is(err, idem.ErrLockLost) {
		return nil
	}
	return err
}
