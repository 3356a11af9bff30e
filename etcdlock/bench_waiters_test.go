//go:build linux

package etcdlock

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/etcdlock/owned"
	"hooklock/idem"
	"hooklock/idem/guard"
)

// BenchmarkWaiters is what a delivery that waits costs this process: heap-B and stack-B are for
// each of 10 000, ten on each workflow, from the gate on. What belongs to its connection is there
// before the first reading: its goroutine and its request. The etcd is another process. Each of
// them must have run in the end, in the order of its place.
//
//	go test -run '^$' -bench Waiters -benchtime 1x ./etcdlock
func BenchmarkWaiters(b *testing.B) {
	const workflows, each = 1000, 10
	for range b.N {
		s := openStore(b, Options{Endpoints: []string{startMember(b).endpoint}, SessionTTL: time.Minute})
		holders := make([]*owned.Lock, workflows)
		for w := range holders {
			holders[w] = mustClaim(b, s, lockFor(fmt.Sprintf("workflow %d", w), "holds"), 0)
		}
		c := newQueuers(b, s, workflows, each)
		var before, after runtime.MemStats
		readMemory(&before)
		start := time.Now()
		close(c.gate)
		settled(b, s, workflows*each)
		b.ReportMetric(time.Since(start).Seconds(), "s-to-wait")
		readMemory(&after)
		const n = float64(workflows * each)
		b.ReportMetric((float64(after.HeapAlloc)-float64(before.HeapAlloc))/n, "heap-B/waiter")
		b.ReportMetric((float64(after.StackInuse)-float64(before.StackInuse))/n, "stack-B/waiter")
		start = time.Now()
		releaseAll(b, holders)
		c.all.Wait()
		b.ReportMetric(n/time.Since(start).Seconds(), "ran/s")
		if int(c.ran.Load()) != workflows*each {
			b.Fatalf("%d of %d ran", c.ran.Load(), workflows*each)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// queuers are deliveries at the gate, each on a goroutine as a connection has one.
type queuers struct {
	gate chan struct{}
	ran  atomic.Int32
	all  sync.WaitGroup
}

func newQueuers(b *testing.B, s *Store, workflows, each int) *queuers {
	b.Helper()
	c := &queuers{gate: make(chan struct{})}
	g := guard.New(guard.Options{
		Ledger: s, Base: context.Background(), RequestTimeout: time.Minute, Cache: guard.NewCache(0),
		MaxWaiting: func() int {
			return workflows * each
		},
	})
	policy := &idem.Policy{
		Route: "r", Strategy: idem.Wait, WaitTimeout: 10 * patience, MaxWaiting: each, InFlight: idem.Conflict,
		Idempotency: true,
		Retention:   time.Hour, OnMismatch: idem.MismatchReject, OnUnknown: idem.UnknownRetry,
	}
	for w := range workflows {
		for i := range each {
			l := lockFor(fmt.Sprintf("workflow %d", w), fmt.Sprintf("event %d", i))
			r := &idem.Request{Scope: l.Scope, EventID: l.EventID, Policy: policy, TraceParent: l.TraceParent}
			c.all.Go(func() {
				<-c.gate
				a := g.Admit(context.Background(), r)
				if a.Execution == nil {
					b.Errorf("%s: %s %v", r.Scope.Key, a.Decision, a.Err)
					return
				}
				c.ran.Add(1)
				a.Execution.End(guard.Tried{})
			})
		}
	}
	return c
}

func readMemory(m *runtime.MemStats) {
	for range 2 {
		runtime.GC()
	}
	debug.FreeOSMemory()
	runtime.ReadMemStats(m)
}
