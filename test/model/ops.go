package model

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
)

// op is what a process sends for t: the transaction of the protocol itself, with the values that
// the model reads.
func (m *model) op(t *txn) protocol.Op {
	op := m.sound(t)
	success := &op.GetRequestTxn().Success
	switch {
	case m.breaks == replacedForNobody && t.over != 0:
		*success = (*success)[1:]
	case m.breaks == raisesBlindly, m.breaks == forgetDropsAnyMark && t.kind == forget:
		for i, w := range *success {
			if mark := w.GetRequestTxn(); mark != nil {
				(*success)[i] = mark.Success[0]
			}
		}
	case m.breaks == slotFreedEarly && t.saw.slot != 0 && m.cools(t):
		*success = append(*success, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{
			RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(m.slotKeys(t.by, t.saw.slot)[0].Key)},
		}})
	}
	return op
}

// sound is op where no rule is left out of the writes.
func (m *model) sound(t *txn) protocol.Op {
	at := protocol.Revisions{
		Epoch:       int64(t.epoch),
		LockCreated: int64(t.created),
		Lock:        int64(t.l),
		Entry:       int64(t.q),
		OtherLock:   int64(t.o),
		Record:      int64(t.prev),
		Hold:        int64(t.h),
	}
	if t.epoch == 0 {
		at.Epoch = never
	}
	k := m.keys(t)
	switch t.kind {
	case claim:
		return protocol.Claim(k, at, m.ownLock(t, alive(t.session), t.slot))
	case claimAsHead:
		return protocol.ClaimAsHead(k, at, m.ownLock(t, alive(t.session), t.slot))
	case enqueue:
		k.Latest = m.replacing(t)
		return protocol.Enqueue(k, at, placeValue(t.by, t.session), leased(sessionLease(t.session), byte(t.session)))
	case leave:
		return protocol.Leave(k, at)
	case enterSlotWaiters:
		return protocol.EnterSlotWaiters(k, at, leased(sessionLease(t.session), byte(t.session)))
	case dropSlotWaiter:
		return protocol.DropSlotWaiter(k)
	case settle:
		return protocol.Settle(m.ended(t), at, m.recordOf(t), m.cooling(t), m.raised(t))
	case handOver:
		return m.handingOver(t, k, at)
	case release:
		return protocol.Release(m.ended(t), at)
	case adopt:
		return protocol.Adopt(k, at, m.ownLock(t, alive(t.session), t.saw.slot))
	case reap:
		return protocol.Reap(m.ended(t), at, m.recordOf(t), m.cooling(t))
	case reapCooling:
		return protocol.ReapCooling(m.ended(t), at)
	case fence:
		return protocol.Fence(k, at, leased(sessionLease(t.session), bit(t.seen)))
	case acquire:
		return protocol.Acquire(k, at, m.ownLock(t, byHold, 0), holdValue(t))
	case putHold:
		return protocol.Hold(k, at, m.ownLock(t, byHold, t.saw.slot), holdValue(t))
	case heartbeat:
		return protocol.Heartbeat(k, at, holdValue(t))
	case guard:
		seen := t.saw
		seen.steps = true
		return protocol.Guard(k, at, lockValue(&seen, false, false))
	case cancel:
		seen := t.saw
		seen.by, seen.alive, seen.cancel = t.by, t.alive, t.cancel
		return protocol.Cancel(k, at, lockValue(&seen, false, false), protocol.Leased{})
	case cancelWaiting:
		return protocol.CancelWaiting(k, at, m.recordOf(t))
	case forget:
		return protocol.Forget(k, at, leased(0), m.markOf(t.by), t.letter)
	case correct:
		k = m.ended(t)
		return protocol.Correct(k, at, m.recordOf(t), leased(0), questionOf(&m.spelled, t.by), t.frees, m.raised(t))
	case forceRelease:
		return protocol.ForceRelease(m.ended(t), at, m.recordOf(t), leased(0))
	case forceReleaseCooling:
		return protocol.ForceReleaseCooling(m.ended(t), at)
	}
	return m.soundParked(t, k, at)
}

