package etcdlock

import (
	"context"
	"fmt"
	"strconv"
	"testing"
)

// BenchmarkOrder holds claim and settle of an event that stands in a scope against those of one that does not.
func BenchmarkOrder(b *testing.B) {
	e := startMember(b)
	s := openStore(b, Options{Endpoints: []string{e.endpoint}})
	ctx := context.Background()
	ordinary := benchHooklock(b, e)
	kinds := []func(n int) error{ordinary, func(n int) error {
		held, seen, err := s.Claim(ctx, ordered(fmt.Sprintf("o%d", n), "one", strconv.Itoa(n)), 0)
		if err != nil || held == nil {
			return fmt.Errorf("claim: %+v %w", seen, err)
		}
		_, err = held.Settle(ctx, success("ok"))
		return err
	}}
	const parallel, pairs = 64, 512
	turns := make([][]turn, len(kinds))
	for _, f := range kinds {
		spread(b, e, parallel, -1, pairs, f)
	}
	b.ResetTimer()
	for n := range b.N {
		for i := range kinds {
			kind := (n + i) % len(kinds)
			turns[kind] = append(turns[kind], spread(b, e, parallel, n, pairs, kinds[kind]))
		}
	}
	b.StopTimer()
	b.ReportMetric(median(turns[0], func(i int) float64 { return turns[1][i].wall.Seconds() / turns[0][i].wall.Seconds() }), "x-time")
	b.ReportMetric(median(turns[0], func(i int) float64 { return turns[1][i].cpu().Seconds() / turns[0][i].cpu().Seconds() }), "x-cpu")
	b.ReportMetric(0, "ns/op") // of no meaning
}
