package etcdlock

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

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// slots knows the limits that executions of this process count against. What it says is a hint, which slot to try and whose turn it is: the
// transaction that takes a lock compares that its slots are free, so there are never more holders than a limit has numbers.
//
// While nobody here waits, it knows what this process has taken and what a refusal has shown. While somebody waits it follows all slots and turns
// with one watch (slots_watch.go), so that the end of an execution wakes the one whose turn it is, and no one else.
type slots struct {
	store  *core
	wanted chan struct{} // somebody waits, and nothing is followed
	seed   maphash.Seed  // so that two processes do not try the same slot first

	mu       sync.Mutex
	limits   map[string]*limit
	waiters  map[idem.ExecutionID]*slotWaiter
	again    map[idem.ExecutionID]*slotWaiter // those that have their lock, and are to be tried again
	followed bool                             // limits is what etcd has
	rules    map[string]struct{}              // of the limits that executions here have counted against
}

// limit is one limit, as far as it is known.
type limit struct {
	taken map[int]protocol.SlotHolder // in etcd
	asked map[int]idem.ExecutionID    // by claims of this process that are on their way
	freed map[int]int64               // when those that are free became so, as far as the watch has said
	line  map[idem.ExecutionID]*turnSeen
	// sorted is the line, the oldest first; nil = it is to be made anew.
	sorted []*turnSeen
}

type turnSeen struct {
	protocol.SlotHolder
	since int64
}

// slotWaiter is an execution in this process that waits for a slot.
type slotWaiter struct {
	lock idem.Lock     // as it waits
	news chan struct{} // closed when it may be its turn
	turn string        // the limit at which it has, or may have, its turn; "" = none. Of one that is to be tried again: the rule of the one that is full
	wake func()        // instead of news, for a line of parked executions
	idle int           // rounds since it was woken and did not come
}

func newSlots(s *core) *slots {
	return &slots{
		store: s, wanted: make(chan struct{}, 1), seed: maphash.MakeSeed(),
		limits: map[string]*limit{}, waiters: map[idem.ExecutionID]*slotWaiter{}, again: map[idem.ExecutionID]*slotWaiter{},
		rules: map[string]struct{}{},
	}
}

// size is how many slots a limit has; 0 = there is no such limit, any more.
func (s *core) size(route string, slot idem.Slot) int {
	if s.o.Limit == nil {
		return 0
	}
	return s.o.Limit(route, slot)
}

func (p *slots) ofLocked(name string) *limit {
	l := p.limits[name]
	if l == nil {
		l = &limit{taken: map[int]protocol.SlotHolder{}, asked: map[int]idem.ExecutionID{}, freed: map[int]int64{}, line: map[idem.ExecutionID]*turnSeen{}}
		p.limits[name] = l
	}
	return l
}

// tidyLocked forgets a limit of which nothing is known.
func (p *slots) tidyLocked(name string) {
	if l := p.limits[name]; l != nil && len(l.taken) == 0 && len(l.asked) == 0 && len(l.line) == 0 {
		delete(p.limits, name)
	}
}

// maxKnown bounds the limits of which something is known while nobody follows them: what others have there is not heard of again.
const maxKnown = 4096

