package slots

import (
	"context"
	"hash/maphash"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Slots knows the limits that executions of this process count against. What it returns is a hint,
// which slot to try and which waiter is next: the transaction that takes a lock compares that its
// slots are free, so there are never more holders than a limit has numbers. It is safe for
// concurrent use.
//
// While no execution here waits, it knows what this process has taken and what a refusal has shown.
// While one waits, it follows all slots and slot waiters with one watch (following.go), so that the
// end of an execution wakes the waiter that is next, and no other.
type Slots struct {
	options *Options
	wanted  chan struct{} // signals that there is a waiter, and nothing is followed

	mu      sync.Mutex
	known   known
	waiters map[idem.ExecutionID]*Waiter
	again   map[idem.ExecutionID]*Waiter // executions that have their lock, and are to be tried again
	rules   map[string]struct{}          // of the limits that executions here have counted against
}

// Waiter is an execution in this process that waits for a slot.
type Waiter struct {
	lock  idem.Lock     // as it waits
	Woken chan struct{} // closed when it may be next
	// the limit at which it is, or may be, a slot waiter; "" = none. Of one that is to be tried
	// again: the rule of the limit that is full
	turn  string
	ready string // of a parked execution: the key of the lock whose queue is ready then, instead
	idle  int    // rounds since it was woken and did not come
}

// wakeWaiter lets a waiter ask again; nil is no waiter.
func (p *Slots) wakeWaiter(w *Waiter) {
	if w == nil {
		return
	}
	if w.ready != "" {
		p.options.MarkReady(w.ready)
		return
	}
	select {
	case <-w.Woken:
	default:
		close(w.Woken)
	}
}

// Options are what slots work with.
type Options struct {
	Pool   *link.Pool      // reads and watches etcd
	Sender *commit.Sender  // sends the transactions
	Tasks  *commit.Tasks   // run in the background; Store.Close waits for them
	Layout protocol.Layout // spells the keys
	Process
}

// Process is what slots ask of their process, and tell it. None of its methods blocks.
type Process interface {
	// Session returns the session of this process, or why there is none.
	Session() (*session.Session, error)
	// Paused reports whether executions of that route and workflow are paused.
	Paused(route, workflow string) bool
	// Size returns how many slots a limit has for an execution of that route; 0 = there is no such
	// limit.
	Size(route string, slot idem.Slot) int
	// MarkReady is called when the queue of the lock with that key should be looked at, because a
	// limit may have a slot for a parked execution. It may be called while a caller of the slots
	// waits.
	MarkReady(lock string)
}

// New returns slots that know nothing yet.
func New(o *Options) *Slots {
	return &Slots{
		options: o, wanted: make(chan struct{}, 1),
		known:   known{layout: o.Layout, options: o, seed: maphash.MakeSeed(), limits: map[string]*limit{}},
		waiters: map[idem.ExecutionID]*Waiter{}, again: map[idem.ExecutionID]*Waiter{}, rules: map[string]struct{}{},
	}
}

// Size returns the number of limits at which an execution has to have a slot.
func (p *Slots) Size(l *idem.Lock) (n int) {
	for _, slot := range l.Slots {
		if p.options.Size(l.Route, slot) > 0 {
			n++
		}
	}
	return n
}

// Choose sets which slots l is to take, and reserves them in this process. It returns the limit
// that has none for it; "" = they are chosen.
func (p *Slots) Choose(l *idem.Lock, comes Arrival) (full string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known.unchooseSlots(l)
	for _, slot := range l.Slots {
		if p.options.Size(l.Route, slot) > 0 {
			p.rules[slot.Rule] = struct{}{}
		}
	}
	return p.known.chooseSlots(l, comes)
}

// Unchoose takes back what Choose has reserved for a claim that came to nothing.
func (p *Slots) Unchoose(l *idem.Lock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known.unchooseSlots(l)
	for _, slot := range l.Slots {
		if slot.Index >= 0 {
			p.tellLocked(slot.LimitName)
		}
	}
}

// NoteTaken notes that l has the slots that were chosen for it.
func (p *Slots) NoteTaken(l *idem.Lock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.again, l.Execution)
	p.known.takeSlots(l)
}

// NoteFree notes that this process has nothing to do with a lock any more.
func (p *Slots) NoteFree(l *idem.Lock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.again, l.Execution)
	p.known.releaseSlots(l)
}

// Oldest returns the execution that has had a slot of a limit for longest; "" = none is known.
func (p *Slots) Oldest(name string) idem.ExecutionID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known.oldestHolder(name)
}

// Knows reports whether all slots and slot waiters are followed.
func (p *Slots) Knows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known.followed
}

