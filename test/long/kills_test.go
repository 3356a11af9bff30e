package long

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// call is one execution of an event by the service.
type call struct{ began, answered time.Time }

// TestKills kills a replica with SIGKILL at random instants, again and again, while 16 senders
// bring events to a service that answers at once. It says how many events ran twice, and of how
// many of them the kernel had the service's whole answer before the kill: no file that a process
// writes between its service's answer and its record could prove more of them.
func TestKills(t *testing.T) {
	if *kills == 0 {
		t.Skip("runs with -kills 200")
	}
	var mu sync.Mutex
	calls := map[int][]call{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		_, _ = io.Copy(io.Discard, r.Body)
		n, _ := strconv.Atoi(r.Header.Get("Idempotency-Key"))
		w.Header().Set("Content-Length", "2")
		_, _ = io.WriteString(w, "ok")
		_ = http.NewResponseController(w).Flush()
		answered := time.Now()
		mu.Lock()
		calls[n] = append(calls[n], call{began, answered})
		mu.Unlock()
	}))
	t.Cleanup(s.Close)
	member := testkit.StartEtcd(t, etcdProgram, 1, "--unsafe-no-fsync=false")[0]
	folder := fmt.Sprintf("data_dir: %q", t.TempDir())
	var door atomic.Pointer[string]
	start := func() *replica {
		r := startReplica(t, member.Endpoint, s.URL, "on_unknown: retry", folder)
		door.Store(&r.Addr)
		return r
	}
	r := start()
	ctx, cancel := context.WithCancel(context.Background())
	var senders sync.WaitGroup
	var sent atomic.Int64
	for range 16 {
		senders.Go(func() {
			client := &http.Client{Timeout: 10 * time.Second}
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				n := int(sent.Add(1))
				for deliver(client, *door.Load(), n, workflows) != http.StatusOK {
					pause(20 * time.Millisecond)
				}
			}
		})
	}
	var died []time.Time
	for range *kills {
		pause(300*time.Millisecond + rand.N(700*time.Millisecond))
		died = append(died, time.Now())
		r.Kill()
		r = start()
	}
	cancel()
	senders.Wait()
	missing, twice, answered := 0, 0, 0
	for n := 1; n <= int(sent.Load()); n++ {
		of := calls[n]
		if len(of) == 0 {
			missing++
		}
		for _, c := range of[:max(0, len(of)-1)] {
			twice++
			if next := nextAfter(died, c.began); !next.IsZero() && c.answered.Before(next) {
				answered++
			}
		}
	}
	t.Logf("%s: %d kills, %d events; %d never ran, %d ran again, of which the service's whole answer had come "+
		"before the kill: %d", machine(), *kills, sent.Load(), missing, twice, answered)
	if missing > 0 {
		t.Fail()
	}
}

// nextAfter returns the first of all that is after at; zero: there is none.
func nextAfter(all []time.Time, at time.Time) time.Time {
	for _, t := range all {
		if t.After(at) {
			return t
		}
	}
	return time.Time{}
}
