package slots

import (
	"context"
	"slices"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// How parked executions count against limits: one has its slots while it is tried, and takes them
// again for the next try. It has its lock all the time, so it needs no entry among the slot
// waiters: it came before them, and takes what is free.

// Rest removes the slots from a lock that rests, and returns those that it had.
func Rest(y protocol.Layout, next *idem.Lock) []protocol.SlotKey {
	had := y.SlotsOf(next)
	if len(had) > 0 {
		next.Slots = slices.Clone(next.Slots) // a lock that was shown to others must not change
		for i := range next.Slots {
			next.Slots[i].Index = -1
		}
	}
	return had
}

// Retake chooses slots for the next try of the lock with the keys k. refused: the choice before
// was. It returns idem.ErrNoSlot if a limit has none, and then the queue is marked when there may
// be one, or that etcd cannot be reached.
func (p *Slots) Retake(ctx context.Context, next *idem.Lock, k protocol.Keys, refused bool) ([]protocol.SlotKey,
	error) {
	if next.HasSlot() || p.Size(next) == 0 {
		return nil, nil
	}
	for looked := false; ; looked = true {
		if !refused || looked {
			if full := p.Choose(next, AnotherTry); full == "" {
				return Chosen(p.options.Layout, next), nil
			} else if looked {
				p.waitAgain(next, full, k.Lock)
				return nil, idem.ErrNoSlot
			}
		}
		if _, err := p.Look(ctx, k, next.Slots); err != nil {
			return nil, commit.Unavailable(err)
		}
	}
}

// Chosen returns the slots that were chosen for l, with their values.
func Chosen(y protocol.Layout, l *idem.Lock) []protocol.SlotKey {
	keys := y.SlotsOf(l)
	n := 0
	for i := range l.Slots {
		if slot := &l.Slots[i]; slot.Index >= 0 {
			keys[n].Value = protocol.EncodeSlot(l, slot)
			n++
		}
	}
	return keys
}

// ApplyLockChange notes that a lock of this process rests, or is tried again.
func (p *Slots) ApplyLockChange(from, to *idem.Lock) {
	switch had, has := from.HasSlot(), to.HasSlot(); {
	case has && !had:
		p.NoteTaken(to)
	case had && !has:
		p.NoteFree(from)
	}
}

// waitAgain registers an execution that has its lock, but finds every slot of a limit taken. It is
// woken once.
func (p *Slots) waitAgain(l *idem.Lock, full, ready string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &Waiter{lock: *l, ready: ready}
	for _, slot := range l.Slots {
		if slot.LimitName == full {
			w.turn = slot.Rule
		}
	}
	p.again[l.Execution] = w
	link.Wake(p.wanted)
}

// wakeAgainLocked wakes executions that have their lock, and for which each limit has a slot; of
// all limits, or only those that count against one.
func (p *Slots) wakeAgainLocked(name string) {
	for x, w := range p.again {
		if counts, room := p.known.hasRoom(&w.lock, name); counts && room {
			delete(p.again, x)
			p.wakeWaiter(w)
		}
	}
}

// Waiting returns how many executions of this process wait for a slot, by the rule of the limit.
func (p *Slots) Waiting() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := map[string]int{}
	for rule := range p.rules { // a metric that came and went would have gaps
		n[rule] = 0
	}
	for _, w := range p.waiters {
		for _, slot := range w.lock.Slots {
			if slot.LimitName == w.turn {
				n[slot.Rule]++
			}
		}
	}
	for _, w := range p.again {
		n[w.turn]++
	}
	return n
}
