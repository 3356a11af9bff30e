package etcdlock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// How a process comes to run a parked execution. It claims the first one of a queue as a waiter does; or it takes over the one in the lock whose
// process is gone, with one transaction that proves this (protocol.Carry). Where the lock names this process's session, but no call here has it,
// that is an Adopt. Other processes may do the same at any moment: if a transaction is refused, another one has it.

// Parked implements idem.ParkLedger.
func (s *Ledger) Parked() idem.ParkedCount { return s.view.Parked.Count() }

// ParkedRoutes counts the parked executions of each route that matches, over all processes.
func (s *Ledger) ParkedRoutes(match func(route string) bool) map[string]int {
	return s.view.Parked.Routes(match)
}

// Waiting implements idem.ParkLedger.
func (s *Ledger) Waiting(scope idem.Scope) int { return s.view.Parked.Waiting(s.layout.Lock(scope)) }

// Old implements idem.ParkLedger.
func (s *Ledger) Old(id idem.ExecutionID) bool { return s.view.Parked.Old(id) }

// NextReady implements idem.ParkLedger. It returns the cause of ctx, or commit.ErrClosed.
func (s *Ledger) NextReady(ctx context.Context) (scope idem.Scope, route string, err error) {
	return s.view.Parked.Next(ctx)
}

// MarkReady implements idem.ParkLedger.
func (s *Ledger) MarkReady(scope idem.Scope) {
	if scope == (idem.Scope{}) {
		s.view.Parked.MarkAll()
		return
	}
	s.view.Parked.Mark(s.layout.Lock(scope))
}

// Take implements idem.ParkLedger.
func (s *Ledger) Take(ctx context.Context, scope idem.Scope, mine func(route string) bool) (*idem.Taken, error) {
	if !s.tasks.Enter() {
		return nil, commit.Unavailable(commit.ErrClosed)
	}
	defer s.tasks.Leave()
	key := s.layout.Lock(scope)
	if !s.view.Parked.BeginLook(key) {
		return nil, nil // another call of this process looks, and looks again
	}
	t := &taking{core: s.core, scope: scope, key: key, mine: mine}
	t.parts.Store(1)
	defer t.over()
	taken, err := t.take(ctx)
	switch {
	case errors.Is(err, idem.ErrNotClaimed), errors.Is(err, idem.ErrLockLost): // another process has it, or a new look finds out
		s.view.Parked.Mark(key)
		return nil, nil
	case err == nil && taken == nil:
		s.view.Parked.Owned(key, t.behind)
	}
	return taken, err
}

// taking is one look at a queue.
type taking struct {
	*core
	scope  idem.Scope
	key    string // of the lock
	mine   func(string) bool
	behind string       // what proves that the owner of the lock lives; "" = nothing does
	parts  atomic.Int32 // of this look that are under way
}

// help runs a part of the look that goes on after its caller has given up. The queue is not looked at again before it is over: a claim without an
// answer may have taken the lock, and puts it down when it finds that out.
func (t *taking) help(f func(context.Context)) bool {
	t.parts.Add(1)
	if t.tasks.Help(func(life context.Context) { defer t.over(); f(life) }) {
		return true
	}
	t.over()
	return false
}

// over is the end of a part.
func (t *taking) over() {
	if t.parts.Add(-1) == 0 {
		t.view.Parked.EndLook(t.key)
	}
}

func (t *taking) take(ctx context.Context) (*idem.Taken, error) {
	session, _, err := t.keeper.Current()
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	k := t.layout.Keys(&idem.Lock{Entry: idem.Entry{Scope: t.scope}})
	reads := []clientv3.Op{clientv3.OpGet(k.Lock), clientv3.OpGet(k.Queue, clientv3.WithFirstCreate()...)}
	if t.scope.PerEvent {
		reads = append(reads, clientv3.OpGet(k.OtherLock))
	}
	answers, _, err := t.pool.Read(ctx, reads...)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	if kv := protocol.First(answers[0]); kv != nil {
		l, err := protocol.LockAt(kv)
		if err != nil {
			return nil, commit.Unavailable(err)
		}
		return t.inLock(ctx, session, l)
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
		t.view.Slots.LeaveLine(head.Execution)
		t.behind = client.Alive
		return nil, nil
	case t.view.Pauses.Of(head.Route, head.Scope.Workflow) != nil: // all queues are looked at when that is over
		t.view.Slots.LeaveLine(head.Execution)
		return nil, nil
	case head.Parked == nil, t.layout.Lock(head.Scope) != k.Lock, !t.mine(head.Route): // its own process, another queue or other processes are for it
		return nil, nil
	}
	if head.Latest != nil {
		if rests := head.Latest.Rests(t.clock.Now()); rests > 0 {
			time.AfterFunc(rests, func() { t.view.Parked.Mark(k.Lock) })
			return nil, nil
		}
	}
	return t.fromQueue(ctx, session, head)
}

// clientBefore is a client's lock of the workflow that holds head back; nil = there is none. answer is of the lock under another strategy.
func clientBefore(head *idem.Lock, answer *pb.ResponseOp) (*idem.Lock, error) {
	kv := protocol.First(answer)
	if kv == nil {
		return nil, nil
	}
	other, err := protocol.LockAt(kv)
	return (&protocol.State{Other: other}).HoldsBack(head), err
}

