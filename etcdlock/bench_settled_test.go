//go:build linux

package etcdlock

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// BenchmarkSettledEvents is what etcd has for each of b.N settled events as the proxy makes them,
// with answers of 30 bytes: after compaction and defragmentation, in a process of its own. At most
// 200,000 of them are claimed and settled, and give the CPU; further ones are put as they would be
// then.
//
//	go test -run '^$' -bench SettledEvents -benchtime 200000x -timeout 1h ./etcdlock
func BenchmarkSettledEvents(b *testing.B) {
	if testing.Short() {
		b.Skip("a few events share their workflows, and say nothing")
	}
	if b.N == 1 { // the testing package tries one first
		return
	}
	e := startMember(b, "--quota-backend-bytes", strconv.Itoa(32<<30), "--enable-pprof", "--snapshot-catchup-entries",
		"100")
	s := openStore(b, Options{Endpoints: []string{e.endpoint}, Holder: "webhooks-5d8f7c9b6-x2x7q/1"})
	empty := memberSize(b, e)
	claimed := min(b.N, 200_000)
	began := e.cpu(b)
	b.ResetTimer()
	spread(b, e, 256, -1, claimed, claimAndSettleWith(s, func(n int) idem.Lock {
		return settledEvent(n, b.N)
	}, settledEnd))
	b.StopTimer()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(claimed)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64((e.cpu(b)-began).Microseconds())/float64(claimed), "etcd-µs/event")
	putSettled(b, s, e, claimed, b.N)
	full := memberSize(b, e)
	for _, of := range []struct {
		name         string
		empty, total int64
	}{{"disk-B/event", empty.disk, full.disk}, {"heap-B/event", empty.heap, full.heap}, {"RssAnon-B/event", empty.rss,
		full.rss}} {
		b.ReportMetric(float64(of.total-of.empty)/float64(b.N), of.name)
	}
	took := func(name string, f func() error) {
		at := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(at).Microseconds())/1000, name)
	}
	middle := settledEvent(b.N/2, b.N)
	took("find-ms", func() error {
		_, err := s.Execution(within(b, patience), middle.Execution)
		return err
	})
	took("page-ms", func() error {
		_, err := s.Executions(within(b, patience), idem.ExecutionQuery{PageSize: 100})
		return err
	})
	took("search-ms", func() error {
		_, err := s.Executions(within(b, patience), idem.ExecutionQuery{EventID: middle.EventID, PageSize: 100})
		return err
	})
	took("restart-ms", func() error {
		e.stop()
		e.start(b)
		return nil
	})
	b.ReportMetric(float64(e.cpu(b).Milliseconds()), "restart-cpu-ms")
}

