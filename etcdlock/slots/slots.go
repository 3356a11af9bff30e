package slots

import (
	"cmp"
	"context"
	"hash/maphash"
	"math"
	"strconv"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Slots knows the limits that executions of this process count against. What it returns is a hint, which slot to try and which waiter is next:
// the transaction that takes a lock compares that its slots are free, so there are never more holders than a limit has numbers. It is safe for
// concurrent use.
//
// While no execution here waits, it knows what this process has taken and what a refusal has shown. While one waits, it follows all slots and
// slot waiters with one watch (watch.go), so that the end of an execution wakes the waiter that is next, and no other.
type Slots struct {
	o      *Options
	wanted chan struct{} // signals that there is a waiter, and nothing is followed
	seed   maphash.Seed  // so that two processes do not try the same slot first

	mu       sync.Mutex
	limits   map[string]*limit
	waiters  map[idem.ExecutionID]*Waiter
	again    map[idem.ExecutionID]*Waiter // executions that have their lock, and are to be tried again
	followed bool                         // limits is what etcd has
	rules    map[string]struct{}          // of the limits that executions here have counted against
}

// limit is one limit, as far as it is known.
type limit struct {
	taken map[int]protocol.SlotHolder // in etcd
	asked map[int]idem.ExecutionID    // by claims of this process that are under way
	freed map[int]int64               // when those that are free became so, as far as the watch has reported
	line  map[idem.ExecutionID]*turnSeen
	// sorted is the slot waiters, the oldest first; nil = it has to be made anew.
	sorted []*turnSeen
}

type turnSeen struct {
	protocol.SlotHolder
	since int64
}

// Waiter is an execution in this process that waits for a slot.
type Waiter struct {
	lock  idem.Lock     // as it waits
	Woken chan struct{} // closed when it may be next
	turn  string        // the limit at which it is, or may be, a slot waiter; "" = none. Of one that is to be tried again: the rule of the limit that is full
	wake  func()        // called instead, for a queue of parked executions
	idle  int           // rounds since it was woken and did not come
}

// Options are what slots work with.
type Options struct {
	Pool   *link.Pool
	Sender *commit.Sender
	Tasks  *commit.Tasks
	Layout protocol.Layout

	// What this process knows without asking etcd; none of these functions blocks.

	// Session returns the session of this process, or why there is none.
	Session func() (*session.Session, error)
	// Paused reports whether executions of that route and workflow are paused.
	Paused func(route, workflow string) bool
	// Size returns how many slots a limit has for an execution of that route; 0 = there is no such limit.
	Size func(route string, slot idem.Slot) int
}

// New returns slots that know nothing yet.
func New(o *Options) *Slots {
	return &Slots{
		o: o, wanted: make(chan struct{}, 1), seed: maphash.MakeSeed(),
		limits: map[string]*limit{}, waiters: map[idem.ExecutionID]*Waiter{}, again: map[idem.ExecutionID]*Waiter{},
		rules: map[string]struct{}{},
	}
}

func (p *Slots) ofLocked(name string) *limit {
	l := p.limits[name]
	if l == nil {
		l = &limit{taken: map[int]protocol.SlotHolder{}, asked: map[int]idem.ExecutionID{}, freed: map[int]int64{}, line: map[idem.ExecutionID]*turnSeen{}}
		p.limits[name] = l
	}
	return l
}

// tidyLocked forgets a limit of which nothing is known.
func (p *Slots) tidyLocked(name string) {
	if l := p.limits[name]; l != nil && len(l.taken) == 0 && len(l.asked) == 0 && len(l.line) == 0 {
		delete(p.limits, name)
	}
}

// maxKnown bounds the limits that are known while they are not followed: changes by other processes are not seen there.
const maxKnown = 4096

// forgetSomeLocked makes room for what was read of other limits. A forgotten limit costs a refusal.
func (p *Slots) forgetSomeLocked() {
	if p.followed || len(p.limits) < maxKnown {
		return
	}
	for name, in := range p.limits {
		if len(in.asked) == 0 {
			delete(p.limits, name)
		}
		if len(p.limits) <= maxKnown/2 {
			return
		}
	}
}

// Size returns the number of limits at which an execution has to have a slot.
func (p *Slots) Size(l *idem.Lock) (n int) {
	for _, slot := range l.Slots {
		if p.o.Size(l.Route, slot) > 0 {
			n++
		}
	}
	return n
}

// Arrival is how an execution comes to a limit.
type Arrival int

// How executions come to a limit.
const (
	Late       Arrival = iota // past the queue: after all slot waiters
	AsHead                    // as the head of a queue, if it is next
	AnotherTry                // for another try: it came before the slot waiters
)

// Choose sets which slots l is to take, and reserves them in this process. It returns the limit that has none for it; "" = they are chosen.
func (p *Slots) Choose(l *idem.Lock, comes Arrival) (full string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unchooseLocked(l)
	chosen := make([]idem.Slot, len(l.Slots))
	smallest := 0
	for i, slot := range l.Slots {
		most := p.o.Size(l.Route, slot)
		slot.N = -1
		if chosen[i] = slot; most == 0 {
			continue
		}
		p.rules[slot.Rule] = struct{}{}
		in := p.ofLocked(slot.Limit)
		if chosen[i].N = p.freeLocked(in, l.Execution, comes, most); chosen[i].N < 0 && (full == "" || most < smallest) {
			full, smallest = slot.Limit, most
		}
		p.tidyLocked(slot.Limit)
	}
	if full != "" {
		for i := range chosen {
			chosen[i].N = -1
		}
		l.Slots = chosen
		return full
	}
	l.Slots = chosen
	for _, slot := range chosen {
		if slot.N >= 0 {
			p.ofLocked(slot.Limit).asked[slot.N] = l.Execution
		}
	}
	return ""
}

// clear forgets what is in etcd.
func (in *limit) clear() {
	in.taken, in.freed, in.line, in.sorted = map[int]protocol.SlotHolder{}, map[int]int64{}, map[idem.ExecutionID]*turnSeen{}, nil
}

// Unchoose takes back what Choose has reserved for a claim that came to nothing.
func (p *Slots) Unchoose(l *idem.Lock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unchooseLocked(l)
	for _, slot := range l.Slots {
		if slot.N >= 0 {
			p.tellLocked(slot.Limit)
		}
	}
}

func (p *Slots) unchooseLocked(l *idem.Lock) {
	for _, slot := range l.Slots {
		if in := p.limits[slot.Limit]; in != nil && in.asked[slot.N] == l.Execution {
			delete(in.asked, slot.N)
			p.tidyLocked(slot.Limit)
		}
	}
}

// Took notes that l has the slots that were chosen for it.
func (p *Slots) Took(l *idem.Lock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.again, l.Execution)
	for _, slot := range l.Slots {
		if slot.N >= 0 {
			in := p.ofLocked(slot.Limit)
			in.taken[slot.N] = protocol.SlotHolder{Execution: l.Execution, Workflow: l.Scope.Workflow, Route: l.Route, Since: l.Revision}
			in.remove(l.Execution)
		}
	}
	p.unchooseLocked(l)
}

