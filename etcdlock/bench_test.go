//go:build linux

package etcdlock

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"golang.org/x/sys/unix"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// BenchmarkClaimSettle is a claim and a settle, each on a workflow of its own, beside Lock and
// Unlock of etcd's own mutex, which keeps no record, and beside two bare puts. They take turns on
// one etcd, which syncs its disk; an operation of the benchmark is one turn of each. The ratios
// count, not the rates: x-mutex is how many times as many pairs a second as the mutex makes, x-puts
// how many times the latency of the two puts, both as the median over the turns. The etcd is a
// process of its own, as it is for users, so that the CPU of the two sides is told apart.
//
//	go test -run '^$' -bench ClaimSettle -benchtime 20x ./etcdlock
func BenchmarkClaimSettle(b *testing.B) {
	for _, parallel := range []int{1, 64, 256} {
		b.Run(fmt.Sprint(parallel), func(b *testing.B) { benchTurns(b, parallel) })
	}
}

// turn is what one kind took in one turn, for each pair: of time, and of CPU on both sides.
type turn struct{ wall, client, server time.Duration }

func (t turn) cpu() time.Duration { return t.client + t.server }

func benchTurns(b *testing.B, parallel int) {
	e := startMember(b)
	pairs := max(100, 8*parallel) // in a turn
	turns := inTurns(b, e, parallel, pairs, benchHooklock(b, e), benchMutex(b, e), benchPuts(b, e))
	for kind, name := range []string{"hooklock", "mutex", "puts"} {
		b.ReportMetric(1/median(turns[kind], func(i int) float64 { return turns[kind][i].wall.Seconds() }), name+"/s")
		b.ReportMetric(median(turns[kind], func(i int) float64 {
			return float64(turns[kind][i].client.Microseconds())
		}), name+"-client-us")
		b.ReportMetric(median(turns[kind], func(i int) float64 {
			return float64(turns[kind][i].server.Microseconds())
		}), name+"-server-us")
	}
	b.ReportMetric(median(turns[0], func(i int) float64 {
		return turns[1][i].wall.Seconds() / turns[0][i].wall.Seconds()
	}), "x-mutex")
	b.ReportMetric(median(turns[0], func(i int) float64 {
		return turns[0][i].wall.Seconds() / turns[2][i].wall.Seconds()
	}), "x-puts")
	b.ReportMetric(median(turns[0], func(i int) float64 {
		return turns[1][i].cpu().Seconds() / turns[0][i].cpu().Seconds()
	}), "x-mutex-cpu")
}

func median[T any](turns []T, of func(i int) float64) float64 {
	values := make([]float64, len(turns))
	for i := range turns {
		values[i] = of(i)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// spread makes pairs of one kind on parallel goroutines, and says what one took.
func spread(b *testing.B, e *benchMember, parallel, round, pairs int, f func(n int) error) turn {
	b.Helper()
	var wg sync.WaitGroup
	client, server, start := cpuTime(b), e.cpu(b), time.Now()
	for worker := range parallel {
		wg.Go(func() {
			for n := worker; n < pairs; n += parallel {
				if err := f((round+1)*pairs + n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	n := time.Duration(pairs)
	return turn{time.Since(start) / n, (cpuTime(b) - client) / n, (e.cpu(b) - server) / n}
}

// cpuTime is what this process has used. It says more than the rate where the machine is shared.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func benchHooklock(b *testing.B, e *benchMember) func(n int) error {
	b.Helper()
	s := openStore(b, Options{Endpoints: []string{e.endpoint}})
	return claimAndSettle(s, func(n int) idem.Lock { return lockFor(fmt.Sprintf("w%d", n), "one") })
}

func benchMutex(b *testing.B, e *benchMember) func(n int) error {
	b.Helper()
	client := etcdtest.Dial(b, e.endpoint)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(15))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = session.Close() })
	ctx := context.Background()
	return func(n int) error {
		m := concurrency.NewMutex(session, fmt.Sprintf("/bench/w%d", n))
		if err := m.Lock(ctx); err != nil {
			return err
		}
		return m.Unlock(ctx)
	}
}

func benchPuts(b *testing.B, e *benchMember) func(n int) error {
	b.Helper()
	client := etcdtest.Dial(b, e.endpoint)
	lease, err := client.Grant(context.Background(), int64((5 * time.Minute).Seconds()))
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	return func(n int) error {
		for _, kind := range []string{"lock", "record"} {
			if _, err := client.Put(ctx, fmt.Sprintf("/bench/%s/w%d", kind, n), "a value",
				clientv3.WithLease(lease.ID)); err != nil {
				return err
			}
		}
		return nil
	}
}
