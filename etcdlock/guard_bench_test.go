package etcdlock

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
)

// BenchmarkGuard is the check before a step, at a replica that does not run the execution, beside a bare linearizable get of the same key and a
// bare put of as many bytes, on one etcd that syncs its disk. The four take turns, one call each; what is reported is the median of
// each, and how many times the median of the get (x-get) or of the put (x-put) it is. A guard without a step reads; one with a step
// is written down, so it takes as long as a put does.
//
//	go test -run '^$' -bench Guard -benchtime 2000x ./etcdlock
func BenchmarkGuard(b *testing.B) {
	e := etcdtest.StartSynced(b)
	owner, other := openStore(b, Options{Endpoints: []string{e.Endpoint}}), openStore(b, Options{Endpoints: []string{e.Endpoint}})
	client, ctx := etcdtest.Dial(b, e.Endpoint), context.Background()
	var cb idem.Callback
	var key, value string
	begin := func(n int) { // a lock with few steps
		l := mustClaim(b, owner, withKey(lockFor(fmt.Sprintf("w%d", n), "one")), 0)
		cb, key = callbackOf(l.Lock()), l.keys.L
		if _, err := other.Guard(ctx, cb, "first", []string{"first", "second", "third"}); err != nil {
			b.Fatal(err)
		}
		got, err := client.Get(ctx, key)
		if err != nil || len(got.Kvs) != 1 {
			b.Fatal(err)
		}
		value = string(got.Kvs[0].Value)
	}
	lease, err := client.Grant(ctx, 600)
	if err != nil {
		b.Fatal(err)
	}
	calls := []func(n int) error{
		func(int) error { return second(client.Get(ctx, key)) },
		func(int) error { return second(other.Guard(ctx, cb, "", nil)) },
		func(int) error { return second(client.Put(ctx, "/bench/put", value, clientv3.WithLease(lease.ID))) },
		func(n int) error { return second(other.Guard(ctx, cb, fmt.Sprintf("step %d", n%8), nil)) },
	}
	took := make([][]time.Duration, len(calls))
	for n := range b.N {
		if n%8 == 0 {
			begin(n)
		}
		for i := range calls {
			kind := (n + i) % len(calls)
			began := time.Now()
			if err := calls[kind](n); err != nil {
				b.Fatal(err)
			}
			took[kind] = append(took[kind], time.Since(began))
		}
	}
	p50 := func(kind int) float64 {
		slices.Sort(took[kind])
		return float64(took[kind][len(took[kind])/2].Microseconds())
	}
	for kind, name := range []string{"get", "guard", "put", "step"} {
		b.ReportMetric(p50(kind), name+"-us")
	}
	b.ReportMetric(p50(1)/p50(0), "x-get")
	b.ReportMetric(p50(3)/p50(2), "x-put")
	b.ReportMetric(0, "ns/op") // of no meaning
}