// soundParked is sound of the transactions about what is parked.
func (m *model) soundParked(t *txn, k protocol.Keys, at protocol.Revisions) protocol.Op {
	switch t.kind {
	case enqueueParked:
		k.Latest = m.replacing(t)
		return protocol.EnqueueParked(k, at, placeValue(t.by, 0), parking())
	case settleParked:
		return protocol.SettleParked(m.ended(t), at, m.recordOf(t), m.cooling(t), letterOf(t), m.raised(t))
	case settleTooOld:
		return protocol.SettleTooOld(m.ended(t), at, m.recordOf(t), m.cooling(t), letterOf(t))
	case carry:
		return protocol.Carry(k, at, m.ownLock(t, alive(t.session), t.saw.slot))
	case runNow:
		seen := t.saw
		seen.by, seen.alive, seen.cancel, seen.token = t.by, t.alive, t.cancel, t.token
		seen.parked, seen.trying, seen.blocked = t.parked, t.trying, false
		return protocol.RunNow(k, at, lockValue(&seen, false, false), leased(0, parkedRequest), leased(0))
	case endParkedPlace:
		return protocol.EndParkedPlace(k, at, m.recordOf(t), letterOf(t))
	case endUncarried:
		return protocol.EndUncarried(m.ended(t), at, m.recordOf(t), m.cooling(t), letterOf(t))
	case forceReleaseParked:
		return protocol.ForceReleaseParked(m.ended(t), at, m.recordOf(t), leased(0), *letterOf(t))
	case parkWaiting:
		return protocol.ParkWaiting(k, at, placeValue(t.by, 0), parking())
	case parkRunning:
		given, kept := m.resting(t, t.trying)
		return protocol.ParkRunning(given, at, m.ownLock(t, alive(t.session), kept), parking())
	case rest:
		given, kept := m.resting(t, false)
		return protocol.Rest(given, at, m.ownLock(t, alive(t.session), kept), nil)
	case attempt:
		slot := t.slot
		if slot == 0 {
			slot = t.saw.slot
		}
		return protocol.Attempt(k, at, m.ownLock(t, alive(t.session), slot))
	case rerun:
		return protocol.Rerun(k, at, againPlace(t), leased(0), parking(), m.spelled.of[t.old])
	case sweepLetter:
		return protocol.SweepLetter(k, at)
	}
	panic("no transaction of the protocol for " + t.kind.String())
}

// never is no revision of the store: who knows no epoch has none.
const never = 255

func (m *model) handingOver(t *txn, k protocol.Keys, at protocol.Revisions) protocol.Op {
	next := m.spelled.of[t.next]
	next.Session = m.aliveKey(alive(t.heir), 0)
	own := sight{by: t.next, alive: alive(t.heir)}
	fresh := m.breaks != handOverKeepsToken
	if !fresh {
		own.token = t.saw.token
	}
	first := protocol.Revisions{Entry: int64(t.q), Record: int64(t.prev)}
	return protocol.HandOver(k, at, next, first, m.recordOf(t), lockValue(&own, false, fresh), m.raised(t), false)
}

// resting are the keys of a lock that rests, and the slot that it keeps; trying: it does not rest.
func (m *model) resting(t *txn, trying bool) (k protocol.Keys, slot uint8) {
	if k = m.keys(t); trying {
		return k, t.saw.slot
	}
	if m.breaks == restKeepsSlot {
		return k, t.saw.slot
	}
	if t.saw.slot != 0 {
		k.Slots = m.slotKeys(t.by, t.saw.slot)
	}
	return k, 0
}

// ownLock is the lock of t's execution as its sender writes it.
func (m *model) ownLock(t *txn, a alive, slot uint8) protocol.Leased {
	own := sight{
		by:     t.by,
		alive:  a,
		token:  t.token,
		slot:   slot,
		cancel: t.cancel,
		parked: t.parked,
		trying: t.trying,
		steps:  t.saw.steps,
		again:  t.saw.again,
	}
	switch t.kind {
	case rest:
		own.blocked = t.letter
	case adopt, carry, putHold, parkRunning:
		own.blocked = t.saw.blocked
	}
	return lockValue(&own, false, t.fresh)
}

// cooling is nil where the lock is free at once.
func (m *model) cooling(t *txn) *protocol.Cooling {
	if !m.cools(t) || m.breaks == endWithoutDelay && t.kind == settle ||
		m.breaks == reapWithoutDelay && t.kind == reap {
		return nil
	}
	own := t.saw
	own.by, own.alive = t.by, byHold
	own.cancel, own.parked, own.trying, own.blocked = notCancelled, false, false, false
	return &protocol.Cooling{
		Lock: lockValue(&own, true, false),
		Hold: leased(holdLease(t.by, coolingLease), coolingLease),
	}
}