// inLock carries on what is in the lock, if no process does.
func (t *taking) inLock(ctx context.Context, session *session.Session, l *idem.Lock) (*idem.Taken, error) {
	own := l.Alive == protocol.SessionAlive(session.Name) // an adoption that came after its carrier had let go
	switch {
	case l.IsParked() && (l.Parked.Blocked != "" && l.Cancel == nil && !t.view.Parked.Old(l.Execution) || !t.mine(l.Route)): // it waits for a person, or for another process
		return nil, nil
	case !l.IsParked(), t.own.Has(l.Execution), t.view.Sessions.Has(l.Alive) && !own:
		t.behind = l.Alive
		return nil, nil
	}
	around, err := t.around(ctx, l)
	if err != nil {
		return nil, err
	}
	held, err := t.carry(ctx, session, l)
	if held == nil {
		return nil, err
	}
	return &idem.Taken{Held: held, Carried: true, HoldExpired: l.Held, TooOld: t.view.Parked.TooOld(l.Execution, around.young), Request: around.request}, nil
}

// around is what else there is of an execution.
type around struct {
	prev    int64  // revision of its event's record; 0 = there is none
	young   bool   // it is not too old
	request []byte // nil = it is not there
}

func (t *taking) around(ctx context.Context, l *idem.Lock) (a around, err error) {
	k := t.layout.Keys(l)
	answers, _, err := t.pool.Read(ctx, clientv3.OpGet(k.Record, clientv3.WithKeysOnly()), clientv3.OpGet(k.Age, clientv3.WithKeysOnly()), clientv3.OpGet(k.Request))
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
	around, err := t.around(ctx, l)
	if err != nil {
		return nil, err
	}
	q := l.Created
	if len(l.Slots) > 0 && !t.slotFor(ctx, session, t.layout.Keys(l), l, q) {
		return nil, nil
	}
	l.Created, l.Token, l.Revision = 0, 0, 0
	l.Alive, l.Holder, l.StartedAt = protocol.SessionAlive(session.Name), session.Holder(), t.clock.Now()
	var turn string
	if limit := t.view.Slots.TurnOf(l.Execution); len(l.Slots) > 0 && limit != "" {
		turn = t.layout.Turn(limit, l.Execution)
	}
	c, err := t.claimHead(l, session, around.prev, q, turn)
	if err != nil {
		return nil, err
	}
	c.help = t.help
	held, seen, err := c.run(ctx)
	if held != nil && len(l.Slots) > 0 {
		t.view.Slots.Leave(l.Execution)
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
	return &idem.Taken{Held: held, TooOld: t.view.Parked.TooOld(l.Execution, around.young), Request: around.request}, nil
}

// carry takes the lock over. nil, nil: its process lives after all, or another one was faster.
func (t *taking) carry(ctx context.Context, session *session.Session, l *idem.Lock) (*owned.Lock, error) {
	next := *l
	next.Alive, next.Holder, next.Held, next.Limit = protocol.SessionAlive(session.Name), session.Holder(), false, 0
	planned := l.Parked.Resumed(t.clock.Now(), l.ReleaseDelay)
	next.Parked = &planned
	value, err := protocol.EncodeFresh(&next)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	type result struct {
		held *owned.Lock
		err  error
	}
	r, err := commit.InTime(ctx, t.help, func(life context.Context) result {
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
func (t *taking) carryFor(life context.Context, session *session.Session, l, next *idem.Lock, value []byte) (*owned.Lock, error) {
	k, txn, adopts := t.layout.Keys(l), protocol.Carry, l.Alive == next.Alive
	if k.Session = session.Key; adopts {
		txn = protocol.Adopt
	}
	for {
		epoch := session.Epoch()
		at := protocol.Seen{Epoch: epoch, LockCreated: l.Created, Lock: l.Revision}
		answer := t.sender.Do(life, commit.NewRequest(k.Lock, txn(k, at, protocol.Leased{Value: value}), len(value)))
		switch {
		case answer.Applied() && adopts && k.Mark != "": // it does not bring the mark
			st, err := history.Look(life, t.pool, k)
			return t.taken(session, next, st, err)
		case answer.Applied():
			next.Token, next.Revision = answer.Revision, answer.Revision
			protocol.Judge(next, markIn(k, answer))
			return t.own.Add(*next, t.layout.Keys(next), session), nil
		case answer.Err != nil && link.Definite(answer.Err):
			return nil, commit.Unavailable(answer.Err)
		case answer.Err != nil:
			st, err := t.lookAfter(life, answer.Err, session, epoch, k)
			held, err := t.taken(session, next, st, err)
			if errors.Is(err, idem.ErrNotClaimed) && !link.Fencing(answer.Err) {
				err = commit.Unavailable(answer.Err)
			}
			return held, err
		case adopts: // nothing is read with that refusal
			return nil, errors.Join(idem.ErrNotClaimed, session.Moved(life, t.pool, epoch))
		}
		switch now := protocol.First(answer.Responses[protocol.ReadLock]); {
		case now == nil || now.ModRevision != l.Revision:
			return nil, idem.ErrNotClaimed
		case protocol.First(answer.Responses[protocol.ReadAlive]) != nil:
			t.reaper.Met(l.Alive, answer)
			t.behind = l.Alive
			return nil, nil
		}
		if err := session.Moved(life, t.pool, epoch); err != nil {
			return nil, commit.Unavailable(err)
		}
	}
}

// taken returns the lock that next has become in state st, which was read, or err.
func (t *taking) taken(session *session.Session, next *idem.Lock, st *protocol.State, err error) (*owned.Lock, error) {
	switch {
	case err != nil:
		return nil, commit.Unavailable(err)
	case !st.Runs(next.Execution) || st.Lock.Alive != next.Alive:
		return nil, idem.ErrNotClaimed
	}
	protocol.Judge(st.Lock, st.Mark)
	held := t.own.Add(*st.Lock, t.layout.Keys(next), session)
	held.See(st.Lock)
	return held, nil
}
