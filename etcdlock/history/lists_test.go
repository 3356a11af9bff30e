package history

import (
	"encoding/hex"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// archive is an etcd with many records, as three processes have left them in the course of a week.
// The last one still runs.
type archive struct {
	*etcdtest.Etcd
	n     int
	begun time.Time
	step  time.Duration // between two ends
}

const week = 7 * 24 * time.Hour

// fill writes n records: each customer has ten, and one of 20,000 events has failed.
func fill(tb testing.TB, n int) *archive {
	tb.Helper()
	a := &archive{Etcd: etcdtest.Start(tb), n: n, begun: time.Now().Add(-week).Truncate(time.Microsecond),
		step: week / time.Duration(n)}
	var at atomic.Pointer[time.Time]
	at.Store(&a.begun)
	clock := link.Clock{Now: func() time.Time { return *at.Load() }, Boot: func() time.Duration { return 0 }}
	var writers []*commit.Leases
	var s *Reader
	for i := range 3 {
		s = openReaderAt(tb, a.Etcd, fmt.Sprint("writer", i), clock)
		writers = append(writers, commit.NewLeases(s.options.Pool.NewLease, s.options, clock, s.options.Tasks))
	}
	remote := etcdtest.ThroughOf(a.Client)
	for from := 0; from < n; from += 100 {
		var ops protocol.Writes
		writer := from / 100 % 3
		for i := from; i < min(n, from+100); i++ {
			r := a.record(i)
			at.Store(&r.FinishedAt)
			value, err := protocol.EncodeRecord(r, "me")
			if err != nil {
				tb.Fatal(err)
			}
			row := protocol.RowOf(r)
			lease, err := writers[writer].Take(tb.Context(), r.Retention, protocol.KindRecords, &row)
			if err != nil {
				tb.Fatal(err)
			}
			ops = append(ops, protocol.Put(s.options.Layout.Record(r.Scope),
				protocol.Leased{Value: value, Lease: lease}))
		}
		if _, err := remote.Commit(tb.Context(), &pb.TxnRequest{Success: ops}); err != nil {
			tb.Fatal(err)
		}
	}
	for _, w := range writers[:2] {
		w.Finish(tb.Context())
	}
	etcdtest.Eventually(tb, "the indexes are written", func() bool {
		all, err := s.leases.readSpans(tb.Context(), protocol.KindRecords)
		return err == nil && len(slices.DeleteFunc(all, func(st leaseSpan) bool { return st.index != nil })) <= 1
	})
	return a
}

// record is the i-th record.
func (a *archive) record(i int) *idem.Record {
	event := fmt.Sprintf("evt_1PqR%016x", uint64(i)*0x9E3779B97F4A7C15)
	workflow := fmt.Sprintf("stripe/cus_%08d", i%max(1, a.n/10))
	key := idem.MakeKey(idem.HashEventID(event), [16]byte{byte(i), byte(i >> 8), byte(i >> 16)})
	end := success(`{"received":true}`)
	end.FinishedAt = a.begun.Add(time.Duration(i) * a.step)
	route := "stripe"
	switch {
	case i%20_000 == 7_777:
		end = idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: end.FinishedAt,
			Error: &idem.Failure{Code: "upstream_failed"}}
	case i == a.n/3:
		route = "rare"
	}
	l := idem.Lock{ExecutionFacts: idem.ExecutionFacts{
		Execution: idem.NewExecutionID(workflow, key, [4]byte{byte(i), byte(i >> 8), byte(i >> 16), 7}),
		Scope:     idem.Scope{Workflow: workflow, Key: key},
		Route:     route, EventID: event, Labels: idem.Labels{{Name: "order", Value: fmt.Sprint("SO-", i/10)}},
		Attempt:   1,
		StartedAt: end.FinishedAt.Add(-time.Second), Retention: 2 * week, TraceParent: "00-" + a.trace(i) +
			"-b7ad6b7169203331-01",
	}}
	return protocol.RecordOf(&l, end)
}

