package queue

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/view"
	"hooklock/idem"
)

// Entry is a place in the queue of a workflow: first come, first served, over all processes. It
// lives as long as the session that took it. Await and ClaimHead are for one goroutine; end it with
// a successful ClaimHead or with Leave.
//
// It implements idem.QueueEntry. It is small because thousands may wait: what follows from its
// names is made when it is needed.
type Entry struct {
	options *Options
	entry   view.Waiter // registered if the lock may be handed to it
	route   string
	turn    *slotTurn   // nil = it counts against no limit
	won     *owned.Lock // the lock, where it was handed to this place
	parking bool        // it was to be parked, and how that ended the Store finds out by itself

	series *idem.Series // under strategy latest: until when it rests; nil = it does not
}

// asLock is what the place says of its execution.
func (p *Entry) asLock() idem.Lock {
	return idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: p.entry.Execution, Scope: p.entry.Scope,
		Holder: p.entry.Session.Holder()}, Alive: protocol.SessionAlive(p.entry.Session.Name)}
}

func (p *Entry) etcdKeys() protocol.Keys {
	l := p.asLock()
	return p.options.Layout.Keys(&l)
}

// Await waits until it is this place's turn: it is the first, nothing of it is paused and the lock
// is free, or its owner is dead and to be reaped first; or until the event's record is not at
// revision prev any more. It returns what it found. idem.ErrQueueEntryLost: the place has gone with
// its session. idem.ErrCancelled: an operator cancelled this execution, and the record found is its
// own. Other errors are the context's; the place is then still taken. What it waits for,
// protocol.WhileQueued says.
func (p *Entry) Await(ctx context.Context, prev int64) (*idem.Obstacle, error) {
	if before, since := p.entry.Predecessor(); before != "" {
		p.awaitGone(ctx, nil, since, before)
	}
	var behind *idem.Obstacle // the lock that was read last
	for {
		at := p.knownPosition(ctx)
		step := protocol.WhileQueued(&at.Known)
		if step == protocol.Look {
			at = p.lookAt(ctx, prev)
			step = protocol.WhileQueued(&at.Known)
			behind = cmp.Or(p.noteLockSeen(step, at.state), behind)
		}
		switch step {
		case protocol.AwaitAnswer, protocol.AwaitEntry, protocol.AwaitLock, protocol.AwaitPause, protocol.AwaitRest:
			p.turn.giveUpTurn() // what waits for something else has no turn at a limit
			p.awaitStep(ctx, step, at)
		case protocol.AwaitSlot:
			if p.turn.awaitTurn(ctx, at.state.Revision) {
				return at.state.Obstacle(p.entry.Scope.Key), nil
			}
		case protocol.FindLock:
			if err := p.takeFoundLock(ctx, at.state.State); err != nil {
				return nil, err
			}
		case protocol.GiveUp:
			return cmp.Or(p.turn.fullObstacle(), behind), at.err
		default:
			return p.waitOutcome(step, at)
		}
	}
}

// position is what is known of a place and of what is before it, with what it takes to wait for
// that.
type position struct {
	protocol.Known
	// as read; or only the lock or the entry before its own, and a revision at which that was
	// there. nil: nothing is known
	state *queueState
	// closed when the answer of the hand-off is there, or the pauses have changed; nil = neither is
	// awaited
	news <-chan struct{}
	err  error // why the place may wait no longer; nil = it may
}

func (p *Entry) newPosition(err error) *position {
	if p.won == nil {
		p.won = p.options.Own.Handed(&p.entry)
	}
	return &position{Known: protocol.Known{Granted: p.won != nil, SessionOver: p.entry.Session.Err() != nil,
		TimeUp: err != nil}, err: err}
}

// knownPosition is what this process knows without asking etcd.
func (p *Entry) knownPosition(ctx context.Context) *position {
	var timeUp error
	if ctx.Err() != nil {
		timeUp = waitError(ctx)
	}
	at := p.newPosition(timeUp)
	ahead := p.options.View.Queues.Ahead(&p.entry)
	at.news, at.Offered, at.Locked, at.Preceded = ahead.Answer, ahead.Answer != nil, ahead.Lock != nil,
		ahead.Entry != ""
	if at.Reported = at.Locked || at.Preceded; at.Reported {
		at.state = &queueState{State: &protocol.State{Lock: ahead.Lock, Revision: ahead.Revision}, before: ahead.Entry}
	}
	return at
}