// Oldest returns the execution that has had a slot of a limit for longest; "" = none is known.
func (p *Slots) Oldest(name string) (id idem.ExecutionID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.limits[name]
	if l == nil {
		return ""
	}
	since := int64(math.MaxInt64)
	for _, holder := range l.taken {
		if holder.Since < since {
			id, since = holder.Execution, holder.Since
		}
	}
	return id
}

// Freed notes that this process has nothing to do with a lock any more. While all is followed, the watch reports its slots.
func (p *Slots) Freed(l *idem.Lock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.again, l.Execution)
	for _, slot := range l.Slots {
		if in := p.limits[slot.Limit]; in != nil && !p.followed && in.taken[slot.N].Execution == l.Execution {
			delete(in.taken, slot.N)
			p.tidyLocked(slot.Limit)
		}
	}
}

// Knows reports whether all slots and slot waiters are followed.
func (p *Slots) Knows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.followed
}

// Look reads the state around an execution that counts against limits, and the slots of these. It reads the slot waiters only if they are not
// followed: they may be many.
func (p *Slots) Look(ctx context.Context, k protocol.Keys, of []idem.Slot) (*protocol.State, error) {
	ops := protocol.LockRecordAndQueue(k)
	around, step := len(ops), 2
	if p.Knows() {
		step = 1
	}
	for _, slot := range of {
		for _, prefix := range []string{p.o.Layout.Taken(slot.Limit), p.o.Layout.Line(slot.Limit)}[:step] {
			ops = append(ops, link.Read(clientv3.OpGet(prefix, clientv3.WithPrefix())))
		}
	}
	answers, revision, err := p.o.Pool.ReadOps(ctx, ops)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.forgetSomeLocked()
	for i, slot := range of {
		in := p.ofLocked(slot.Limit)
		clear(in.taken)
		for _, kv := range answers[around+step*i].GetResponseRange().Kvs {
			p.sawLocked(kv, true)
		}
		if step == 2 && !p.followed {
			in.line, in.sorted = map[idem.ExecutionID]*turnSeen{}, nil
			for _, kv := range answers[around+step*i+1].GetResponseRange().Kvs {
				p.sawLocked(kv, false)
			}
		}
		p.tidyLocked(slot.Limit)
	}
	p.mu.Unlock()
	return protocol.ReadState(answers, revision)
}