// trace is the trace ID of the i-th record.
func (a *archive) trace(i int) string {
	return hex.EncodeToString([]byte{byte(i >> 16), byte(i >> 8), byte(i), 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
}

// listed is a query that a person makes of many records, and how many of the first 50 there are.
type listed struct {
	name string
	q    idem.ExecutionQuery
	want int
}

// lists are all filters, each with much, few and nothing to be found.
func (a *archive) lists() []listed {
	old := a.record(a.n / 3)
	failed := min(50, (a.n+12_222)/20_000)
	at := func(i int) time.Time { return a.begun.Add(time.Duration(i) * a.step) }
	return []listed{
		{"all", idem.ExecutionQuery{}, 50},
		{"status: many", idem.ExecutionQuery{Status: idem.Success}, 50},
		{"status: few", idem.ExecutionQuery{Status: idem.Failed}, failed},
		{"status: none", idem.ExecutionQuery{Status: idem.Aborted}, 0},
		{"status: waiting", idem.ExecutionQuery{Status: idem.Pending}, 0},
		{"status: running", idem.ExecutionQuery{Status: idem.Running}, 0},
		{"status: refused", idem.ExecutionQuery{Status: idem.Refused}, 0},
		{"status and since: none", idem.ExecutionQuery{Status: idem.Failed, Since: at(a.n).Add(-time.Minute)}, 0},
		{"outcome: few", idem.ExecutionQuery{Outcome: idem.Unknown}, failed},
		{"outcome: none", idem.ExecutionQuery{Outcome: idem.NotExecuted}, 0},
		{"decision: none", idem.ExecutionQuery{Decision: idem.DecisionLocked}, 0},
		{"route: many", idem.ExecutionQuery{Route: "stripe"}, 50},
		{"route: one", idem.ExecutionQuery{Route: "rare"}, 1},
		{"route: none", idem.ExecutionQuery{Route: "nobody"}, 0},
		{"workflow: few", idem.ExecutionQuery{Workflow: old.Workflow}, 10},
		{"workflow: none", idem.ExecutionQuery{Workflow: "nobody"}, 0},
		{"workflow and status: none", idem.ExecutionQuery{Workflow: old.Workflow, Status: idem.Aborted}, 0},
		{"pattern: few", idem.ExecutionQuery{Workflow: old.Workflow + "*"}, 10},
		{"pattern: none", idem.ExecutionQuery{Workflow: "nobody*"}, 0},
		{"prefix: few", idem.ExecutionQuery{Prefix: old.Workflow}, 10},
		{"prefix: none", idem.ExecutionQuery{Prefix: "stripe/nobody"}, 0},
		{"text: few", idem.ExecutionQuery{SearchText: old.Workflow}, 10},
		{"text: one", idem.ExecutionQuery{SearchText: old.EventID[:len(old.EventID)-2]}, 1},
		{"text: none", idem.ExecutionQuery{SearchText: "evt_nothing"}, 0},
		{"text: a label", idem.ExecutionQuery{SearchText: "order:" + old.Labels[0].Value}, 10},
		{"text: the value of a label", idem.ExecutionQuery{SearchText: old.Labels[0].Value}, 10},
		{"text: a trace", idem.ExecutionQuery{SearchText: a.trace(a.n / 3)}, 1},
		{"text: no trace", idem.ExecutionQuery{SearchText: "ffffffffffffffffffffffffffffffff"}, 0},
		{"since: many", idem.ExecutionQuery{Since: at(a.n / 2)}, 50},
		{"since: none", idem.ExecutionQuery{Since: at(a.n).Add(time.Second)}, 0},
		{"until: many", idem.ExecutionQuery{Until: at(a.n / 2)}, 50},
		{"until: none", idem.ExecutionQuery{Until: at(0).Add(-time.Hour)}, 0},
		{"since and until: few", idem.ExecutionQuery{Since: at(a.n / 2), Until: at(a.n/2 + 19).Add(time.Millisecond)},
			20},
		{"event: one", idem.ExecutionQuery{EventID: old.EventID}, 1},
		{"event: none", idem.ExecutionQuery{EventID: "nothing"}, 0},
		{"key: one", idem.ExecutionQuery{Key: old.Key.Short()}, 1},
		{"key: six letters", idem.ExecutionQuery{Key: string(old.Key[:6])}, 1},
		{"id: one", idem.ExecutionQuery{IDPrefix: string(old.Execution)}, 1},
		{"id: its workflow", idem.ExecutionQuery{IDPrefix: string(old.Execution[:15])}, 10},
		{"id: none", idem.ExecutionQuery{IDPrefix: "exec_aaaaaaaaa"}, 0},
		{"trace: one", idem.ExecutionQuery{TraceID: a.trace(a.n / 3)}, 1},
		{"label: ten", idem.ExecutionQuery{Label: old.Labels[0]}, 10},
		{"label: its value", idem.ExecutionQuery{Label: idem.Label{Value: old.Labels[0].Value}}, 10},
		{"label: none", idem.ExecutionQuery{Label: idem.Label{Name: "order", Value: "none"}}, 0},
		{"trace: none", idem.ExecutionQuery{TraceID: "ffffffffffffffffffffffffffffffff"}, 0},
	}
}

// first returns the first 50, as the command line reads them: page after page, until there are so
// many or the list ends.
func (l *listed) first(tb testing.TB, s *Reader) (all []idem.Found) {
	tb.Helper()
	q := l.q
	for {
		q.PageSize = 50 - len(all)
		page, err := s.Executions(within(tb, 10*patience), q)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, page.Executions...)
		if q.Cursor = page.NextCursor; len(all) >= 50 || q.Cursor == "" {
			return all
		}
	}
}

// BenchmarkLists is what a person waits for among 1,000,000 records (20,000 with -short): the first
// page of each filter.
//
//	go test -run '^$' -bench Lists -benchtime 3x -timeout 1h ./etcdlock/history
func BenchmarkLists(b *testing.B) {
	n := 1_000_000
	if testing.Short() {
		n = 20_000
	}
	a := fill(b, n)
	s := openReader(b, a.Etcd)
	for _, l := range a.lists() {
		b.Run(l.name, func(b *testing.B) {
			for b.Loop() {
				if got := l.first(b, s); len(got) != l.want {
					b.Fatalf("%d executions, want %d", len(got), l.want)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms")
		})
	}
}

// A list reads the indexes of the leases, four to twelve bytes of each record for a filter and
// thirty for a text, and little else. Of the leases on which another process may still put keys it
// reads the records: a thousand at most.
func TestNoFilterReadsManyRecordsToFindFew(t *testing.T) {
	if testing.Short() {
		t.Skip("fills etcd")
	}
	const n = 20_000
	a := fill(t, n)
	wire := etcdtest.NewWire(t, a.Endpoint)
	var requests atomic.Int64
	s := openReaderOf(t, &link.Target{Endpoints: []string{wire.Endpoint}, OnOperation: func(link.Operation) {
		requests.Add(1)
	}}, "searches", link.SystemClock())
	for _, l := range a.lists() {
		t.Run(l.name, func(t *testing.T) {
			before, bytes := requests.Load(), wire.Answered()
			got := l.first(t, s)
			asked, read := requests.Load()-before, wire.Answered()-bytes
			t.Logf("%d requests, %d KB", asked, read>>10)
			if len(got) != l.want {
				t.Errorf("%d executions, want %d", len(got), l.want)
			}
			if asked > 100 || read > 600<<10 {
				t.Errorf("%d requests and %d bytes", asked, read)
			}
		})
	}
}

// A process that is killed leaves leases without an index. A search reads the keys on them, and
// once nothing can be put there any more, writes what is missing.
func TestASearchIndexesWhatAKilledProcessHasLeft(t *testing.T) {
	e := etcdtest.Start(t)
	s := openReader(t, e)
	now := time.Now()
	lease, _ := leaseOf(t, e, s, protocol.KindRecords, "killed", now.Add(-5*time.Hour))
	first, second := recordOn(t, e, s, lease, "mine", "first"), recordOn(t, e, s, lease, "theirs", "second")
	full, _ := leaseOf(t, e, s, protocol.KindRecords, "runs", now.Add(-4*time.Hour))
	open, _ := leaseOf(t, e, s, protocol.KindRecords, "runs", now.Add(-time.Minute))
	later := recordOn(t, e, s, open, "mine", "later")
	indexed := func() (leases []clientv3.LeaseID) {
		all, err := s.leases.readSpans(within(t, patience), protocol.KindRecords)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if all[i].index != nil {
				leases = append(leases, all[i].lease)
			}
		}
		return leases
	}
	search := func(when string, q idem.ExecutionQuery, want ...idem.ExecutionID) {
		t.Helper()
		page, err := s.Executions(within(t, patience), q)
		if got := ids(page.Executions); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q: %v", when, got, want, err)
		}
	}
	for _, when := range []string{"without an index", "with one"} {
		search(when, idem.ExecutionQuery{Workflow: "mine"}, later, first)
		search(when, idem.ExecutionQuery{Workflow: "theirs"}, second)
		search(when, idem.ExecutionQuery{SearchText: "SEC"}, second)
		search(when, idem.ExecutionQuery{Status: idem.Failed})
		s.leases.busy <- struct{}{}
		<-s.leases.busy
		if got := indexed(); slices.Contains(got, open) || !slices.Contains(got, lease) || !slices.Contains(got, full) {
			t.Fatalf("%s: %v are indexed, want %v and %v: keys may be put on %v", when, got, lease, full, open)
		}
	}
	// it was forgotten
	if _, err := e.Client.Delete(within(t, patience),
		s.options.Layout.Record(lockIn("mine", "first").Scope)); err != nil {
		t.Fatal(err)
	}
	recordOn(t, e, s, open, "theirs", "second") // and that has run again
	search("what was forgotten", idem.ExecutionQuery{Workflow: "mine"}, later)
	search("what is on another lease now", idem.ExecutionQuery{Workflow: "theirs"}, second)
}
