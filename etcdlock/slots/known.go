package slots

import (
	"cmp"
	"hash/maphash"
	"math"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// known is what is known of the limits. It is not safe for concurrent use.
type known struct {
	layout   protocol.Layout
	options  *Options     // for the sizes
	seed     maphash.Seed // so that two processes do not try the same slot first
	limits   map[string]*limit
	followed bool // it is what etcd has
}

func (k *known) ensureLimit(name string) *limit {
	l := k.limits[name]
	if l == nil {
		l = newLimit()
		k.limits[name] = l
	}
	return l
}

// dropIfEmpty forgets a limit of which nothing is known.
func (k *known) dropIfEmpty(name string) {
	if l := k.limits[name]; l != nil && len(l.taken) == 0 && len(l.asked) == 0 && len(l.waiters) == 0 {
		delete(k.limits, name)
	}
}

// maxKnown bounds the limits that are known while they are not followed: changes by other processes
// are not seen there.
const maxKnown = 4096

// forgetSome makes room for what was read of other limits. A forgotten limit costs a refusal.
func (k *known) forgetSome() {
	if k.followed || len(k.limits) < maxKnown {
		return
	}
	for name, in := range k.limits {
		if len(in.asked) == 0 {
			delete(k.limits, name)
		}
		if len(k.limits) <= maxKnown/2 {
			return
		}
	}
}

// forgetAll drops what etcd has, which is to be read anew.
func (k *known) forgetAll() {
	for name, in := range k.limits {
		in.clear()
		k.dropIfEmpty(name)
	}
}

// Arrival is how an execution comes to a limit.
type Arrival int

// How executions come to a limit.
const (
	Late       Arrival = iota // past the queue: after all slot waiters
	AsHead                    // as the head of a queue, if it is next
	AnotherTry                // for another try: it came before the slot waiters
)

// chooseSlots sets which slots l is to take, and reserves them. It returns the limit that has none
// for it, the smallest one if there are more; "" = they are chosen.
func (k *known) chooseSlots(l *idem.Lock, comes Arrival) (full string) {
	chosen := make([]idem.Slot, len(l.Slots))
	smallest := 0
	for i, slot := range l.Slots {
		most := k.options.Size(l.Route, slot)
		slot.Index = -1
		if chosen[i] = slot; most == 0 {
			continue
		}
		in := k.ensureLimit(slot.LimitName)
		if chosen[i].Index = k.findFreeSlot(in, l.Execution, comes, most); chosen[i].Index < 0 &&
			(full == "" || most < smallest) {
			full, smallest = slot.LimitName, most
		}
		k.dropIfEmpty(slot.LimitName)
	}
	l.Slots = chosen
	for i := range chosen {
		if full != "" {
			chosen[i].Index = -1
		} else if chosen[i].Index >= 0 {
			k.ensureLimit(chosen[i].LimitName).asked[chosen[i].Index] = l.Execution
		}
	}
	return full
}

// findFreeSlot returns a free slot for x, if x is next; -1 = there is none.
func (k *known) findFreeSlot(in *limit, x idem.ExecutionID, comes Arrival, most int) int {
	if len(in.waiters) > 0 && comes == Late {
		return -1
	}
	rank := 0
	if comes != AnotherTry {
		rank = in.waitersBefore(x, most)
	}
	if len(in.waiters) == 0 {
		first := int(maphash.String(k.seed, string(x)) % uint64(most))
		for i := range most {
			if n := (first + i) % most; in.isFree(n) {
				return n
			}
		}
		return -1
	}
	return in.freeAt(rank, most)
}

// unchooseSlots takes back what chooseSlots has reserved.
func (k *known) unchooseSlots(l *idem.Lock) {
	for _, slot := range l.Slots {
		if in := k.limits[slot.LimitName]; in != nil && in.asked[slot.Index] == l.Execution {
			delete(in.asked, slot.Index)
			k.dropIfEmpty(slot.LimitName)
		}
	}
}

// takeSlots notes that l has the slots that were chosen for it.
func (k *known) takeSlots(l *idem.Lock) {
	for _, slot := range l.Slots {
		if slot.Index >= 0 {
			in := k.ensureLimit(slot.LimitName)
			in.taken[slot.Index] = protocol.SlotHolder{Execution: l.Execution, Workflow: l.Scope.Workflow,
				Route: l.Route,
				Since: l.Revision}
			in.removeWaiter(l.Execution)
		}
	}
	k.unchooseSlots(l)
}

// releaseSlots notes that l has no slots any more. While all is followed, the watch reports that.
func (k *known) releaseSlots(l *idem.Lock) {
	for _, slot := range l.Slots {
		if in := k.limits[slot.LimitName]; in != nil && !k.followed && in.taken[slot.Index].Execution == l.Execution {
			delete(in.taken, slot.Index)
			k.dropIfEmpty(slot.LimitName)
		}
	}
}

// oldestHolder returns the execution that has had a slot of a limit for longest; "" = none is
// known.
func (k *known) oldestHolder(name string) (id idem.ExecutionID) {
	l := k.limits[name]
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

// fullFor returns the smallest limit whose free slots are all waited for already; "" = l has to
// wait for none, as far as is known.
func (k *known) fullFor(l *idem.Lock) (at string) {
	smallest := 0
	for _, slot := range l.Slots {
		in, most := k.limits[slot.LimitName], k.options.Size(l.Route, slot)
		if in == nil || most == 0 || in.freeOf(most) > len(in.waiters) || at != "" && most >= smallest {
			continue
		}
		at, smallest = slot.LimitName, most
	}
	return at
}

// notNext returns the smallest limit at which l is not next yet, and whether it is a slot waiter
// there; "" = it is next at all of them.
func (k *known) notNext(l *idem.Lock) (at string, inLine bool) {
	smallest := 0
	for _, slot := range l.Slots {
		most := k.options.Size(l.Route, slot)
		if most == 0 {
			continue
		}
		in := k.ensureLimit(slot.LimitName)
		next, there := in.isNext(l.Execution, most)
		if !next && (at == "" || most < smallest) {
			at, smallest, inLine = slot.LimitName, most, there
		}
		k.dropIfEmpty(slot.LimitName)
	}
	return at, inLine
}

// hasRoom reports whether each limit of l has a free slot; counts: the limit of that name is one of
// them, or name is "".
func (k *known) hasRoom(l *idem.Lock, name string) (counts, room bool) {
	counts, room = name == "", true
	for _, slot := range l.Slots {
		counts = counts || slot.LimitName == name
		most, in := k.options.Size(l.Route, slot), k.limits[slot.LimitName]
		room = room && (most == 0 || in == nil || in.freeOf(most) > 0)
	}
	return counts, room
}

// openTo returns how many slots of a limit are free, by the size that l knows. counts is false if l
// does not count against it.
func (k *known) openTo(l *idem.Lock, name string) (free int, counts bool) {
	for _, slot := range l.Slots {
		if slot.LimitName != name {
			continue
		}
		in := k.limits[name]
		if most := k.options.Size(l.Route, slot); most > 0 {
			return in.freeOf(most), true
		}
		return len(in.waiters), true // there is no such limit any more
	}
	return 0, false
}

// splitKey splits the key of a slot, or of a slot waiter.
func (k *known) splitKey(kv *mvccpb.KeyValue, slot bool) (name, rest string, ok bool) {
	prefix := k.layout.All(protocol.KindSlotWaiters)
	if slot {
		prefix = k.layout.All(protocol.KindSlots)
	}
	return protocol.SlotAt(strings.TrimPrefix(string(kv.Key), prefix))
}

// noteFound notes a slot or a slot waiter that exists. One that this release cannot read counts,
// too.
func (k *known) noteFound(kv *mvccpb.KeyValue, slot bool) (name string) {
	name, rest, ok := k.splitKey(kv, slot)
	if !ok {
		return ""
	}
	holder, err := protocol.DecodeSlot(kv.Value)
	if !slot {
		if err != nil {
			holder.Execution = idem.ExecutionID(rest)
		}
		k.ensureLimit(name).addWaiter(&slotWaiter{SlotHolder: holder, since: cmp.Or(holder.Since, kv.CreateRevision)})
		return name
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return ""
	}
	in := k.ensureLimit(name)
	holder.Since = kv.CreateRevision
	in.taken[n] = holder
	delete(in.freed, n)
	return name
}

// noteGone notes a slot or a slot waiter that does not exist any more.
func (k *known) noteGone(kv *mvccpb.KeyValue, slot bool) (name string) {
	name, rest, ok := k.splitKey(kv, slot)
	in := k.limits[name]
	if !ok || in == nil {
		return ""
	}
	if n, err := strconv.Atoi(rest); slot && err == nil {
		delete(in.taken, n)
		in.freed[n] = kv.ModRevision
	} else {
		in.removeWaiter(idem.ExecutionID(rest))
	}
	k.dropIfEmpty(name)
	return name
}