// sawLocked notes a slot or a slot waiter that exists. One that this release cannot read counts, too.
func (p *Slots) sawLocked(kv *mvccpb.KeyValue, slot bool) (name string) {
	prefix := p.o.Layout.Turns()
	if slot {
		prefix = p.o.Layout.Slots()
	}
	name, rest, ok := protocol.SlotAt(strings.TrimPrefix(string(kv.Key), prefix))
	if !ok {
		return ""
	}
	holder, err := protocol.DecodeSlot(kv.Value)
	if !slot {
		if err != nil {
			holder.Execution = idem.ExecutionID(rest)
		}
		p.ofLocked(name).add(&turnSeen{SlotHolder: holder, since: cmp.Or(holder.Since, kv.CreateRevision)})
		return name
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return ""
	}
	in := p.ofLocked(name)
	holder.Since = kv.CreateRevision
	in.taken[n] = holder
	delete(in.freed, n)
	return name
}

// goneLocked notes a slot or a slot waiter that does not exist any more.
func (p *Slots) goneLocked(kv *mvccpb.KeyValue, slot bool) (name string) {
	prefix := p.o.Layout.Turns()
	if slot {
		prefix = p.o.Layout.Slots()
	}
	name, rest, ok := protocol.SlotAt(strings.TrimPrefix(string(kv.Key), prefix))
	in := p.limits[name]
	if !ok || in == nil {
		return ""
	}
	if n, err := strconv.Atoi(rest); slot && err == nil {
		delete(in.taken, n)
		in.freed[n] = kv.ModRevision
	} else {
		in.remove(idem.ExecutionID(rest))
	}
	p.tidyLocked(name)
	return name
}

// Ask returns a limit at which an execution is not next yet, and whether it is a slot waiter there; "" = it is next at all of them. Until all
// is followed that is not known, and at is no limit's name, as it is for a paused execution. Woken of the waiter is closed, or wake is called,
// when the caller should ask again.
func (p *Slots) Ask(l *idem.Lock, wake func()) (at string, inLine bool, w *Waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w = p.waiters[l.Execution]
	if w == nil {
		w = &Waiter{lock: *l, wake: wake}
		p.waiters[l.Execution] = w
	}
	w.Woken, w.idle = make(chan struct{}), 0
	if p.paused(l) { // since it was looked at
		p.wakeLocked(w)
		return unknownLimit, true, w
	}
	if !p.followed {
		link.Wake(p.wanted)
		return unknownLimit, true, w
	}
	smallest := 0
	for _, slot := range l.Slots {
		most := p.o.Size(l.Route, slot)
		if most == 0 {
			continue
		}
		in := p.ofLocked(slot.Limit)
		next, there := in.isNext(l.Execution, most)
		if !next && (at == "" || most < smallest) {
			at, smallest, inLine = slot.Limit, most, there
		}
		p.tidyLocked(slot.Limit)
	}
	return at, inLine, w
}

