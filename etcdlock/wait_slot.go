package etcdlock

import (
	"context"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// How a place waits for a slot, when it is first in its queue and its lock is free: it takes a turn at the limit that has no slot for it, at the
// smallest one where there are more. It has a turn at one limit at a time, so it keeps no slot of another limit from executions that could use it.

// turnAtOnce returns the keys and the turn of an Enqueue where no lock is in the way, only the limit.
func (p *Place) turnAtOnce(k protocol.Keys, at protocol.Seen) (protocol.Keys, protocol.Leased) {
	if p.limits == nil {
		return k, protocol.Leased{}
	}
	p.leaveLine()
	if at.L != 0 || at.O != 0 || p.store.pauses.Of(p.route, p.entry.Scope.Workflow) != nil {
		return k, protocol.Leased{}
	}
	limit := p.store.slots.Begin(p.waits())
	if limit == "" {
		return k, protocol.Leased{}
	}
	k.T = p.store.layout.Turn(limit, p.entry.Execution)
	turn := protocol.EncodeTurn(p.waits(), limit, p.entry.Session.Name, 0)
	return k, protocol.Leased{Value: turn, Lease: p.entry.Session.Lease}
}

// leaveLine gives up its turn at a limit, when it waits for something else, or no more.
func (p *Place) leaveLine() {
	if p.limits != nil {
		p.store.slots.LeaveLine(p.entry.Execution)
	}
}

// awaitSlot waits until it may be the turn of this place at its limits. false: how things stand has to be read again.
func (p *Place) awaitSlot(ctx context.Context, at *queueState) bool {
	limit, inLine, w := p.store.slots.Ask(p.waits(), nil)
	if limit == "" {
		return true
	}
	if !inLine {
		_, err := commit.InTime(ctx, p.store.tasks.Start, func(life context.Context) error {
			return p.store.slots.TakeTurn(life, w, p.keys(), p.entry.Revision, p.entry.Session, limit)
		}, nil)
		if err != nil {
			return false
		}
	}
	p.awaitGone(ctx, w.Woken, at.Revision)
	limit, _, _ = p.store.slots.Ask(p.waits(), nil)
	return limit == "" && ctx.Err() == nil && p.entry.Session.Err() == nil
}

// atLimit is the limit that the place waits at, and which execution has had a slot there for longest, as far as this process knows; nil = it does not.
func (p *Place) atLimit() *idem.Seen {
	if p.limits == nil {
		return nil
	}
	turn := p.store.slots.TurnOf(p.entry.Execution)
	for i := range p.limits.slots {
		if slot, oldest := &p.limits.slots[i], p.store.slots.Oldest(turn); slot.Limit == turn && oldest != "" {
			return &idem.Seen{Full: slot, Oldest: oldest}
		}
	}
	return nil
}

// slotFor reports whether it is the turn of a parked execution that is the first of its line. Otherwise it takes a turn for it, and the line is ripe
// again when it may be its turn.
func (t *taking) slotFor(ctx context.Context, session *session.Session, k protocol.Keys, l *idem.Lock, q int64) bool {
	if t.slots.Size(l) == 0 {
		return true
	}
	limit, inLine, w := t.slots.Ask(l, func() { t.tasks.Help(func(context.Context) { t.parked.Mark(k.L) }) })
	if limit == "" {
		return true
	}
	if !inLine {
		_ = t.slots.TakeTurn(ctx, w, k, q, session, limit) // it is looked after
	}
	return false
}
