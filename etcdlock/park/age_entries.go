package park

import (
	"container/heap"
	"slices"
	"time"

	"hooklock/idem"
)

// ages are parked executions by when they were parked, as a heap. Those that have ended are dropped
// when they come first, or when they are too many: while the first one waits for a person for days,
// no other comes first.
type ages []aged

// fewAges may have ended, besides as many as there are parked executions.
const fewAges = 500

type aged struct {
	since time.Time
	id    idem.ExecutionID
}

func (a *ages) Len() int           { return len(*a) }
func (a *ages) Less(i, j int) bool { return (*a)[i].since.Before((*a)[j].since) }
func (a *ages) Swap(i, j int)      { (*a)[i], (*a)[j] = (*a)[j], (*a)[i] }
func (a *ages) Push(x any)         { *a = append(*a, x.(aged)) }
func (a *ages) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}

// oldestParked returns when the oldest one was parked of those that parked still reports as such;
// zero = there is none.
func (a *ages) oldestParked(parked func(aged) bool) time.Time {
	for len(*a) > 0 {
		if first := (*a)[0]; parked(first) {
			return first.since
		}
		heap.Pop(a)
	}
	return time.Time{}
}

// addAge adds one, and drops those that have ended if there are many of them. events is how many
// executions are parked.
func (a *ages) addAge(one aged, events int, parked func(aged) bool) {
	heap.Push(a, one)
	if len(*a) <= 2*events+fewAges {
		return
	}
	kept := make(map[idem.ExecutionID]bool, events)
	*a = slices.DeleteFunc(*a, func(one aged) bool {
		over := kept[one.id] || !parked(one)
		kept[one.id] = kept[one.id] || !over
		return over
	})
	heap.Init(a)
}