// unknownLimit is no limit's name.
const unknownLimit = "\x00"

// freeOf returns how many slots below most are free.
func (in *limit) freeOf(most int) int {
	free := most
	for n := range in.taken {
		if n < most {
			free--
		}
	}
	return free
}

// Waiters returns how many executions of this process wait for a slot.
func (p *Slots) Waiters() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiters)
}

// tellLocked wakes the waiters of this process that are next at a limit.
func (p *Slots) tellLocked(name string) {
	if !p.followed {
		return
	}
	if len(p.again) > 0 {
		p.wakeAgainLocked(name)
	}
	in := p.limits[name]
	if in == nil {
		return
	}
	free, ours := p.openLocked(name)
	if !ours || free <= 0 {
		return
	}
	for _, x := range in.next(free) {
		p.wakeLocked(p.waiters[x])
	}
}

// openLocked returns how many slots of a limit are free, by the size that this process's waiters know; ours is false if it has none.
func (p *Slots) openLocked(name string) (free int, ours bool) {
	in := p.limits[name]
	for x := range in.line {
		w := p.waiters[x]
		if w == nil {
			continue
		}
		for _, slot := range w.lock.Slots {
			if slot.Limit != name {
				continue
			}
			if most := p.o.Size(w.lock.Route, slot); most > 0 {
				return in.freeOf(most), true
			}
			return len(in.line), true // there is no such limit any more
		}
	}
	return 0, false
}

func (p *Slots) wakeLocked(w *Waiter) {
	if w == nil {
		return
	}
	if w.wake != nil {
		w.wake()
		return
	}
	select {
	case <-w.Woken:
	default:
		close(w.Woken)
	}
}

// Leave forgets an execution that waits for a slot no more. It returns the limit at which it may still be a slot waiter; "" = none.
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

// LeaveLine is Leave, and removes that slot waiter.
func (p *Slots) LeaveLine(x idem.ExecutionID) {
	if turn := p.Leave(x); turn != "" {
		p.dropTurn(turn, x)
	}
}

// PausesChanged lets waiters ask again that are paused now: each makes way for the next, and becomes a slot waiter again after the pause. A
// parked execution does so when its queue is looked at.
func (p *Slots) PausesChanged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.waiters {
		if w.wake == nil && p.paused(&w.lock) {
			p.wakeLocked(w)
		}
	}
}

func (p *Slots) paused(l *idem.Lock) bool { return p.o.Paused(l.Route, l.Scope.Workflow) }

// TurnOf returns the limit at which an execution may be a slot waiter; "" = none.
func (p *Slots) TurnOf(x idem.ExecutionID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.waiters[x]; w != nil {
		return w.turn
	}
	return ""
}

// Begin registers a waiter that becomes a slot waiter with its queue entry. It returns the limit, as far as is known; "" = it has to wait for
// none.
func (p *Slots) Begin(l *idem.Lock) (at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	smallest := 0
	for _, slot := range l.Slots {
		in, most := p.limits[slot.Limit], p.o.Size(l.Route, slot)
		if in == nil || most == 0 || in.freeOf(most) > len(in.line) || at != "" && most >= smallest {
			continue
		}
		at, smallest = slot.Limit, most
	}
	if at != "" {
		p.waiters[l.Execution] = &Waiter{lock: *l, Woken: make(chan struct{}), turn: at}
		link.Wake(p.wanted)
	}
	return at
}

// turned notes at which limit an execution is a slot waiter.
func (p *Slots) turned(x idem.ExecutionID, at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.waiters[x]; w != nil {
		w.turn = at
	}
}
