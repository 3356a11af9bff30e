// Package carry takes up the parked executions that no process runs: the head of a queue, and what
// is in a lock whose process is gone.
package carry

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/claim"
	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/reap"
	"hooklock/etcdlock/session"
	"hooklock/etcdlock/view"
	"hooklock/idem"
)

// How a process comes to run a parked execution. It claims the first one of a queue as a waiter
// does; or it takes over the one in the lock whose process is gone, with one transaction that
// proves this (protocol.Carry). Where the lock names this process's session, but no call here has
// it, that is an Adopt. Other processes may do the same at any moment: if a transaction is refused,
// another one has it.

// Options are what a Carrier works with.
type Options struct {
	Claims *claim.Claims   // take locks
	Pool   *link.Pool      // reads and watches etcd
	Sender *commit.Sender  // sends the transactions
	Tasks  *commit.Tasks   // run in the background; Store.Close waits for them
	Layout protocol.Layout // spells the keys
	Clock  link.Clock      // measures elapsed time
	Keeper *session.Keeper // keeps the session of this process
	View   *view.View      // what this process knows of waiting and parked executions
	Own    *owned.Locks    // the locks of this process
	Reaper *reap.Reaper    // ends executions whose owner is dead
}

// Carrier takes up parked executions that no process runs. It is safe for concurrent use.
type Carrier struct{ options *Options }

// New returns a carrier.
func New(o *Options) *Carrier { return &Carrier{o} }

// TakeParked is that of idem.ParkLedger.
func (c *Carrier) TakeParked(ctx context.Context, scope idem.Scope, mine func(route string) bool) (*idem.Taken, error) {
	if !c.options.Tasks.Enter() {
		return nil, commit.Unavailable(commit.ErrClosed)
	}
	defer c.options.Tasks.Leave()
	key := c.options.Layout.Lock(scope)
	if !c.options.View.Parked.BeginLook(key) {
		return nil, nil // another call of this process looks, and looks again
	}
	t := &taking{options: c.options, scope: scope, key: key}
	t.parts.Store(1)
	defer t.endPart()
	taken, err := t.takeExecution(ctx, mine)
	switch {
	case errors.Is(err, idem.ErrNotClaimed), errors.Is(err, idem.ErrLockLost):
		// another process has it, or a new look finds out
		c.options.View.Parked.MakeReady(key)
		return nil, nil
	case err == nil && taken == nil:
		c.options.View.Parked.NoteOwner(key, t.behind)
	}
	return taken, err
}

// taking is one look at a queue.
type taking struct {
	options *Options
	scope   idem.Scope
	key     string       // of the lock
	behind  string       // what proves that the owner of the lock lives; "" = nothing does
	parts   atomic.Int32 // of this look that are under way
}

// runInBackground runs a part of the look that goes on after its caller has given up. The queue is
// not looked at again before it is over: a claim without an answer may have taken the lock, and
// puts it down when it finds that out.
func (t *taking) runInBackground(f func(context.Context)) bool {
	t.parts.Add(1)
	if t.options.Tasks.Help(func(life context.Context) { defer t.endPart(); f(life) }) {
		return true
	}
	t.endPart()
	return false
}

// endPart is the end of a part.
func (t *taking) endPart() {
	if t.parts.Add(-1) == 0 {
		t.options.View.Parked.EndLook(t.key)
	}
}

func (t *taking) takeExecution(ctx context.Context, mine func(route string) bool) (*idem.Taken, error) {
	session, _, err := t.options.Keeper.Current()
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	k := t.options.Layout.Keys(&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Scope: t.scope}})
	reads := []clientv3.Op{clientv3.OpGet(k.Lock), clientv3.OpGet(k.Queue, clientv3.WithFirstCreate()...)}
	if t.scope.PerEvent {
		reads = append(reads, clientv3.OpGet(k.OtherLock))
	}
	answers, _, err := t.options.Pool.Read(ctx, reads...)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	if kv := protocol.First(answers[0]); kv != nil {
		l, err := protocol.LockAt(kv)
		if err != nil {
			return nil, commit.Unavailable(err)
		}
		return t.inLock(ctx, session, l, mine)
	}
	kv := protocol.First(answers[1])
	if kv == nil {
		return nil, nil
	}
	head, err := protocol.LockAt(kv)
	var client *idem.Lock
	if err == nil && t.scope.PerEvent {
		client, err = clientBefore(head, answers[2])
	}
	switch {
	case err != nil:
		return nil, commit.Unavailable(err)
	case client != nil: // all queues of its workflow are looked at when that is gone
		t.options.View.Slots.LeaveAndDropSlotWaiter(head.Execution)
		t.behind = client.Alive
		return nil, nil
	case t.options.View.Pauses.Of(head.Route, head.Scope.Workflow) != nil: // all queues are looked at when that is over
		t.options.View.Slots.LeaveAndDropSlotWaiter(head.Execution)
		return nil, nil
	case head.Parked == nil, t.options.Layout.Lock(head.Scope) != k.Lock, !mine(head.Route):
		// its own process, another queue or other processes are for it
		return nil, nil
	}
	if head.Latest != nil {
		if rests := head.Latest.Rests(t.options.Clock.Now()); rests > 0 {
			time.AfterFunc(rests, func() { t.options.View.Parked.MakeReady(k.Lock) })
			return nil, nil
		}
	}
	return t.fromQueue(ctx, session, head)
}