// cools: the lock stays closed after an unknown outcome, where the route has a release_delay.
func (m *model) cools(t *txn) bool {
	return m.releaseDelay && t.outcome.unknown() && t.kind != forceRelease && t.kind != forceReleaseParked
}

func (m *model) recordOf(t *txn) protocol.Leased {
	final := t.cancel == cancelledForGood
	if m.breaks == finalOnlyWhereAborted && t.outcome != abortedClean && t.outcome != abortedUnsure {
		final = false
	}
	if m.breaks == forceForgetsFinal && t.kind == forceRelease {
		final = false
	}
	r := leased(0, byte(t.by), byte(t.outcome),
		bit(final)|bit(t.letter)<<1|bit(t.saw.again && m.breaks != failureUnsettles)<<2)
	if m.apart && t.outcome == success && m.breaks != answerLater {
		r.Apart = &protocol.Apart{Key: answerOf(&m.spelled, t.by), Leased: leased(0, answerKept)}
	}
	return r
}

// raised is the mark of an event that went through; nil = it raises none.
func (m *model) raised(t *txn) *protocol.Leased {
	if m.breaks == successRaisesLater || t.outcome != success && m.breaks != anyEndRaises {
		return nil
	}
	if mark := m.markOf(t.by); mark != nil {
		return &protocol.Leased{Value: mark}
	}
	return nil
}

func (m *model) markOf(x execution) []byte {
	if p := m.position(x); p != 0 {
		return []byte{p}
	}
	return nil
}

// replacing is nil where strategy latest is not asked for.
func (m *model) replacing(t *txn) *protocol.Latest {
	if !m.latest[t.by.delivery()] {
		return nil
	}
	l := &protocol.Latest{Last: int64(t.last)}
	if t.over != 0 {
		over, end := m.spelled.of[t.over], txn{
			kind:    cancelWaiting,
			by:      t.over,
			outcome: abortedClean,
			cancel:  cancelledForGood,
		}
		if m.breaks == replacedMayRun {
			end.cancel = cancelled
		}
		l.Over, l.Entry, l.Parked, l.Record = &over, int64(t.overQ), t.overParked, m.recordOf(&end)
	}
	return l
}

func parking() protocol.Parking {
	return protocol.Parking{Request: leased(0), Index: leased(0, parkedRequest), Age: leased(0)}
}

// letterOf is the index of a request that is kept with its record; nil = it is not.
func letterOf(t *txn) *protocol.Leased {
	if !t.letter {
		return nil
	}
	l := leased(0, letterRequest)
	return &l
}

func holdValue(t *txn) protocol.Leased { return leased(holdLease(t.by, t.lease), t.lease) }

func placeValue(x execution, own session) protocol.Leased {
	return leased(sessionLease(own), byte(x), byte(own))
}

// againPlace is the place of an execution that a person lets run again.
func againPlace(t *txn) protocol.Leased { return leased(0, byte(t.by), 0, bit(t.again)) }

const ( // flags of a lock's value
	lockCools = 1 << iota
	lockHasSteps
	lockParked
	lockTrying
	lockBlocked
	lockFresh // its token is the revision of the put
	lockAgain
)

func lockValue(l *sight, cooling, fresh bool) protocol.Leased {
	return leased(0, byte(l.by), byte(l.alive), byte(l.token), l.slot, l.cancel,
		bit(cooling)|bit(l.steps)<<1|bit(l.parked)<<2|bit(l.trying)<<3|bit(l.blocked)<<4|bit(fresh)<<5|bit(l.again)<<6)
}

func leased(lease clientv3.LeaseID, value ...byte) protocol.Leased {
	return protocol.Leased{Value: value, Lease: lease}
}

func bit(is bool) byte {
	if is {
		return 1
	}
	return 0
}

// Leases: none, those of sessions, and those of holds.
const firstHoldLease = 100

func sessionLease(i session) clientv3.LeaseID { return clientv3.LeaseID(i) }

func holdLease(x execution, n uint8) clientv3.LeaseID {
	return firstHoldLease + clientv3.LeaseID(x)*holdLeases + clientv3.LeaseID(n)
}

func (s *store) isLeased(lease int64) bool {
	switch {
	case lease == 0:
		return true
	case lease < firstHoldLease:
		return s.sessions[lease] != 0
	}
	n := lease - firstHoldLease
	return s.leaseLives(execution(n/holdLeases), uint8(n%holdLeases))
}
