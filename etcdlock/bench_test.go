//go:build linux

package etcdlock

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"golang.org/x/sys/unix"

	"hooklock/etcdlock/etcdtest"
)

// BenchmarkClaimSettle is one claim and one settle for each operation, each on a workflow of its own, beside Lock and Unlock of
// etcd's own mutex, which keeps no record, and beside two bare puts. Run all of it in one go: the ratios count, not the rates.
func BenchmarkClaimSettle(b *testing.B) {
	for _, parallel := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("hooklock/%d", parallel), func(b *testing.B) { benchHooklock(b, parallel) })
		b.Run(fmt.Sprintf("mutex/%d", parallel), func(b *testing.B) { benchMutex(b, parallel) })
		b.Run(fmt.Sprintf("puts/%d", parallel), func(b *testing.B) { benchPuts(b, parallel) })
	}
}

// spread runs b.N operations on parallel goroutines.
func spread(b *testing.B, parallel int, f func(worker, n int) error) {
	b.Helper()
	var wg sync.WaitGroup
	before := cpuTime(b)
	b.ResetTimer()
	for worker := range parallel {
		wg.Go(func() {
			for n := worker; n < b.N; n += parallel {
				if err := f(worker, n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// cpuTime is what this process has used, the etcd in it included. It says more than the rate where the machine is shared.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func benchHooklock(b *testing.B, parallel int) {
	e := etcdtest.StartSynced(b)
	s := openStore(b, Options{Endpoints: []string{e.Endpoint}})
	ctx := context.Background()
	if _, err := mustClaim(b, s, lockFor("first", "one"), 0).Settle(ctx, success("ok")); err != nil { // brings the bucket
		b.Fatal(err)
	}
	spread(b, parallel, func(_, n int) error {
		held, seen, err := s.Claim(ctx, lockFor(fmt.Sprintf("w%d", n), "one"), 0)
		if err != nil || held == nil {
			return fmt.Errorf("claim: %+v %w", seen, err)
		}
		_, err = held.Settle(ctx, success("ok"))
		return err
	})
}

func benchMutex(b *testing.B, parallel int) {
	e := etcdtest.StartSynced(b)
	session, err := concurrency.NewSession(e.Client, concurrency.WithTTL(15))
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	ctx := context.Background()
	spread(b, parallel, func(_, n int) error {
		m := concurrency.NewMutex(session, fmt.Sprintf("/bench/w%d", n))
		if err := m.Lock(ctx); err != nil {
			return err
		}
		return m.Unlock(ctx)
	})
}

func benchPuts(b *testing.B, parallel int) {
	e := etcdtest.StartSynced(b)
	lease, err := e.Client.Grant(context.Background(), int64((5 * time.Minute).Seconds()))
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	spread(b, parallel, func(_, n int) error {
		for _, kind := range []string{"lock", "record"} {
			if _, err := e.Client.Put(ctx, fmt.Sprintf("/bench/%s/w%d", kind, n), "a value", clientv3.WithLease(lease.ID)); err != nil {
				return err
			}
		}
		return nil
	})
}