// lookAt reads how things stand, and what else there is to know.
func (p *Entry) lookAt(ctx context.Context, prev int64) *position {
	st, err := p.readQueueState(ctx)
	if err == nil && st.Place == p.entry.Revision && st.before == "" && st.Lock != nil {
		st.Lock.Dead, err = p.options.Reaper.IsDead(ctx, st.Lock)
	}
	at := p.newPosition(err)
	if err != nil {
		return at
	}
	at.state, at.news = st, p.options.View.Pauses.Change(p.route, p.entry.Scope.Workflow)
	at.Saw(st.State, p.entry.Execution, protocol.Revisions{Entry: p.entry.Revision, Record: prev})
	at.Vouched, at.Preceded, at.Limited = st.vouched, st.before != "", p.turn != nil
	at.Paused, at.Rests = at.news != nil, p.restLeft() > 0
	return at
}

// noteLockSeen notes the lock that was read, where the place is to wait for that.
func (p *Entry) noteLockSeen(step protocol.Step, st *queueState) *idem.Obstacle {
	if step != protocol.AwaitLock {
		return nil
	}
	p.options.View.Queues.Sees(&p.entry, st.State)
	return st.Obstacle(p.entry.Scope.Key)
}

// awaitStep waits for what is before the place, for its own end, or for that of its session. It may
// return early.
func (p *Entry) awaitStep(ctx context.Context, step protocol.Step, at *position) {
	switch step {
	case protocol.AwaitAnswer: // it says all: what a watch says before that is part of it
		select {
		case <-at.news:
		case <-p.entry.Session.Over:
		case <-ctx.Done():
		}
	case protocol.AwaitEntry:
		p.awaitGone(ctx, nil, at.state.Revision, at.state.before)
	case protocol.AwaitPause:
		p.awaitGone(ctx, at.news, at.state.Revision)
	case protocol.AwaitRest:
		over := make(chan struct{})
		defer time.AfterFunc(p.restLeft(), func() { close(over) }).Stop()
		p.awaitGone(ctx, over, at.state.Revision)
	case protocol.AwaitLock:
		p.awaitLock(ctx, at.state.State)
	}
}

// awaitGone waits until its own place or one of the keys is gone, which were there at revision, or
// until news is closed.
func (p *Entry) awaitGone(ctx context.Context, news <-chan struct{}, revision int64, keys ...string) {
	p.options.View.Watcher.Wait(ctx, p.entry.Session.Over, news, revision,
		append(keys, p.options.Layout.Queued(p.entry.Scope))...)
}

// waitOutcome is what Await returns at the end of the wait.
func (p *Entry) waitOutcome(step protocol.Step, at *position) (*idem.Obstacle, error) {
	switch step {
	case protocol.Go:
		return &idem.Obstacle{}, nil
	case protocol.Lost:
		return nil, p.lostError()
	case protocol.LockLost:
		return nil, idem.ErrLockLost
	case protocol.Cancelled:
		return p.cancelObstacle(at.state.State), idem.ErrCancelled
	case protocol.Unreadable:
		return nil, commit.Unavailable(at.state.Unread)
	}
	return at.state.Obstacle(p.entry.Scope.Key), nil
}

// lostError says that the place has gone with its session, which etcd may know before this process
// does.
func (p *Entry) lostError() error {
	if err := p.entry.Session.Err(); err != nil {
		return fmt.Errorf("%w: %w", idem.ErrQueueEntryLost, err)
	}
	return idem.ErrQueueEntryLost
}

// takeFoundLock takes the lock that the place was found to have become, with the mark of its scope.
// The error is the context's.
func (p *Entry) takeFoundLock(ctx context.Context, st *protocol.State) (err error) {
	if k := p.options.Layout.Keys(st.Lock); k.HighWaterMark != "" {
		if st, err = history.Look(ctx, p.options.Pool, k); err != nil {
			return commit.Unavailable(err)
		}
		if !st.Runs(p.entry.Execution) {
			return nil // another look finds out
		}
	}
	p.won = p.options.Own.Take(&p.entry, st)
	return nil
}