// clientBefore is a client's lock of the workflow that holds head back; nil = there is none. answer
// is of the lock under another strategy.
func clientBefore(head *idem.Lock, answer *pb.ResponseOp) (*idem.Lock, error) {
	kv := protocol.First(answer)
	if kv == nil {
		return nil, nil
	}
	other, err := protocol.LockAt(kv)
	return (&protocol.State{Other: other}).HoldsBack(head), err
}

// inLock carries on what is in the lock, if no process does.
func (t *taking) inLock(ctx context.Context, session *session.Session, l *idem.Lock,
	mine func(route string) bool) (*idem.Taken, error) {
	parked := l.IsParked()
	waitsForPerson := parked && l.Parked.Blocked != "" && l.Cancel == nil &&
		!t.options.View.Parked.IsTooOld(l.Execution)
	belongsToOther := parked && !mine(l.Route)
	// A lock of this session that Own does not have: its adoption came after its carrier had let
	// go.
	ofThisSession := l.Alive == protocol.SessionAlive(session.Name)
	ownerLives := t.options.View.Sessions.Has(l.Alive) && !ofThisSession
	switch {
	case waitsForPerson, belongsToOther:
		return nil, nil
	case !parked, t.options.Own.Has(l.Execution), ownerLives:
		t.behind = l.Alive
		return nil, nil
	}
	around, err := t.readRelatedKeys(ctx, l)
	if err != nil {
		return nil, err
	}
	held, err := t.takeOver(ctx, session, l)
	if held == nil {
		return nil, err
	}
	return &idem.Taken{Running: held, Carried: true, HoldExpired: l.Held,
		TooOld: t.options.View.Parked.TooOld(l.Execution, around.young), Request: around.request}, nil
}

// around is what else there is of an execution.
type around struct {
	prev    int64  // revision of its event's record; 0 = there is none
	young   bool   // it is not too old
	request []byte // nil = it is not there
}

func (t *taking) readRelatedKeys(ctx context.Context, l *idem.Lock) (a around, err error) {
	k := t.options.Layout.Keys(l)
	answers, _, err := t.options.Pool.Read(ctx, clientv3.OpGet(k.Record, clientv3.WithKeysOnly()),
		clientv3.OpGet(k.Age, clientv3.WithKeysOnly()), clientv3.OpGet(k.Request))
	if err != nil {
		return a, commit.Unavailable(err)
	}
	if kv := protocol.First(answers[0]); kv != nil {
		a.prev = kv.ModRevision
	}
	a.young = protocol.First(answers[1]) != nil
	if kv := protocol.First(answers[2]); kv != nil {
		a.request = kv.Value
	}
	return a, nil
}

// fromQueue claims for the head of the queue.
func (t *taking) fromQueue(ctx context.Context, session *session.Session, l *idem.Lock) (*idem.Taken, error) {
	around, err := t.readRelatedKeys(ctx, l)
	if err != nil {
		return nil, err
	}
	q := l.Created
	if len(l.Slots) > 0 && !t.slotFor(ctx, session, t.options.Layout.Keys(l), l, q) {
		return nil, nil
	}
	l.Created, l.Token, l.Revision = 0, 0, 0
	l.Alive, l.Holder, l.StartedAt = protocol.SessionAlive(session.Name), session.Holder(), t.options.Clock.Now()
	var turn string
	if limit := t.options.View.Slots.TurnOf(l.Execution); len(l.Slots) > 0 && limit != "" {
		turn = t.options.Layout.SlotWaiter(limit, l.Execution)
	}
	held, seen, err := t.options.Claims.ClaimHead(ctx, l, session, around.prev, q, turn, t.runInBackground)
	if held != nil && len(l.Slots) > 0 {
		t.options.View.Slots.Leave(l.Execution)
	}
	switch {
	case err == nil && seen != nil && seen.Full != nil: // it has a turn, or gets one at the next look
		return nil, idem.ErrNotClaimed
	case err != nil:
		return nil, err
	case seen != nil && seen.Lock != nil:
		t.behind = seen.Lock.Alive
		return nil, nil
	case seen != nil: // the queue or the record has changed
		return nil, idem.ErrNotClaimed
	}
	return &idem.Taken{Running: held, TooOld: t.options.View.Parked.TooOld(l.Execution, around.young),
			Request: around.request},
		nil
}