// Look reads the state around an execution that counts against limits, and the slots of these. It
// reads the slot waiters only if they are not followed: they may be many.
func (p *Slots) Look(ctx context.Context, k protocol.Keys, of []idem.Slot) (*protocol.State, error) {
	ops := protocol.LockRecordAndQueue(k)
	around, step := len(ops), 2
	if p.Knows() {
		step = 1
	}
	for _, slot := range of {
		for _, prefix := range []string{p.options.Layout.OfLimit(protocol.KindSlots, slot.LimitName),
			p.options.Layout.OfLimit(protocol.KindSlotWaiters, slot.LimitName)}[:step] {
			ops = append(ops, link.Read(clientv3.OpGet(prefix, clientv3.WithPrefix())))
		}
	}
	answers, revision, err := p.options.Pool.ReadOps(ctx, ops)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known.forgetSome()
	for i, slot := range of {
		in := p.known.ensureLimit(slot.LimitName)
		clear(in.taken)
		for _, kv := range answers[around+step*i].GetResponseRange().Kvs {
			p.known.noteFound(kv, true)
		}
		if step == 2 && !p.known.followed {
			in.waiters, in.sorted = map[idem.ExecutionID]*slotWaiter{}, nil
			for _, kv := range answers[around+step*i+1].GetResponseRange().Kvs {
				p.known.noteFound(kv, false)
			}
		}
		p.known.dropIfEmpty(slot.LimitName)
	}
	return protocol.ReadState(answers, revision)
}

// Ask returns a limit at which an execution is not next yet, and whether it is a slot waiter there;
// "" = it is next at all of them. Until all is followed that is not known, and at is no limit's
// name, as it is for a paused execution. Woken of the waiter is closed when the caller should ask
// again; or the queue of the lock with the key ready is marked, where that is not "".
func (p *Slots) Ask(l *idem.Lock, ready string) (at string, inLine bool, w *Waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w = p.waiters[l.Execution]
	if w == nil {
		w = &Waiter{lock: *l, ready: ready}
		p.waiters[l.Execution] = w
	}
	w.Woken, w.idle = make(chan struct{}), 0
	switch {
	case p.options.Paused(l.Route, l.Scope.Workflow): // since it was looked at
		p.wakeWaiter(w)
	case !p.known.followed:
		link.Wake(p.wanted)
	default:
		at, inLine = p.known.notNext(l)
		return at, inLine, w
	}
	return unknownLimit, true, w
}

// unknownLimit is no limit's name.
const unknownLimit = "\x00"

// Waiters returns how many executions of this process wait for a slot.
func (p *Slots) Waiters() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiters)
}

// tellLocked wakes the waiters of this process that are next at a limit.
func (p *Slots) tellLocked(name string) {
	if !p.known.followed {
		return
	}
	p.wakeAgainLocked(name)
	for _, x := range p.nextLocked(name) {
		p.wakeWaiter(p.waiters[x])
	}
}

// nextLocked returns the slot waiters for which a limit has a slot now, by the size that this
// process's waiters know; nil = it has none of them.
func (p *Slots) nextLocked(name string) []idem.ExecutionID {
	in := p.known.limits[name]
	if in == nil {
		return nil
	}
	for x := range in.waiters {
		if w := p.waiters[x]; w != nil {
			if free, counts := p.known.openTo(&w.lock, name); counts {
				return in.nextWaiters(free)
			}
		}
	}
	return nil
}

// Leave forgets an execution that waits for a slot no more. It returns the limit at which it may
// still be a slot waiter; "" = none.
func (p *Slots) Leave(x idem.ExecutionID) (turn string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waiters[x]
	if w == nil {
		return ""
	}
	delete(p.waiters, x)
	return w.turn
}

// LeaveAndDropSlotWaiter is Leave, and removes that slot waiter.
func (p *Slots) LeaveAndDropSlotWaiter(x idem.ExecutionID) {
	if turn := p.Leave(x); turn != "" {
		p.dropSlotWaiter(turn, x)
	}
}

// ApplyPauses lets waiters ask again that are paused now: each makes way for the next, and becomes
// a slot waiter again after the pause. A parked execution does so when its queue is looked at.
func (p *Slots) ApplyPauses() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.waiters {
		if w.ready == "" && p.options.Paused(w.lock.Route, w.lock.Scope.Workflow) {
			p.wakeWaiter(w)
		}
	}
}

// TurnOf returns the limit at which an execution may be a slot waiter; "" = none.
func (p *Slots) TurnOf(x idem.ExecutionID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.waiters[x]; w != nil {
		return w.turn
	}
	return ""
}

// Begin registers a waiter that becomes a slot waiter with its queue entry. It returns the limit,
// as far as is known; "" = it has to wait for none.
func (p *Slots) Begin(l *idem.Lock) (at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at = p.known.fullFor(l)
	if at != "" {
		p.waiters[l.Execution] = &Waiter{lock: *l, Woken: make(chan struct{}), turn: at}
		link.Wake(p.wanted)
	}
	return at
}
