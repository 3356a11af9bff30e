//go:build linux

package etcdlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/idem/guard"
)

// BenchmarkHotWorkflow is 64 senders with events for one workflow, each with its next when the one
// before has its answer: under strategy wait, over one replica and over three, beside etcd's own
// mutex and a put that proves the mutex held. They take turns on one etcd, which syncs its disk; an
// operation of the benchmark is a turn of three seconds of each. x-mutex is how many times as many
// as the mutex were completed a second, as the median over the turns, with the smallest and the
// largest; writes/event is by how much the revision of etcd grew for each; fewest and most are what
// single senders completed in a turn, over the mean; passed-ms is by how much the order of arrival
// was missed at the worst in a turn: how much later one came who was done before another.
//
//	go test -run '^$' -bench HotWorkflow -benchtime 5x ./etcdlock
func BenchmarkHotWorkflow(b *testing.B) {
	for _, replicas := range []int{1, 3} {
		b.Run(fmt.Sprintf("replicas=%d", replicas), func(b *testing.B) { benchHot(b, replicas, 0) })
	}
}

// BenchmarkHotWorkflowLater is the same where as many events of the workflow have waited and run
// since etcd's last compaction.
//
//	go test -run '^$' -bench HotWorkflowLater -benchtime 3x ./etcdlock
func BenchmarkHotWorkflowLater(b *testing.B) {
	if testing.Short() {
		b.Skip("four minutes")
	}
	for _, earlier := range []int{10_000, 100_000, 300_000} {
		for _, replicas := range []int{1, 3} {
			b.Run(fmt.Sprintf("earlier=%d/replicas=%d", earlier, replicas), func(b *testing.B) {
				benchHot(b, replicas, earlier)
			})
		}
	}
}

const hotSenders = 64

// hotTurn is what one kind did in one turn.
type hotTurn struct{ rate, writes, fewest, most, passed float64 }

