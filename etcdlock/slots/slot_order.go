package slots

import (
	"cmp"
	"slices"
	"strings"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// limit is one limit, as far as it is known: which slot waiter is next, and which slot it takes.
type limit struct {
	taken   map[int]protocol.SlotHolder // in etcd
	asked   map[int]idem.ExecutionID    // by claims of this process that are under way
	freed   map[int]int64               // when those that are free became so, as far as the watch has reported
	waiters map[idem.ExecutionID]*slotWaiter
	// sorted is the slot waiters, the oldest first; nil = it has to be made anew.
	sorted []*slotWaiter
}

type slotWaiter struct {
	protocol.SlotHolder
	since int64
}

func newLimit() *limit {
	return &limit{taken: map[int]protocol.SlotHolder{}, asked: map[int]idem.ExecutionID{}, freed: map[int]int64{},
		waiters: map[idem.ExecutionID]*slotWaiter{}}
}

// clear forgets what is in etcd.
func (in *limit) clear() {
	in.taken, in.freed, in.waiters, in.sorted = map[int]protocol.SlotHolder{}, map[int]int64{},
		map[idem.ExecutionID]*slotWaiter{}, nil
}

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

// isFree reports whether slot n seems free: no execution has it, and no claim of this process asks
// for it.
func (in *limit) isFree(n int) bool {
	_, taken := in.taken[n]
	_, asked := in.asked[n]
	return !taken && !asked
}

// freeAt returns the free slot for the waiter with so many before it; -1 = there is none. The slot
// that has been free for longest goes to the oldest: so two processes that do not know the same
// slots yet do not give one of them to two waiters.
func (in *limit) freeAt(rank, most int) int {
	var since []int
	for n := range most {
		switch {
		case !in.isFree(n):
		case in.freed[n] != 0:
			since = append(since, n)
		case rank == 0:
			return n
		default:
			rank--
		}
	}
	if rank >= len(since) {
		return -1
	}
	slices.SortFunc(since, func(a, b int) int { return cmp.Compare(in.freed[a], in.freed[b]) })
	return since[rank]
}

// waitersBefore returns how many of the next n waiters get a slot before x, besides those that take
// one just now.
func (in *limit) waitersBefore(x idem.ExecutionID, n int) (before int) {
	if len(in.waiters) == 0 {
		return 0
	}
	taking := map[idem.ExecutionID]bool{}
	for _, other := range in.asked {
		taking[other] = true
	}
	for _, other := range in.nextWaiters(n + len(taking)) {
		if other == x {
			break
		}
		if !taking[other] {
			before++
		}
	}
	return before
}

// isNext reports whether x would get one of so many slots now; there: it is a slot waiter.
func (in *limit) isNext(x idem.ExecutionID, most int) (next, there bool) {
	room := in.freeOf(most)
	for n := range in.asked {
		if _, taken := in.taken[n]; n < most && !taken {
			room--
		}
	}
	return room > 0 && room > in.waitersBefore(x, most), in.waiters[x] != nil
}

// nextWaiters returns the next n slot waiters: a workflow that has no slot comes before one that
// has, and one with fewer before one with more, its waiters that come first included; then the
// oldest queue entry.
func (in *limit) nextWaiters(n int) (next []idem.ExecutionID) {
	n = min(n, len(in.waiters))
	if n <= 0 {
		return nil
	}
	if in.sorted == nil {
		for _, t := range in.waiters {
			in.sorted = append(in.sorted, t)
		}
		slices.SortFunc(in.sorted, compareAges)
	}
	for level := 0; level <= len(in.taken)+len(in.waiters); level++ {
		has := map[string]int{}
		for _, holder := range in.taken {
			has[holder.Workflow]++
		}
		for _, t := range in.sorted {
			if has[t.Workflow] == level {
				if next = append(next, t.Execution); len(next) == n {
					return next
				}
			}
			has[t.Workflow]++
		}
	}
	return next
}

func compareAges(a, b *slotWaiter) int {
	return cmp.Or(cmp.Compare(a.since, b.since), strings.Compare(string(a.Execution), string(b.Execution)))
}

// addWaiter and removeWaiter keep the slot waiters sorted.
func (in *limit) addWaiter(t *slotWaiter) {
	in.removeWaiter(t.Execution)
	in.waiters[t.Execution] = t
	if in.sorted != nil {
		at, _ := slices.BinarySearchFunc(in.sorted, t, compareAges)
		in.sorted = slices.Insert(in.sorted, at, t)
	}
}

func (in *limit) removeWaiter(x idem.ExecutionID) {
	t := in.waiters[x]
	if t == nil {
		return
	}
	delete(in.waiters, x)
	if at, there := slices.BinarySearchFunc(in.sorted, t, compareAges); there {
		in.sorted = append(in.sorted[:at:at], in.sorted[at+1:]...)
	}
}
