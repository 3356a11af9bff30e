package long

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// ledgerOf is a service that books events. Until it is mended it books refunds as payments, and
// answers 200 all the same.
type ledgerOf struct {
	mu       sync.Mutex
	mended   bool
	booked   map[int]int      // what it last booked of each event
	again    map[string][]int // the old refunds that it booked since it is mended, by workflow
	running  map[string]bool
	overlaps int
	old      int // events from this number on are new
}

func (l *ledgerOf) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	n, _ := strconv.Atoi(r.Header.Get("Idempotency-Key"))
	l.enter(n, r.URL.Path)
	pause(time.Millisecond) // long enough for another one to meet it
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[r.URL.Path] = false
}

func (l *ledgerOf) enter(n int, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[path] {
		l.overlaps++
	}
	l.running[path] = true
	if l.booked[n] = n; isRefund(n) && l.mended {
		if l.booked[n] = -n; n < l.old {
			l.again[path] = append(l.again[path], n)
		}
	}
}

// isRefund is true of 3 of 10 events of each workflow.
func isRefund(n int) bool { return n/workflows%10 < 3 }

// bringEvent delivers an event until it is answered 200, and returns how long that took.
func bringEvent(client *http.Client, door string, n int) time.Duration {
	kind := "payment"
	if isRefund(n) {
		kind = "refund"
	}
	for began := time.Now(); ; pause(5 * time.Millisecond) {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost,
			fmt.Sprintf("http://%s/hook/w%d", door, n%workflows), strings.NewReader(`{"paid":true}`))
		if err != nil {
			panic(err)
		}
		r.Host = "hooks.example"
		r.Header.Set("Idempotency-Key", strconv.Itoa(n))
		r.Header.Set("Kind", kind)
		answer, err := client.Do(r)
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return time.Since(began)
		}
	}
}

// TestRunningAgain lets 3 of 10 settled events run again, which a service got wrong, while new ones
// come, and compares its books with those of a service that was always right.
func TestRunningAgain(t *testing.T) {
	if *again == 0 {
		t.Skip("runs with -again 10000")
	}
	l := &ledgerOf{booked: map[int]int{}, again: map[string][]int{}, running: map[string]bool{}, old: *again}
	s := httptest.NewServer(l)
	t.Cleanup(s.Close)
	member := testkit.StartEtcd(t, etcdProgram, 1)[0]
	r := startReplica(t, member.Endpoint, s.URL,
		`retention: 24h}, requests: {keep: 24h}, labels: {kind: "{header.Kind}"`,
		fmt.Sprintf("park_store: {dir: %q}", t.TempDir()+"/requests"))
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: workflows}}
	defer client.CloseIdleConnections()
	bring := func(from, to int, every time.Duration, until <-chan struct{}) (took []time.Duration) {
		var mu sync.Mutex
		var senders sync.WaitGroup
		for w := range workflows {
			senders.Go(func() {
				for n := from + w; n < to; n += workflows {
					one := bringEvent(client, r.Addr, n)
					mu.Lock()
					took = append(took, one)
					mu.Unlock()
					select {
					case <-until:
						return
					case <-time.After(max(0, every-one)):
					}
				}
			})
		}
		senders.Wait()
		return took
	}
	began := time.Now()
	before := bring(0, *again, 0, nil)
	first := time.Since(began)
	testkit.Until(t, "the request of the newest is kept", func() bool {
		return strings.Contains(said(t, r, "show", strconv.Itoa(*again-1), "-o", "json"), `"requestStored": "yes"`)
	})
	l.mu.Lock()
	l.mended = true
	l.mu.Unlock()
	over := make(chan struct{})
	job := ""
	began = time.Now()
	var running sync.WaitGroup
	running.Go(func() {
		defer close(over)
		job = said(t, r, "rerun", "--again", "--route", "hook", "--label", "kind=refund", "--rate", "1000", "--reason",
			"they were booked as payments")
	})
	beside := bring(*again, 1<<40, time.Second*time.Duration(workflows)/time.Duration(*rate), over)
	running.Wait()
	took := time.Since(began)

	wrong := 0
	for n, booked := range l.booked {
		if right := map[bool]int{true: -n, false: n}[isRefund(n)]; booked != right {
			wrong++
		}
	}
	count, disorder := 0, 0
	for _, all := range l.again {
		if count += len(all); !slices.IsSorted(all) {
			disorder++
		}
	}
	t.Logf(
		"%s: %d events in %.1f s; %d of them ran again in %.1f s, beside %d new ones (%.0f a second, p50 %s ms, p99 %s ms; "+
			"without: p50 %s ms)", machine(), *again, first.Seconds(), count, took.Seconds(), len(beside),
		float64(len(beside))/took.Seconds(), percentile(beside, 500), percentile(beside, 990), percentile(before, 500))
	t.Logf("%d events are booked wrong, %d overlapped, %d workflows ran again out of order; the job says: %s", wrong,
		l.overlaps, disorder, job)
	if cmp.Or(wrong, l.overlaps, disorder) != 0 {
		t.Fail()
	}
}

// said runs the command line against a replica, and returns what it says.
func said(t *testing.T, r *replica, args ...string) string {
	t.Helper()
	c := exec.CommandContext(context.Background(), hooklockProgram, append(args, "--admin", "http://"+r.Admin)...)
	c.Dir = filepath.Dir(r.Config) // its token is in data_dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("hooklock %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