func benchHot(b *testing.B, replicas, earlier int) {
	e := startMember(b)
	client := etcdtest.Dial(b, e.endpoint)
	waited(b, e, client, earlier)
	kinds := []func(sender, n int) error{hotHooklock(b, e, replicas), hotMutex(b, e, replicas)}
	turns := make([][]hotTurn, len(kinds))
	for i, f := range kinds { // brings sessions and memory
		hotRound(b, client, 200*time.Millisecond, -1-i, f)
	}
	for n := range b.N {
		for i := range kinds {
			kind := (n + i) % len(kinds)
			turns[kind] = append(turns[kind], hotRound(b, client, 3*time.Second, n, kinds[kind]))
		}
	}
	of := func(kind int, f func(hotTurn) float64) float64 {
		values := make([]float64, len(turns[kind]))
		for i, t := range turns[kind] {
			values[i] = f(t)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	for kind, name := range []string{"hooklock", "mutex"} {
		b.ReportMetric(of(kind, func(t hotTurn) float64 { return t.rate }), name+"/s")
		b.ReportMetric(of(kind, func(t hotTurn) float64 { return t.writes }), name+"-writes/event")
		b.ReportMetric(of(kind, func(t hotTurn) float64 { return t.fewest }), name+"-fewest")
		b.ReportMetric(of(kind, func(t hotTurn) float64 { return t.most }), name+"-most")
		b.ReportMetric(of(kind, func(t hotTurn) float64 { return t.passed }), name+"-passed-ms")
	}
	ratios := make([]float64, b.N)
	for n := range ratios {
		ratios[n] = turns[0][n].rate / turns[1][n].rate
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-mutex")
	b.ReportMetric(ratios[0], "x-mutex-min")
	b.ReportMetric(ratios[len(ratios)-1], "x-mutex-max")
	b.ReportMetric(0, "ns/op") // of no meaning
}

// waited leaves what etcd knows of the places of earlier events, until it is compacted.
func waited(b *testing.B, e *benchMember, client *clientv3.Client, earlier int) {
	b.Helper()
	const together = 60
	scope, layout := lockFor("hot", "").Scope, openStore(b, Options{Endpoints: []string{e.endpoint}}).layout
	for n := 0; n < earlier; n += together {
		var puts, deletes []clientv3.Op
		for i := range together {
			scope.Key = idem.Key(fmt.Sprintf("%016x-%032x", n, i))
			puts, deletes = append(puts, clientv3.OpPut(layout.Queued(scope), "a place")),
				append(deletes, clientv3.OpDelete(layout.Queued(scope)))
		}
		for _, ops := range [][]clientv3.Op{puts, deletes} {
			if _, err := client.Txn(b.Context()).Then(ops...).Commit(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// hotRound lets every sender send for a while, and waits for the last answers.
func hotRound(b *testing.B, client *clientv3.Client, d time.Duration, round int, f func(sender, n int) error) hotTurn {
	b.Helper()
	revision := func() int64 {
		r, err := client.Get(b.Context(), "nothing")
		if err != nil {
			b.Fatal(err)
		}
		return r.Header.Revision
	}
	var all sync.WaitGroup
	completed, visits := make([]int, hotSenders), make([][]visit, hotSenders)
	before, start := revision(), time.Now()
	for sender := range hotSenders {
		all.Go(func() {
			for time.Since(start) < d {
				came := time.Now()
				if err := f(sender, (round+4)*1_000_000+completed[sender]); err != nil {
					b.Error(err)
					return
				}
				completed[sender]++
				visits[sender] = append(visits[sender], visit{came, time.Now()})
			}
		})
	}
	all.Wait()
	took, total := time.Since(start).Seconds(), 0
	for _, n := range completed {
		total += n
	}
	mean := float64(total) / hotSenders
	return hotTurn{
		rate: float64(total) / took, writes: float64(revision()-before) / float64(total),
		fewest: float64(slices.Min(completed)) / mean, most: float64(slices.Max(completed)) / mean,
		passed: passed(slices.Concat(visits...)).Seconds() * 1e3,
	}
}

// visit is an event: when it came, and when it was done.
type visit struct{ came, done time.Time }

// passed is how much later, at the most, one came who was done before another.
func passed(all []visit) (most time.Duration) {
	slices.SortFunc(all, func(a, b visit) int { return a.done.Compare(b.done) })
	var newest time.Time
	for _, v := range all {
		if newest.After(v.came) {
			most = max(most, newest.Sub(v.came))
		} else {
			newest = v.came
		}
	}
	return most
}

func hotHooklock(b *testing.B, e *benchMember, replicas int) func(sender, n int) error {
	b.Helper()
	guards := make([]*guard.Guard, replicas)
	for i := range guards {
		guards[i] = guard.New(guard.Options{
			Ledger: openStore(b, Options{Endpoints: []string{e.endpoint}}), Base: context.Background(),
			Cache: guard.NewCache(0), MaxWaiting: func() int {
				return hotSenders
			},
		})
	}
	policy := &idem.Policy{
		Route: "r", Strategy: idem.Wait, WaitTimeout: 10 * patience, MaxWaiting: hotSenders, InFlight: idem.Conflict,
		Idempotency: true,
		Retention:   time.Hour, OnMismatch: idem.MismatchReject, OnUnknown: idem.UnknownRetry,
	}
	return func(sender, n int) error {
		l := lockFor("hot", fmt.Sprintf("event %d of %d", n, sender))
		a := guards[sender%replicas].Admit(context.Background(),
			&idem.Request{Scope: l.Scope, EventID: l.EventID, Policy: policy, TraceParent: l.TraceParent})
		if a.Execution == nil {
			return fmt.Errorf("%s: %w", a.Decision, a.Err)
		}
		if err := a.Execution.Begin(); err != nil {
			return err
		}
		return a.Execution.End(guard.Tried{Answer: &idem.Answer{Status: 200}}).Err
	}
}

// BenchmarkRefusedSenders is 64 senders with events for one workflow under strategy fail_fast, each
// with its next when the one before has run. Who is refused comes again when Retry-After says, or
// at once, to one replica after the other. A turn ends when each has ended the event at hand.
// fewest and most are what single senders completed in a turn, over the mean: where who was
// overtaken waits, and where nobody does (alike-...).
//
//	go test -run '^$' -bench RefusedSenders -benchtime 3x ./etcdlock
func BenchmarkRefusedSenders(b *testing.B) {
	if testing.Short() {
		b.Skip("six minutes: where nobody waits, the last of 64 ends a minute after the turn")
	}
	for _, c := range []struct {
		call, turn time.Duration
		told       bool
		replicas   int
	}{
		{5 * time.Millisecond, 10 * time.Second, true, 1},
		{5 * time.Millisecond, 10 * time.Second, false, 1},
		{100 * time.Millisecond, 40 * time.Second, true, 1},
		{100 * time.Millisecond, 40 * time.Second, true, 3},
	} {
		when := map[bool]string{true: "told", false: "at-once"}
		b.Run(fmt.Sprintf("call=%s/again=%s/replicas=%d", c.call, when[c.told], c.replicas), func(b *testing.B) {
			e := startMember(b)
			client := etcdtest.Dial(b, e.endpoint)
			for name, wait := range map[string]time.Duration{"": 0, "alike-": -1} {
				f := hotRefused(b, e, c.replicas, c.call, c.told, wait)
				var turns []hotTurn
				for n := range b.N {
					turns = append(turns, hotRound(b, client, c.turn, n, f))
				}
				for _, m := range []struct {
					name string
					of   func(hotTurn) float64
				}{
					{"events/s", func(t hotTurn) float64 { return t.rate }},
					{"fewest", func(t hotTurn) float64 { return t.fewest }},
					{"most", func(t hotTurn) float64 { return t.most }},
				} {
					slices.SortFunc(turns, func(x, y hotTurn) int { return cmp.Compare(m.of(x), m.of(y)) })
					b.ReportMetric(m.of(turns[len(turns)/2]), name+m.name)
				}
			}
			b.ReportMetric(0, "ns/op") // of no meaning
		})
	}
}

func hotRefused(b *testing.B, e *benchMember, replicas int, call time.Duration, told bool,
	wait time.Duration) func(sender, n int) error {
	b.Helper()
	guards := make([]*guard.Guard, replicas)
	for i := range guards {
		guards[i] = guard.New(guard.Options{
			Ledger: openStore(b, Options{Endpoints: []string{e.endpoint}}), Base: context.Background(),
			Cache:      guard.NewCache(0),
			MaxWaiting: func() int { return hotSenders }, OvertakenWait: wait,
		})
	}
	policy := &idem.Policy{
		Route: "r", Strategy: idem.FailFast, WaitTimeout: 5 * time.Second, MaxWaiting: hotSenders,
		InFlight: idem.Conflict, Idempotency: true,
		Retention: time.Hour, OnMismatch: idem.MismatchReject, OnUnknown: idem.UnknownRetry,
	}
	return func(sender, n int) error {
		l := lockFor("hot", fmt.Sprintf("event %d of %d, %d", n, sender, wait))
		for try := 0; ; try++ {
			a := guards[(sender+try)%replicas].Admit(context.Background(),
				&idem.Request{Scope: l.Scope, EventID: l.EventID, Policy: policy, TraceParent: l.TraceParent})
			if a.Execution != nil {
				if err := a.Execution.Begin(); err != nil {
					return err
				}
				<-time.After(call)
				return a.Execution.End(guard.Tried{Answer: &idem.Answer{Status: 200}}).Err
			}
			if a.Decision != idem.DecisionLocked {
				return fmt.Errorf("%s: %w", a.Decision, a.Err)
			}
			if told {
				<-time.After(max(a.RetryAfter+time.Second-1, time.Second).Truncate(time.Second))
			}
		}
	}
}

func hotMutex(b *testing.B, e *benchMember, replicas int) func(sender, n int) error {
	b.Helper()
	clients, sessions := make([]*clientv3.Client, replicas), make([]*concurrency.Session, hotSenders)
	for i := range clients {
		clients[i] = etcdtest.Dial(b, e.endpoint)
	}
	for i := range sessions { // one for each: two mutexes of a session are one
		session, err := concurrency.NewSession(clients[i%replicas], concurrency.WithTTL(15))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = session.Close() })
		sessions[i] = session
	}
	ctx := context.Background()
	return func(sender, n int) error {
		m := concurrency.NewMutex(sessions[sender], "/bench/hot")
		if err := m.Lock(ctx); err != nil {
			return err
		}
		r, err := clients[sender%replicas].Txn(ctx).If(m.IsOwner()).Then(
			clientv3.OpPut(fmt.Sprintf("/bench/record/%d/%d", sender, n), "a value")).Commit()
		if err != nil || !r.Succeeded {
			return fmt.Errorf("put under the mutex: %+v %w", r, err)
		}
		return m.Unlock(ctx)
	}
}