// forgetSomeLocked makes room for what was read of other limits. What is forgotten costs a refusal.
func (p *slots) forgetSomeLocked() {
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

// size is at how many limits an execution has to have a slot.
func (p *slots) size(l *idem.Lock) (n int) {
	for _, slot := range l.Slots {
		if p.store.size(l.Route, slot) > 0 {
			n++
		}
	}
	return n
}

// coming is how an execution comes to a limit.
type coming int

const (
	comesLate     coming = iota // past the queue: after all who wait at the limit
	asHead                      // as the first one of a queue, in its turn
	forAnotherTry               // for another try: it came before who waits
)

// choose sets which slots l is to take, and reserves them here. full is the limit that has none for it; "" = they are chosen.
func (p *slots) choose(l *idem.Lock, comes coming) (full string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unchooseLocked(l)
	chosen := make([]idem.Slot, len(l.Slots))
	smallest := 0
	for i, slot := range l.Slots {
		most := p.store.size(l.Route, slot)
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

// unchoose takes back what was reserved for a claim that came to nothing.
func (p *slots) unchoose(l *idem.Lock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unchooseLocked(l)
	for _, slot := range l.Slots {
		if slot.N >= 0 {
			p.tellLocked(slot.Limit)
		}
	}
}

func (p *slots) unchooseLocked(l *idem.Lock) {
	for _, slot := range l.Slots {
		if in := p.limits[slot.Limit]; in != nil && in.asked[slot.N] == l.Execution {
			delete(in.asked, slot.N)
			p.tidyLocked(slot.Limit)
		}
	}
}

// took notes that l has got what was chosen for it.
func (p *slots) took(l *idem.Lock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.again, l.Execution)
	for _, slot := range l.Slots {
		if slot.N >= 0 {
			in := p.ofLocked(slot.Limit)
			in.taken[slot.N] = protocol.SlotHolder{Execution: l.Execution, Workflow: l.Scope.Workflow, Route: l.Route, Since: l.Revision}
			in.gone(l.Execution)
		}
	}
	p.unchooseLocked(l)
}

// oldest is the execution that has had a slot of a limit for longest; "" = none is known.
func (p *slots) oldest(name string) (id idem.ExecutionID) {
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

// freed is told of a lock that this process has nothing to do with any more. Where all is followed, the watch says what becomes of its slots.
func (p *slots) freed(l *idem.Lock) {
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

// knows reports whether all is followed.
func (p *slots) knows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.followed
}

// look reads how things stand around an execution that counts against limits, and these. Who waits there it reads only where nobody follows that:
// they may be many.
func (p *slots) look(ctx context.Context, k protocol.Keys, of []idem.Slot) (*protocol.State, error) {
	ops := protocol.LockRecordAndQueue(k)
	around, step := len(ops), 2
	if p.knows() {
		step = 1
	}
	for _, slot := range of {
		for _, prefix := range []string{p.store.layout.Taken(slot.Limit), p.store.layout.Line(slot.Limit)}[:step] {
			ops = append(ops, link.Read(clientv3.OpGet(prefix, clientv3.WithPrefix())))
		}
	}
	answers, revision, err := p.store.pool.ReadOps(ctx, ops)
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

// sawLocked notes a slot or a turn that is there. One that this release cannot read is somebody's, too.
func (p *slots) sawLocked(kv *mvccpb.KeyValue, slot bool) (name string) {
	prefix := p.store.layout.Turns()
	if slot {
		prefix = p.store.layout.Slots()
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
		p.ofLocked(name).come(&turnSeen{SlotHolder: holder, since: cmp.Or(holder.Since, kv.CreateRevision)})
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

// goneLocked notes a slot or a turn that is not there any more.
func (p *slots) goneLocked(kv *mvccpb.KeyValue, slot bool) (name string) {
	prefix := p.store.layout.Turns()
	if slot {
		prefix = p.store.layout.Slots()
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
		in.gone(idem.ExecutionID(rest))
	}
	p.tidyLocked(name)
	return name
}

// ask is at which limit it is not the turn of who waits yet, and whether it is in the line there; "" = it is its turn at all of them. Until all is
// followed nobody knows, and at is unknownLimit, as it is for what is paused. The waiter's news are closed, or its wake is called, when it is to ask again.
func (p *slots) ask(l *idem.Lock, wake func()) (at string, inLine bool, w *slotWaiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w = p.waiters[l.Execution]
	if w == nil {
		w = &slotWaiter{lock: *l, wake: wake}
		p.waiters[l.Execution] = w
	}
	w.news, w.idle = make(chan struct{}), 0
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
		most := p.store.size(l.Route, slot)
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

// freeOf is how many slots below most are free.
func (in *limit) freeOf(most int) int {
	free := most
	for n := range in.taken {
		if n < most {
			free--
		}
	}
	return free
}

// tellLocked wakes those of this process whose turn it is at a limit.
func (p *slots) tellLocked(name string) {
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

// openLocked is how many slots of a limit are free, by what those of this process say who wait there; ours is false where none does.
func (p *slots) openLocked(name string) (free int, ours bool) {
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
			if most := p.store.size(w.lock.Route, slot); most > 0 {
				return in.freeOf(most), true
			}
			return len(in.line), true // there is no such limit any more
		}
	}
	return 0, false
}

func (p *slots) wakeLocked(w *slotWaiter) {
	if w == nil {
		return
	}
	if w.wake != nil {
		w.wake()
		return
	}
	select {
	case <-w.news:
	default:
		close(w.news)
	}
}

// leave is for who waits for a slot no more. It returns the limit at which it may still have a turn; "" = none.
func (p *slots) leave(x idem.ExecutionID) (turn string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.waiters[x]
	if w == nil {
		return ""
	}
	delete(p.waiters, x)
	return w.turn
}

// leaveLine is leave, and gives up that turn.
func (p *slots) leaveLine(x idem.ExecutionID) {
	if turn := p.leave(x); turn != "" {
		p.dropTurn(turn, x)
	}
}

// pausesChanged lets those ask again that are paused now: each gives its turn to the next, and takes one again after the pause. What waits in a line of
// parked executions does so when that is looked at.
func (p *slots) pausesChanged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.waiters {
		if w.wake == nil && p.paused(&w.lock) {
			p.wakeLocked(w)
		}
	}
}

func (p *slots) paused(l *idem.Lock) bool { return p.store.pauses.of(l.Route, l.Scope.Workflow) != nil }

// turnOf is the limit at which an execution may have its turn; "" = none.
func (p *slots) turnOf(x idem.ExecutionID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.waiters[x]; w != nil {
		return w.turn
	}
	return ""
}

// begin lets an execution wait whose turn is taken with its place. at is the limit, as far as is known; "" = none has to be waited for.
func (p *slots) begin(l *idem.Lock) (at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	smallest := 0
	for _, slot := range l.Slots {
		in, most := p.limits[slot.Limit], p.store.size(l.Route, slot)
		if in == nil || most == 0 || in.freeOf(most) > len(in.line) || at != "" && most >= smallest {
			continue
		}
		at, smallest = slot.Limit, most
	}
	if at != "" {
		p.waiters[l.Execution] = &slotWaiter{lock: *l, news: make(chan struct{}), turn: at}
		link.Wake(p.wanted)
	}
	return at
}

// turned notes at which limit an execution has its turn.
func (p *slots) turned(x idem.ExecutionID, at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.waiters[x]; w != nil {
		w.turn = at
	}
}
