package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/testkit"
)

var deliveries = flag.Int("deliveries", 2000, "how many deliveries TestSizing measures with")

// sizes are what a cluster's member has at one moment.
type sizes struct {
	file, inUse, memory int64
	revision            int64
}

func measure(t *testing.T, m *testkit.Member, client *clientv3.Client) sizes {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	status, err := client.Status(ctx, m.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	s := sizes{file: status.DbSize, inUse: status.DbSizeInUse, revision: status.Header.Revision}
	// Its own memory: the database file is mapped, too, and the kernel takes those pages back when
	// it needs them.
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "RssAnon:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	s.memory = kib << 10
	return s
}

// TestSizing measures what a delivery costs etcd: docs/etcd.md has its figures. One member, one
// Hooklock, every delivery an event and a workflow of its own, with an answer of 300 bytes that is
// kept.
//
//	go test ./test/scale -run Sizing -v -deliveries 100000
func TestSizing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is measured in /proc")
	}
	m := testkit.StartEtcd(t, etcdProgram, 1)[0]
	answer := testkit.OK(strings.Repeat("x", 300))
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return answer })
	h := testkit.Serve(t, hooklockProgram, strings.Replace(sidecar(t, up.URL, []*testkit.Member{m}), "level: info",
		"level: info, format: json", 1))
	client := etcdtest.Dial(t, strings.TrimPrefix(m.Endpoint, "http://"))
	before := measure(t, m, client)
	began := time.Now()
	load(t, h.Addr, *deliveries)
	took := time.Since(began)
	loaded := measure(t, m, client)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	at := time.Now()
	if _, err := client.Compact(ctx, loaded.revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	compaction := time.Since(at)
	compacted := measure(t, m, client)
	at = time.Now()
	if _, err := client.Defragment(ctx, m.Endpoint); err != nil {
		t.Fatal(err)
	}
	defragmentation := time.Since(at)
	left := measure(t, m, client)

	n := int64(*deliveries)
	history, record, memory := (loaded.inUse-before.inUse)/n, (left.inUse-before.inUse)/n,
		(loaded.memory-before.memory)/n
	t.Logf("deliveries                          %d in %v, %.0f a second", n, took.Round(time.Millisecond),
		float64(n)/took.Seconds())
	t.Logf("revisions a delivery                %.2f", float64(loaded.revision-before.revision)/float64(n))
	t.Logf("disk a delivery, until compaction   %d bytes", history)
	t.Logf("disk a record, afterwards           %d bytes", record)
	t.Logf("file after the load, and compacted  %.1f MiB, %.1f MiB of them in use", mib(compacted.file),
		mib(compacted.inUse))
	t.Logf("file after defragmentation          %.1f MiB", mib(left.file))
	t.Logf("memory a record (etcd's RssAnon)    %d bytes", memory)
	t.Logf("compaction, defragmentation         %v, %v", compaction.Round(time.Millisecond),
		defragmentation.Round(time.Millisecond))
	// What docs/etcd.md calculates with, with room for how small a test's load is.
	if history > 8<<10 || record > 3<<10 {
		t.Errorf("a delivery takes %d bytes, and leaves %d: more than docs/etcd.md calculates with", history, record)
	}
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// load sends n deliveries over 32 connections.
func load(t *testing.T, addr string, n int) {
	t.Helper()
	const connections = 32
	var senders sync.WaitGroup
	wrong := make(chan string, connections)
	for c := range connections {
		senders.Go(func() {
			conn := testkit.Dial(t, addr)
			for i := c; i < n; i += connections {
				if i/connections%200 == 199 { // testkit gives a connection no more time than a test may take
					_ = conn.Close()
					conn = testkit.Dial(t, addr)
				}
				conn.Say(testkit.Request(fmt.Sprintf("/fail-fast/account-%d", i), `{"id":"evt"}`,
					fmt.Sprintf("Idempotency-Key: evt_%016d", i)))
				if a, err := conn.TryAnswer("POST"); err != nil || a.Status != 200 {
					wrong <- fmt.Sprintf("delivery %d: %v, %v", i, a, err)
					return
				}
			}
		})
	}
	senders.Wait()
	select {
	case text := <-wrong:
		t.Fatal(text)
	default:
	}
}
