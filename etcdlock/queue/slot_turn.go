package queue

import (
	"context"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// How a place waits for a slot, when it is first in its queue and its lock is free: it takes a turn
// at the limit that has no slot for it, at the smallest one where there are more. It has a turn at
// one limit at a time, so it keeps no slot of another limit from executions that could use it.

// slotTurn is the turn at the limits that a place counts against. Of a place that counts against
// none it is nil.
type slotTurn struct {
	place *Entry
	slots []idem.Slot
}

func newSlotTurn(p *Entry, l *idem.Lock) *slotTurn {
	if len(l.Slots) == 0 {
		return nil
	}
	return &slotTurn{p, l.Slots}
}

// asLock is the lock as it waits for slots.
func (t *slotTurn) asLock() *idem.Lock {
	l := t.place.asLock()
	l.Route, l.Slots = t.place.route, t.slots
	return &l
}

// waiterKey is the key of the turn that the place may have at a limit; "" = it has none.
func (t *slotTurn) waiterKey() string {
	if t == nil {
		return ""
	}
	limit := t.place.options.View.Slots.TurnOf(t.place.entry.Execution)
	if limit == "" {
		return ""
	}
	return t.place.options.Layout.SlotWaiter(limit, t.place.entry.Execution)
}

// atOnce returns the keys and the turn of an Enqueue where no lock is in the way, only the limit.
func (t *slotTurn) atOnce(k protocol.Keys, at protocol.Revisions) (protocol.Keys, protocol.Leased) {
	if t == nil {
		return k, protocol.Leased{}
	}
	t.giveUpTurn()
	o, e := t.place.options, &t.place.entry
	if at.Lock != 0 || at.OtherLock != 0 || o.View.Pauses.Of(t.place.route, e.Scope.Workflow) != nil {
		return k, protocol.Leased{}
	}
	limit := o.View.Slots.Begin(t.asLock())
	if limit == "" {
		return k, protocol.Leased{}
	}
	k.SlotWaiter = o.Layout.SlotWaiter(limit, e.Execution)
	return k, protocol.Leased{Value: protocol.EncodeSlotWaiter(t.asLock(), limit, e.Session.Name, 0),
		Lease: e.Session.Lease}
}

// giveUpTurn gives the turn up, when the place waits for something else, or no more.
func (t *slotTurn) giveUpTurn() {
	if t != nil {
		t.place.options.View.Slots.LeaveAndDropSlotWaiter(t.place.entry.Execution)
	}
}

// forgetTurn is called when the lock was taken, and the turn with it.
func (t *slotTurn) forgetTurn() {
	if t != nil {
		t.place.options.View.Slots.Leave(t.place.entry.Execution)
	}
}

// awaitTurn waits until it may be the turn of the place. false: how things stand has to be read
// again.
func (t *slotTurn) awaitTurn(ctx context.Context, revision int64) bool {
	p := t.place
	limit, inLine, w := p.options.View.Slots.Ask(t.asLock(), "")
	if limit == "" {
		return true
	}
	if !inLine {
		_, err := commit.InTime(ctx, p.options.Tasks.Start, func(life context.Context) error {
			return p.options.View.Slots.EnterSlotWaiters(life, w, p.etcdKeys(), p.entry.Revision, p.entry.Session,
				limit)
		}, nil)
		if err != nil {
			return false
		}
	}
	p.awaitGone(ctx, w.Woken, revision)
	limit, _, _ = p.options.View.Slots.Ask(t.asLock(), "")
	return limit == "" && ctx.Err() == nil && p.entry.Session.Err() == nil
}

// fullObstacle is the limit that the place waits at, and which execution has had a slot there for
// longest, as far as this process knows; nil = it does not.
func (t *slotTurn) fullObstacle() *idem.Obstacle {
	if t == nil {
		return nil
	}
	s := t.place.options.View.Slots
	turn := s.TurnOf(t.place.entry.Execution)
	for i := range t.slots {
		if slot, oldest := &t.slots[i], s.Oldest(turn); slot.LimitName == turn && oldest != "" {
			return &idem.Obstacle{Full: slot, Oldest: oldest}
		}
	}
	return nil
}