// cancelObstacle is how this execution ended: a place that goes while its session lives was
// cancelled, also where its record was forgotten or written over since.
func (p *Entry) cancelObstacle(st *protocol.State) *idem.Obstacle {
	r := st.Ended(p.entry.Execution)
	if r == nil {
		l := p.asLock()
		r = protocol.RecordOf(&l, idem.End{Status: idem.Aborted, Outcome: idem.NotExecuted})
	}
	return &idem.Obstacle{Record: r, RecordRevision: r.Revision}
}

// awaitLock waits for the end of the lock, or of its owner. A lock of our own goes with it from
// session to session.
func (p *Entry) awaitLock(ctx context.Context, st *protocol.State) {
	y := p.options.Layout
	keys := []string{y.Lock(st.Lock.Scope)}
	if !st.Lock.IsParked() { // otherwise it ends with its lock, in whatever process
		keys = append(keys, y.Alive(protocol.HoldAlive(st.Lock.Execution)))
		if !protocol.IsHold(st.Lock.Alive) && !p.options.Own.Has(st.Lock.Execution) {
			keys = append(keys, y.Alive(st.Lock.Alive))
		}
	}
	p.awaitGone(ctx, nil, st.Revision, keys...)
}

// ClaimHead takes the lock for l, which has the execution ID of the place, if it is the first and
// the event's record is at revision prev. Its results are those of Claim. Without a lock the place
// is still taken: wait again, or leave.
func (p *Entry) ClaimHead(ctx context.Context, l idem.Lock, prev int64) (idem.RunningLock, *idem.Obstacle, error) {
	if p.entry.Session.Err() != nil {
		return nil, nil, p.lostError()
	}
	if p.won != nil {
		return p.won, nil, nil
	}
	mine := p.asLock()
	l.Execution, l.Scope, l.Alive = mine.Execution, mine.Scope, mine.Alive
	if l.Holder == "" { // a client of the lock API has named itself
		l.Holder = mine.Holder
	}
	held, seen, err := p.options.Claims.ClaimHead(ctx, &l, p.entry.Session, prev, p.entry.Revision, p.turn.waiterKey(),
		nil)
	switch {
	case held != nil:
		p.turn.forgetTurn()
		p.options.View.Queues.Unregister(&p.entry)
	case p.turn == nil:
		// should another one be before it after all, it has to read that
		p.options.View.Queues.Unlearn(p.options.Layout.Lock(l.Scope))
	}
	return held, seen, err
}

// Leave gives the place up; should a claim of it still arrive, the Store gives that back, too. It
// goes on by itself when ctx ends first.
func (p *Entry) Leave(ctx context.Context) error {
	if p.parking {
		p.turn.giveUpTurn()
		return nil
	}
	left, err := commit.InTime(ctx, p.options.Tasks.Start, func(life context.Context) error {
		defer p.turn.giveUpTurn()
		return p.leaveQueue(life)
	}, nil)
	if err != nil {
		return commit.Unavailable(p.options.Pool.Because(err))
	}
	return left
}

// leaveQueue repeats until the answer is definite. A refusal means that the place has become a
// lock, or nothing.
func (p *Entry) leaveQueue(life context.Context) error {
	k := p.etcdKeys()
	p.options.View.Queues.Unregister(&p.entry)
	if p.won == nil {
		p.won = p.options.Own.Handed(&p.entry)
	}
	if p.won != nil {
		return p.won.GiveBack(life)
	}
	k.OldSlotWaiter = p.turn.waiterKey()
	for pause := link.NewBackoff(); ; {
		answer := p.options.Sender.Do(life, commit.NewRequest(k.Lock,
			protocol.Leave(k, protocol.Revisions{Entry: p.entry.Revision}), 0).AddSlots(k))
		err := answer.Err
		if err == nil && answer.Succeeded {
			return nil
		}
		if err == nil {
			var st *protocol.State
			if st, err = protocol.ReadState(answer.Responses, answer.Revision); err == nil {
				return p.giveBack(life, st)
			}
		}
		if pause.Wait(life) != nil {
			return commit.Unavailable(fmt.Errorf("leave the queue: %w", err))
		}
	}
}

// giveBack releases the lock that the place has become by a claim whose caller was gone.
func (p *Entry) giveBack(life context.Context, st *protocol.State) error {
	if !st.Runs(p.entry.Execution) || st.Lock.Parked != nil {
		return nil
	}
	return p.options.Own.Take(&p.entry, st).GiveBack(life)
}
