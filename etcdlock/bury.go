package etcdlock

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// isDead says whether the owner of l is gone, as far as this process knows. Holds are few, so those are asked for; where l has one, it is
// noted in l until when.
func (s *core) isDead(ctx context.Context, l *idem.Lock) (bool, error) {
	if s.holds(l.Execution) {
		return false, nil // ours, and on its way to the next session
	}
	if l.IsParked() {
		return false, nil // it is carried on, not buried
	}
	if !protocol.IsHold(l.Alive) {
		return !s.live.Has(l.Alive), nil
	}
	for pause := link.NewBackoff(); ; {
		var response *clientv3.GetResponse
		err := s.pool.Try(ctx, link.AttemptTimeout, func(ctx context.Context, c *clientv3.Client) (err error) {
			response, err = c.Get(ctx, s.layout.Alive(l.Alive))
			return err
		})
		if err == nil {
			if len(response.Kvs) == 0 {
				return true, nil
			}
			if l.Held {
				l.HoldUntil, _ = protocol.DecodeHold(response.Kvs[0].Value) // nobody knows until when where it does not say
			}
			return false, nil
		}
		if err := pause.Wait(ctx); err != nil {
			return false, err
		}
	}
}

// Bury implements idem.Ledger.
func (s *Ledger) Bury(ctx context.Context, dead *idem.Lock) error { return s.bury(ctx, dead) }

// bury ends the execution of a dead lock, for as long as ctx and the Store live.
func (s *core) bury(ctx context.Context, dead *idem.Lock) error {
	if s.holds(dead.Execution) || dead.IsParked() {
		return nil
	}
	if !s.tasks.Enter() {
		return unavailable(commit.ErrClosed)
	}
	defer s.tasks.Leave()
	ctx, cancel := s.tasks.Within(ctx)
	defer cancel()
	return s.buryFor(ctx, dead)
}

// buryFor repeats until the answer is definite, which is safe: the lock's revision changes when it is applied.
func (s *core) buryFor(ctx context.Context, dead *idem.Lock) error {
	k := s.layout.Keys(dead)
	for pause := link.NewBackoff(); ; {
		r, err := s.burial(ctx, dead, k)
		if err == nil {
			answer := s.sender.Do(ctx, r)
			if err = answer.Err; err == nil {
				switch {
				case !answer.Succeeded:
					s.meet(dead.Alive, answer)
				case !dead.Cooling && s.o.OnBuried != nil:
					s.o.OnBuried(dead)
				}
				return nil
			}
			s.leases.DropIfGone(r.SharedLease, err)
		}
		if pause.Wait(ctx) != nil {
			return unavailable(fmt.Errorf("bury: %w", err))
		}
	}
}

func (s *core) burial(life context.Context, dead *idem.Lock, k protocol.Keys) (*commit.Request, error) {
	at := protocol.Seen{L: dead.Revision}
	if dead.Cooling {
		return commit.NewRequest(k.L, protocol.BuryCooling(k, at), 0).AddSlots(k), nil
	}
	end, err := s.deathOf(life, dead)
	if err != nil {
		return nil, err
	}
	return s.ending(life, dead, protocol.RecordOf(dead, end), s.writer, func(record protocol.Leased, cool *protocol.Cooling) protocol.Op {
		return protocol.Bury(k, at, record, cool)
	}, k)
}

// policyName is who aborts at max_duration.
const policyName = "policy"

// deathOf is the end of an execution whose owner is dead, or whose hold ran out.
func (s *core) deathOf(ctx context.Context, dead *idem.Lock) (idem.End, error) {
	now := s.clock.Now()
	end := idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: now}
	if !protocol.IsHold(dead.Alive) {
		end.Error = &idem.Failure{Code: codeLockLost, Detail: "the process that ran it lost its session; how far it came is unknown"}
		return end, nil
	}
	left, err := s.untilLimit(ctx, dead)
	if left <= time.Second {
		end.Status, end.Abort = idem.Aborted, &idem.Cancel{By: policyName, Reason: "max_duration of " + dead.MaxDuration.String() + " reached", At: now}
	} else {
		end.Error = &idem.Failure{Code: codeHoldExpired, Detail: "the hold was not renewed in time; how far the work came is unknown"}
	}
	return end, err
}

// meet takes note of a session that turned out to be alive, so that its locks are not taken for dead again.
func (s *core) meet(alive string, answer commit.Reply) {
	if protocol.First(answer.Responses[protocol.ReadAlive]) != nil && !protocol.IsHold(alive) {
		s.live.Met(alive[len(protocol.KindSessions):], answer.Revision)
	}
}

// ending builds a transaction that takes an execution out of its lock: with the leases that it needs. Whoever has to recognise its own record
// gives a writer that nobody else has.
func (s *core) ending(ctx context.Context, l *idem.Lock, r *idem.Record, writer string, txn func(protocol.Leased, *protocol.Cooling) protocol.Op, k protocol.Keys) (*commit.Request, error) {
	value, err := protocol.EncodeRecord(r, writer)
	if err != nil {
		return nil, err
	}
	row := s.layout.RowOf(k.I, r)
	lease, err := s.leases.Take(ctx, l.Retention, protocol.KindRecords, &row)
	if err != nil {
		return nil, err
	}
	var cool *protocol.Cooling
	size := len(value)
	if s.maybeAtWork(l, r) {
		if cool, err = s.coolDown(ctx, l); err != nil {
			return nil, err
		}
		size += len(cool.Lock.Value) + len(cool.Hold.Value)
	}
	request := commit.NewRequest(k.L, txn(protocol.Leased{Value: value, Lease: lease}, cool), size).AddSlots(k)
	if request.SharedLease = lease; cool != nil {
		request.OwnLeases, request.Unbatched = []clientv3.LeaseID{cool.Hold.Lease}, true
	}
	request.EndedLease = clientv3.LeaseID(l.Limit)
	return request, nil
}

// maybeAtWork reports whether the upstream may still be at work on an execution that ends as r. Of a parked one that is for its latest try to say: r
// has the outcome of all of them. Where it rests between tries, the time when that try ended is known, by the clock of the process that made it.
func (s *core) maybeAtWork(l *idem.Lock, r *idem.Record) bool {
	p := l.Parked
	switch {
	case l.ReleaseDelay == 0:
		return false
	case r.Tried != nil:
		return r.Tried.Outcome == idem.Unknown
	case p == nil || p.Trying:
		return r.Outcome == idem.Unknown
	}
	return p.Last != nil && p.Last.Outcome == idem.Unknown && s.clock.Now().Sub(p.Last.At) < l.ReleaseDelay
}

// coolDown makes the cooling lock on a new lease. Where its transaction gets no answer and that lease is not used after all, it runs out by
// itself: the transaction may yet use it.
func (s *core) coolDown(ctx context.Context, l *idem.Lock) (*protocol.Cooling, error) {
	lease, err := s.pool.NewLease(ctx, l.ReleaseDelay)
	if err != nil {
		return nil, err
	}
	cold := *l
	cold.Cooling, cold.CoolUntil, cold.Alive = true, s.clock.Now().Add(l.ReleaseDelay).Round(time.Millisecond), protocol.HoldAlive(l.Execution)
	cold.Cancel, cold.Parked, cold.Limit = nil, nil, 0
	value, err := protocol.EncodeLock(&cold)
	if err != nil {
		return nil, err
	}
	return &protocol.Cooling{Lock: protocol.Leased{Value: value}, Hold: protocol.Leased{Value: protocol.EncodeHold(l.Holder, cold.CoolUntil), Lease: lease}}, nil
}
