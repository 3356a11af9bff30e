package etcdlock

import (
	"context"
	"slices"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// How what is parked counts against limits: it has its slots while it is tried, and takes them again for the next try. It has its lock all the time,
// so it needs no turn: it came before those who wait in line, and takes what is free.

// restSlots takes its slots from a lock that rests, and says which it had.
func (s *core) restSlots(next *idem.Lock) []protocol.SlotKey {
	had := s.layout.SlotsOf(next)
	if len(had) > 0 {
		next.Slots = slices.Clone(next.Slots) // a lock that was shown to others stays as it is
		for i := range next.Slots {
			next.Slots[i].N = -1
		}
	}
	return had
}

// retakeSlots chooses slots for the next try. The error is idem.ErrNoSlot, and then the line is ripe when there may be some, or that nobody knows.
func (h *owned) retakeSlots(ctx context.Context, next *idem.Lock, refused bool) ([]protocol.SlotKey, error) {
	p := h.store.slots
	if next.HasSlot() || p.size(next) == 0 {
		return nil, nil
	}
	for looked := false; ; looked = true {
		if !refused || looked {
			if full := p.choose(next, forAnotherTry); full == "" {
				return h.store.slotsToTake(next), nil
			} else if looked {
				p.waitAgain(next, full, func() { h.store.tasks.Help(func(context.Context) { h.store.lines.ripenLock(h.keys.L) }) })
				return nil, idem.ErrNoSlot
			}
		}
		if _, err := p.look(ctx, h.keys, next.Slots); err != nil {
			return nil, unavailable(err)
		}
	}
}

// slotsToTake are those that were chosen for l, with what is to be in them.
func (s *core) slotsToTake(l *idem.Lock) []protocol.SlotKey {
	keys := s.layout.SlotsOf(l)
	n := 0
	for i := range l.Slots {
		if slot := &l.Slots[i]; slot.N >= 0 {
			keys[n].Value = protocol.EncodeSlot(l, slot)
			n++
		}
	}
	return keys
}

// changed is told of an own lock that rests, or is tried again.
func (p *slots) changed(from, to *idem.Lock) {
	switch had, has := from.HasSlot(), to.HasSlot(); {
	case has && !had:
		p.took(to)
	case had && !has:
		p.freed(from)
	}
}

// waitAgain lets an execution wait that has its lock, and that every slot of a limit is taken for. It is woken once.
func (p *slots) waitAgain(l *idem.Lock, full string, wake func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &slotWaiter{lock: *l, wake: wake}
	for _, slot := range l.Slots {
		if slot.Limit == full {
			w.turn = slot.Rule
		}
	}
	p.again[l.Execution] = w
	link.Wake(p.wanted)
}

// wakeAgainLocked wakes those who have their lock, and for whom there is a slot of each limit; of all, or of who counts against one.
func (p *slots) wakeAgainLocked(name string) {
	for x, w := range p.again {
		there, room := name == "", true
		for _, slot := range w.lock.Slots {
			there = there || slot.Limit == name
			most, in := p.store.size(w.lock.Route, slot), p.limits[slot.Limit]
			room = room && (most == 0 || in == nil || in.freeOf(most) > 0)
		}
		if there && room {
			delete(p.again, x)
			w.wake()
		}
	}
}

// waiting is how many of this process wait for a slot, by the rule of the limit.
func (p *slots) waiting() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := map[string]int{}
	for rule := range p.rules { // a series that came and went would have gaps
		n[rule] = 0
	}
	for _, w := range p.waiters {
		for _, slot := range w.lock.Slots {
			if slot.Limit == w.turn {
				n[slot.Rule]++
			}
		}
	}
	for _, w := range p.again {
		n[w.turn]++
	}
	return n
}