// takeOver takes the lock over. nil, nil: its process lives after all, or another one was faster.
func (t *taking) takeOver(ctx context.Context, session *session.Session, l *idem.Lock) (*owned.Lock, error) {
	next := *l
	next.Alive, next.Holder, next.Held, next.DeadlineLease = protocol.SessionAlive(session.Name), session.Holder(),
		false, 0
	planned := l.Parked.Resumed(t.options.Clock.Now(), l.ReleaseDelay)
	next.Parked = &planned
	value, err := protocol.EncodeFresh(&next)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	type result struct {
		held *owned.Lock
		err  error
	}
	r, err := commit.InTime(ctx, t.runInBackground, func(life context.Context) result {
		held, err := t.carryFor(life, session, l, &next, value)
		return result{held, err}
	}, func(life context.Context, late result) {
		if late.held != nil {
			_ = late.held.GiveBack(life)
		}
	})
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	return r.held, r.err
}

// carryFor sends until the answer is definite.
func (t *taking) carryFor(life context.Context, session *session.Session, l, next *idem.Lock,
	value []byte) (*owned.Lock, error) {
	k, txn, adopts := t.options.Layout.Keys(l), protocol.Carry, l.Alive == next.Alive
	if k.Session = session.Key; adopts {
		txn = protocol.Adopt
	}
	for {
		epoch := session.Epoch()
		at := protocol.Revisions{Epoch: epoch, LockCreated: l.Created, Lock: l.Revision}
		answer := t.options.Sender.Do(life, commit.NewRequest(k.Lock, txn(k, at, protocol.Leased{Value: value}),
			len(value)))
		switch {
		case answer.Applied() && adopts && k.HighWaterMark != "": // it does not bring the mark
			st, err := history.Look(life, t.options.Pool, k)
			return t.addOwnLock(session, next, st, err)
		case answer.Applied():
			next.Token, next.Revision = answer.Revision, answer.Revision
			protocol.Judge(next, protocol.HighWaterMarkIn(k, answer.Responses))
			return t.options.Own.Add(*next, t.options.Layout.Keys(next), session), nil
		case answer.Err != nil && link.Definite(answer.Err):
			return nil, commit.Unavailable(answer.Err)
		case answer.Err != nil:
			st, err := t.options.Claims.LookAfter(life, answer.Err, session, epoch, k)
			held, err := t.addOwnLock(session, next, st, err)
			if errors.Is(err, idem.ErrNotClaimed) && !link.Fencing(answer.Err) {
				err = commit.Unavailable(answer.Err)
			}
			return held, err
		case adopts: // nothing is read with that refusal
			return nil, errors.Join(idem.ErrNotClaimed, session.LearnEpoch(life, t.options.Pool, epoch))
		}
		switch now := protocol.First(answer.Responses[protocol.ReadLock]); {
		case now == nil || now.ModRevision != l.Revision:
			return nil, idem.ErrNotClaimed
		case protocol.First(answer.Responses[protocol.ReadAlive]) != nil:
			t.options.Reaper.NoteAlive(l.Alive, answer)
			t.behind = l.Alive
			return nil, nil
		}
		if err := session.LearnEpoch(life, t.options.Pool, epoch); err != nil {
			return nil, commit.Unavailable(err)
		}
	}
}

// addOwnLock returns the lock that next has become in state st, which was read, or err.
func (t *taking) addOwnLock(session *session.Session, next *idem.Lock, st *protocol.State, err error) (*owned.Lock,
	error) {
	switch {
	case err != nil:
		return nil, commit.Unavailable(err)
	case !st.Runs(next.Execution) || st.Lock.Alive != next.Alive:
		return nil, idem.ErrNotClaimed
	}
	protocol.Judge(st.Lock, st.HighWaterMark)
	held := t.options.Own.Add(*st.Lock, t.options.Layout.Keys(next), session)
	held.See(st.Lock)
	return held, nil
}

// slotFor reports whether it is the turn of a parked execution that is the head of its queue.
// Otherwise it takes a turn for it, and the queue is ready again when it may be its turn.
func (t *taking) slotFor(ctx context.Context, session *session.Session, k protocol.Keys, l *idem.Lock, q int64) bool {
	if t.options.View.Slots.Size(l) == 0 {
		return true
	}
	limit, inLine, w := t.options.View.Slots.Ask(l, k.Lock)
	if limit == "" {
		return true
	}
	if !inLine {
		_ = t.options.View.Slots.EnterSlotWaiters(ctx, w, k, q, session, limit) // it is looked after
	}
	return false
}
