//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
)

// flood is a load of parks beside locks: each puts a place in line and, in the same transaction, a
// body, and deletes both when the next one of its writer is there.
type flood struct {
	name string
	body int // bytes; 0 = the place alone, as where the body is in a folder or in S3
	rate int // parks a second, of all writers; 0 = as many as they can
}

const (
	floodWriters = 32
	lockWorkers  = 8
	lockTime     = 2 * time.Second // of one flood in one round
)

// BenchmarkLocksBesideBodies says how much slower a lock is (its median, acquire to release) beside
// a flood of parks whose bodies are in etcd, than beside the same flood without bodies. An
// operation is a round: each flood for two seconds, on one etcd that syncs its disk. It is how the
// default of park_store.inline was chosen, and is not part of `make bench`:
//
//	go test -run '^$' -bench LocksBesideBodies -benchtime 5x ./test/bench
func BenchmarkLocksBesideBodies(b *testing.B) {
	etcd := etcdtest.StartSynced(b)
	store, err := etcdlock.Open(etcdlock.Options{Endpoints: []string{etcd.Endpoint}, Prefix: "/bench", Holder: "bench"})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close(context.Background()) }()
	if err := store.WaitReady(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, rate := range []int{300, 600, 0} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) { benchFloods(b, etcd, store, rate) })
	}
}

func benchFloods(b *testing.B, etcd *etcdtest.Etcd, store *etcdlock.Store, rate int) {
	floods := []flood{{"place", 0, rate}}
	for _, kib := range []int{2, 16, 32, 64} {
		floods = append(floods, flood{fmt.Sprintf("%dKiB", kib), kib << 10, rate})
	}
	medians, parks := make([][]float64, len(floods)), make([]int64, len(floods))
	var alone []float64
	for n := range b.N {
		alone = append(alone, locks(b, store).Seconds())
		for i := range floods {
			f := (n + i) % len(floods)
			p50, parked := beside(b, etcd, store, floods[f])
			medians[f] = append(medians[f], p50.Seconds())
			parks[f] += parked
		}
	}
	b.ReportMetric(1000*middle(alone), "alone-ms")
	for f := range floods {
		ratios := make([]float64, b.N)
		for n := range ratios {
			ratios[n] = medians[f][n] / medians[0][n]
		}
		b.ReportMetric(1000*middle(medians[f]), floods[f].name+"-ms")
		b.ReportMetric(middle(ratios), floods[f].name+"-x")
		b.ReportMetric(float64(parks[f])/lockTime.Seconds()/float64(b.N), floods[f].name+"-parks/s")
	}
	b.ReportMetric(0, "ns/op") // of no meaning
}

func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// beside measures locks while f goes on.
func beside(b *testing.B, etcd *etcdtest.Etcd, store *etcdlock.Store, f flood) (p50 time.Duration, parked int64) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var writers sync.WaitGroup
	var count atomic.Int64
	for writer := range floodWriters {
		writers.Go(func() {
			if err := f.park(ctx, etcd.Client, writer, &count); ctx.Err() == nil {
				b.Error(err)
			}
		})
	}
	p50 = locks(b, store)
	cancel()
	parked = count.Load()
	writers.Wait()
	etcd.Compact(b) // or what was deleted fills the store
	return p50, parked
}

// park parks until ctx ends.
func (f flood) park(ctx context.Context, client *clientv3.Client, writer int, count *atomic.Int64) error {
	pace := time.NewTicker(max(time.Microsecond, floodWriters*time.Second/time.Duration(max(f.rate, 1))))
	defer pace.Stop()
	body := string(make([]byte, f.body))
	for n := 0; ; n++ {
		if f.rate > 0 {
			select {
			case <-pace.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		place, bytes := fmt.Sprintf("/parks/queue/%d/%d", writer, n%2),
			fmt.Sprintf("/parks/requests/%d/%d", writer, n%2)
		earlier := fmt.Sprintf("%d/%d", writer, (n+1)%2)
		ops := []clientv3.Op{
			clientv3.OpPut(place, string(make([]byte, 700))),
			clientv3.OpDelete("/parks/queue/" + earlier), clientv3.OpDelete("/parks/requests/" + earlier),
		}
		if f.body > 0 {
			ops = append(ops, clientv3.OpPut(bytes, body))
		}
		if _, err := client.Txn(ctx).Then(ops...).Commit(); err != nil {
			return err
		}
		count.Add(1)
	}
}

// locks is the median time of a lock, from asking for it until it is free again, with several at
// once.
func locks(b *testing.B, store *etcdlock.Store) time.Duration {
	b.Helper()
	end := time.Now().Add(lockTime)
	taken := make([][]time.Duration, lockWorkers)
	var workers sync.WaitGroup
	for w := range taken {
		workers.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				start := time.Now()
				held, err := store.Locker.TryAcquire(b.Context(), fmt.Sprintf("bench/%d/%d", w, n))
				if err == nil {
					err = held.Unlock(b.Context())
				}
				if err != nil {
					b.Error(errors.Join(errors.New("a lock beside a flood"), err))
					return
				}
				taken[w] = append(taken[w], time.Since(start))
			}
		})
	}
	workers.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(taken...)))
	if len(all) == 0 {
		b.Fatal("no lock was taken")
	}
	return all[len(all)/2]
}
