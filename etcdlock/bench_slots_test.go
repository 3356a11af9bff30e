//go:build linux

package etcdlock

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"hooklock/etcdlock/ledgertest"
	"hooklock/idem"
)

// BenchmarkSlotsThatBind keeps 256 executions waiting for 20 slots, each of a workflow of its own,
// through two Stores; and beside it, in turns, as many for the locks of 20 workflows. Each runs for
// as long as the name says. busy and locks-busy are which part of the time slots and locks were
// taken by something that ran, from when the first 20 have ended, so that as many wait as are to,
// until 100 more have; gap-ms is for how long a slot was taken by nothing that ran, between two.
// All are the median over the turns.
//
//	go test -run '^$' -bench SlotsThatBind -benchtime 5x ./etcdlock
func BenchmarkSlotsThatBind(b *testing.B) {
	for _, runs := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond} {
		b.Run(runs.String(), func(b *testing.B) { benchBinding(b, runs) })
	}
}

// ran is when something ran.
type ran struct{ from, to time.Time }

const bindingSlots, bindingWaiters, bindingEach = 20, 256, 5

func benchBinding(b *testing.B, runs time.Duration) {
	e := startMember(b)
	o := Options{Endpoints: []string{e.endpoint}, Limit: func(string, idem.Slot) int { return bindingSlots }}
	stores := []*Store{openStore(b, o), openStore(b, o)}
	var slots, locks []float64
	for n := range b.N {
		slots = append(slots, busy(whileTheyWait(b, stores, runs, func(worker, i int) idem.Lock {
			return limitedLock(fmt.Sprintf("s%d-%d-%d", n, worker, i), "a")
		})))
		locks = append(locks, busy(whileTheyWait(b, stores, runs, func(worker, i int) idem.Lock {
			return lockFor(fmt.Sprintf("l%d-%d", n, worker%bindingSlots), fmt.Sprintf("%d-%d", worker, i))
		})))
	}
	slices.Sort(slots)
	slices.Sort(locks)
	b.ReportMetric(slots[b.N/2], "busy")
	b.ReportMetric(locks[b.N/2], "locks-busy")
	b.ReportMetric((1/slots[b.N/2]-1)*runs.Seconds()*1000, "gap-ms")
	b.ReportMetric(0, "ns/op") // of no meaning
}

// busy is which part of the time as many as there are slots were at work.
func busy(all []ran) float64 {
	slices.SortFunc(all, func(a, b ran) int { return a.to.Compare(b.to) })
	from, to := all[bindingSlots-1].to, all[(1+bindingEach)*bindingSlots-1].to
	var work time.Duration
	for _, r := range all {
		if begun, ended := r.from, r.to; begun.Before(to) && ended.After(from) {
			if begun.Before(from) {
				begun = from
			}
			if ended.After(to) {
				ended = to
			}
			work += ended.Sub(begun)
		}
	}
	return work.Seconds() / bindingSlots / to.Sub(from).Seconds()
}

// whileTheyWait is what ran while so many waited. Those who still wait in the end come through at
// once, so that the next turn begins with nobody.
func whileTheyWait(b *testing.B, stores []*Store, runs time.Duration, lock func(worker, i int) idem.Lock) (all []ran) {
	b.Helper()
	var mu sync.Mutex
	left := (2 + bindingEach) * bindingSlots
	over := make(chan struct{})
	var wg sync.WaitGroup
	for worker := range bindingWaiters {
		wg.Go(func() {
			for i := 0; ; i++ {
				l, s := lock(worker, i), stores[worker%2]
				p, seen, err := s.Enqueue(within(b, patience), l, 0, 0)
				if err != nil || p == nil {
					b.Errorf("%+v %v", seen, err)
					return
				}
				held, err := ledgertest.InTurn(within(b, patience),
					&ledgertest.InQueue{QueueEntry: p, Ledger: s, Lock: l}, l)
				if err != nil {
					b.Error(err)
					return
				}
				r := ran{from: time.Now()}
				select {
				case <-time.After(runs): // the work
				case <-over:
				}
				r.to = time.Now()
				if _, err := held.Settle(within(b, patience), success("")); err != nil {
					b.Error(err)
				}
				mu.Lock()
				if left--; left == 0 {
					close(over)
				}
				done := left <= 0
				if all = append(all, r); done {
					mu.Unlock()
					return
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return all
}