// BenchmarkBesideSettled is how long 16 callers wait for a claim and its settle, beside b.N settled
// events and, in turns with that, in an empty etcd: the medians of the turns, of both and of how
// many times as long it is.
//
//	go test -run '^$' -bench BesideSettled -benchtime 1000000x -timeout 1h ./etcdlock
func BenchmarkBesideSettled(b *testing.B) {
	if testing.Short() {
		b.Skip("a few events say nothing")
	}
	if b.N == 1 { // the testing package tries one first
		return
	}
	const turns, pairs = 41, 1024
	kinds, percentiles := [2]func(turn int) []float64{}, []int{50, 99}
	for i := range kinds {
		e := startMember(b, "--quota-backend-bytes", strconv.Itoa(32<<30), "--enable-pprof",
			"--snapshot-catchup-entries", "100")
		s := openStore(b, Options{Endpoints: []string{e.endpoint}, Holder: "webhooks-5d8f7c9b6-x2x7q/1"})
		run := claimAndSettleWith(s, func(n int) idem.Lock { return settledEvent(b.N+n, b.N) }, settledEnd)
		kinds[i] = func(turn int) (ms []float64) {
			took := make([]time.Duration, pairs)
			spread(b, e, 16, turn, pairs, func(n int) error {
				began := time.Now()
				err := run(n)
				took[n%pairs] = time.Since(began)
				return err
			})
			slices.Sort(took)
			for _, p := range percentiles {
				ms = append(ms, float64(took[pairs*p/100].Microseconds())/1000)
			}
			return ms
		}
		if i == 1 {
			putSettled(b, s, e, 0, b.N)
		}
		memberSize(b, e) // compacts it
	}
	var of [2][turns][]float64
	b.ResetTimer()
	for turn := range turns {
		for i := range kinds {
			of[i][turn] = kinds[i](turn)
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, p := range percentiles {
		for name, ms := range map[string]func(turn int) float64{
			"empty-ms-p":  func(turn int) float64 { return of[0][turn][i] },
			"beside-ms-p": func(turn int) float64 { return of[1][turn][i] },
			"x-p":         func(turn int) float64 { return of[1][turn][i] / of[0][turn][i] },
		} {
			b.ReportMetric(median(of[0][:], ms), name+strconv.Itoa(p))
		}
	}
}

// settledEvent is the n-th event, as the proxy names it.
func settledEvent(n, all int) idem.Lock {
	event := fmt.Sprintf("evt_1PqR%016d", n)
	workflow := fmt.Sprintf("stripe/cus_%08d", n%max(1, all/10)) // two at a time are of two workflows
	sum := sha256.Sum256([]byte(workflow + event))
	key := idem.MakeKey(idem.HashEventID(event), [16]byte(sum[:16]))
	return idem.Lock{
		ExecutionFacts: idem.ExecutionFacts{
			Execution: idem.NewExecutionID(workflow, key, [4]byte(sum[16:20])),
			Scope:     idem.Scope{Workflow: workflow, Key: key}, Route: "stripe", EventID: event,
			Fingerprint: idem.Fingerprint(sum[:]), Parts: idem.Parts(sum[:12]),
			CallbackHash: hex.EncodeToString(sum[:10]),
			TraceParent:  "00-" + hex.EncodeToString(sum[:16]) + "-" + hex.EncodeToString(sum[8:16]) + "-01",
			Attempt:      1, StartedAt: time.Now(), Retention: 28 * time.Hour,
		},
		MaxDuration: time.Hour, ReleaseDelay: 15 * time.Second, ReplayBody: 64 << 10,
	}
}

func settledEnd() idem.End {
	const body = `{"received":true,"id":"12345"}`
	return idem.End{
		Status: idem.Success, Outcome: idem.Executed, FinishedAt: time.Now(), Remembered: true,
		Answer: &idem.Answer{Status: 200, Bytes: int64(len(body)), Whole: true,
			Header: []idem.HeaderField{{Name: "Content-Type", Value: "application/json"}}, Body: []byte(body)},
	}
}

// putSettled puts the events from one to another.
func putSettled(b *testing.B, s *Store, e *benchMember, from, to int) {
	b.Helper()
	remote := etcdtest.ThroughOf(etcdtest.Dial(b, e.endpoint))
	session := currentSession(b, s)
	holder := session.Holder()
	for ; from < to; from += 100 {
		ops := make(protocol.Writes, min(100, to-from))
		for i := range ops {
			l := settledEvent(from+i, b.N)
			l.Holder, l.Token = holder, int64(from)
			record := protocol.RecordOf(&l, settledEnd())
			value, err := protocol.EncodeRecord(record, session.Name)
			if err != nil {
				b.Fatal(err)
			}
			row := protocol.RowOf(record)
			lease, err := s.leases.Take(b.Context(), l.Retention, protocol.KindRecords, &row)
			if err != nil {
				b.Fatal(err)
			}
			ops[i] = protocol.Put(s.layout.Record(l.Scope), protocol.Leased{Value: value, Lease: lease})
		}
		if _, err := remote.Commit(b.Context(), &pb.TxnRequest{Success: ops}); err != nil {
			b.Fatal(err)
		}
	}
}

// size is what the member has, in bytes.
type size struct{ disk, heap, rss int64 }

// memberSize is after a compaction, a defragmentation and a garbage collection.
func memberSize(b *testing.B, e *benchMember) (w size) {
	b.Helper()
	c := etcdtest.Dial(b, e.endpoint)
	status, err := c.Status(b.Context(), e.endpoint)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := c.Compact(b.Context(), status.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		b.Fatal(err)
	}
	if _, err := c.Defragment(b.Context(), e.endpoint); err != nil {
		b.Fatal(err)
	}
	if status, err = c.Status(b.Context(), e.endpoint); err != nil {
		b.Fatal(err)
	}
	w.disk = status.DbSizeInUse
	request, _ := http.NewRequestWithContext(b.Context(), http.MethodGet,
		"http://"+e.endpoint+"/debug/pprof/heap?gc=1&debug=1", http.NoBody)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.Fatal(err)
	}
	w.heap = numberIn(b, text, `# HeapAlloc = (\d+)`)
	if text, err = os.ReadFile(fmt.Sprintf("/proc/%d/status", e.pid)); err != nil {
		b.Fatal(err)
	}
	w.rss = numberIn(b, text, `RssAnon:\s+(\d+)`) << 10
	return w
}

func numberIn(b *testing.B, text []byte, pattern string) int64 {
	b.Helper()
	found := regexp.MustCompile(pattern).FindSubmatch(text)
	if found == nil {
		b.Fatalf("no %s", pattern)
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}
