//go:build linux

package etcdlock

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/idem"
)

// BenchmarkSlotsThatBind keeps 256 executions waiting for 20 slots, each of a workflow of its own, through two Stores; and beside it, in turns, as
// many for the locks of 20 workflows. busy and locks-busy are which part of the time slots and locks were taken by something that ran, for as long as
// the name says. An operation is five executions for each slot, and for each lock.
//
//	go test -run '^$' -bench SlotsThatBind -benchtime 5x ./etcdlock
func BenchmarkSlotsThatBind(b *testing.B) {
	for _, runs := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond} {
		b.Run(runs.String(), func(b *testing.B) { benchBinding(b, runs) })
	}
}

func benchBinding(b *testing.B, runs time.Duration) {
	const most, waiting, each = 20, 256, 5
	e := startMember(b)
	o := Options{Endpoints: []string{e.endpoint}, Limit: func(string, idem.Slot) int { return most }}
	stores := []*Store{openStore(b, o), openStore(b, o)}
	through := func(round string, lock func(worker, i int) idem.Lock) time.Duration {
		var left atomic.Int64
		left.Store(each * most)
		over := make(chan time.Time, 1)
		begun := make(chan time.Time, 1)
		var wg sync.WaitGroup
		for worker := range waiting {
			wg.Go(func() {
				for i := 0; left.Load() > 0; i++ {
					l, s := lock(worker, i), stores[worker%2]
					p, seen, err := s.Enqueue(within(b, patience), l, 0, 0)
					if err != nil || p == nil {
						b.Errorf("%s: %+v %v", round, seen, err)
						return
					}
					held, err := inTurn(within(b, patience), p.(*Place), l)
					if err != nil {
						b.Error(err)
						return
					}
					select {
					case begun <- time.Now():
					default:
					}
					if left.Load() > 0 {
						<-time.After(runs) // the work
					}
					if _, err := held.Settle(within(b, patience), success("")); err != nil {
						b.Error(err)
					}
					if left.Add(-1) == 0 {
						over <- time.Now()
					}
				}
			})
		}
		from := <-begun
		took := (<-over).Sub(from)
		wg.Wait() // those who still wait come through, so that the next round begins with nobody
		return took
	}
	var slots, locks []turn
	for n := range b.N {
		slots = append(slots, turn{wall: through("slots", func(worker, i int) idem.Lock {
			return limitedLock(fmt.Sprintf("s%d-%d-%d", n, worker, i), "a")
		})})
		locks = append(locks, turn{wall: through("locks", func(worker, i int) idem.Lock {
			return lockFor(fmt.Sprintf("l%d-%d", n, worker%most), fmt.Sprintf("%d-%d", worker, i))
		})})
	}
	busy := func(of []turn) float64 {
		return each * runs.Seconds() / median(of, func(i int) float64 { return of[i].wall.Seconds() })
	}
	b.ReportMetric(busy(slots), "busy")
	b.ReportMetric(busy(locks), "locks-busy")
	b.ReportMetric(0, "ns/op") // of no meaning
}
