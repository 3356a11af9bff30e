package etcdlock

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// putMany puts n values into etcd, a hundred in a request.
func putMany(tb testing.TB, e *etcdtest.Etcd, n int, entry func(i int) (key string, value []byte)) {
	tb.Helper()
	var ops []clientv3.Op
	for i := range n {
		key, value := entry(i)
		ops = append(ops, clientv3.OpPut(key, string(value)))
	}
	for some := range slices.Chunk(ops, 100) {
		if _, err := e.Client.Txn(within(tb, patience)).Then(some...).Commit(); err != nil {
			tb.Fatal(err)
		}
	}
}

// putRecords puts n records into etcd, as s would have written them.
func putRecords(tb testing.TB, e *etcdtest.Etcd, s *Store, n int, entry func(i int) *idem.Record) {
	tb.Helper()
	ctx := tb.Context()
	for from := 0; from < n; from += 100 {
		ops := make(protocol.Writes, min(100, n-from))
		for j := range ops {
			r := entry(from + j)
			value, err := protocol.EncodeRecord(r, "me")
			if err != nil {
				tb.Fatal(err)
			}
			row := protocol.RowOf(r)
			lease, err := s.leases.Take(ctx, r.Retention, protocol.KindRecords, &row)
			if err != nil {
				tb.Fatal(err)
			}
			ops[j] = protocol.Put(s.layout.Record(r.Scope), protocol.Leased{Value: value, Lease: lease})
		}
		if _, err := etcdtest.ThroughOf(e.Client).Commit(ctx, &pb.TxnRequest{Success: ops}); err != nil {
			tb.Fatal(err)
		}
	}
}

// heapSize samples the largest heap that it was shown.
type heapSize struct{ base, most uint64 }

func (h *heapSize) sample() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.most = max(h.most, m.HeapAlloc)
}

func newHeap() *heapSize {
	runtime.GC()
	h := &heapSize{}
	h.sample()
	h.base = h.most
	return h
}

func TestTenThousandLocksAreListedInPagesOfLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("fills etcd")
	}
	const many = 10_000
	e := etcdtest.Start(t)
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}})
	alive := protocol.SessionAlive(currentSession(t, s).Name)
	putMany(t, e, many, func(i int) (string, []byte) {
		l := lockFor(fmt.Sprintf("stripe/account-%05d", i), "event")
		l.Alive, l.Holder = alive, "host/1/session"
		value, err := protocol.EncodeLock(&l)
		if err != nil {
			t.Fatal(err)
		}
		return s.layout.Lock(l.Scope), value
	})
	seen := map[string]bool{}
	h := newHeap()
	for q := (idem.LockQuery{PageSize: history.MaxPage}); ; {
		page, err := s.Locks(within(t, patience), q)
		if err != nil {
			t.Fatal(err)
		}
		h.sample()
		for _, v := range page.Locks {
			if v.Lock.Dead {
				t.Fatalf("%+v", v.Lock)
			}
			seen[v.Lock.Scope.Workflow] = true
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	if len(seen) != many {
		t.Errorf("%d locks", len(seen))
	}
	grown := (h.most - h.base) >> 20 // that of the etcd in this process included
	t.Logf("%d locks: the heap grew by %d MiB from %d MiB", many, grown, h.base>>20)
	if grown > 64 {
		t.Errorf("the heap grew by %d MiB", grown)
	}
}

func TestAPageOfManyExecutionsReadsNoMoreThanItShows(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("fills etcd")
	}
	const many = 2_000
	e := etcdtest.Start(t)
	var requests atomic.Int64
	s := openStore(t, Options{Endpoints: []string{e.Endpoint}, OnOperation: func(o link.Operation) {
		if o.Name == "txn" || o.Name == "range" {
			requests.Add(1)
		}
	}})
	putRecords(t, e, s, many, func(i int) *idem.Record {
		l := lockFor(fmt.Sprintf("w%d", i%100), fmt.Sprintf("event %05d", i))
		end := success("body")
		if i%1000 == 0 {
			end = idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: time.Now(),
				Error: &idem.Failure{Code: "x"}}
		}
		return protocol.RecordOf(&l, end)
	})
	all := map[idem.ExecutionID]bool{}
	pages := 0
	for q := (idem.ExecutionQuery{PageSize: 100}); ; pages++ {
		before := requests.Load()
		page, err := s.Executions(within(t, patience), q)
		if err != nil {
			t.Fatal(err)
		}
		// Two empty kinds, the list of the leases, the keys on those that may have the next ones,
		// the values, and the counts of copies; a renewal of the session may come between.
		if n, most := requests.Load()-before, int64(2+1+4*commit.LeaseKeys/link.MaxReads+100/history.RecordBatch+
			1+1); n > most+2 {
			t.Fatalf("%d requests for a page", n)
		}
		for _, f := range page.Executions {
			all[f.ID()] = true
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	if len(all) != many || pages != many/100 {
		t.Errorf("%d executions on %d pages", len(all), pages)
	}
	if got := allExecutions(t, s, idem.ExecutionQuery{Status: idem.Failed}); len(got) != many/1000 {
		t.Errorf("%d have failed", len(got))
	}
	if got := allExecutions(t, s, idem.ExecutionQuery{Workflow: "w7"}); len(got) != many/100 {
		t.Errorf("%d of one workflow", len(got))
	}
}
