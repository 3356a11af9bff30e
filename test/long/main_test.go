package long

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"hooklock/test/testkit"
)

var (
	hours = flag.Float64("hours", 0, "hours of TestHours; 0: it is skipped")
	rate  = flag.Int("rate", 200,
		"new events a second of TestHours, a tenth of what the machine can do, and of TestRunningAgain")
	again  = flag.Int("again", 0, "events of TestRunningAgain; 0: it is skipped")
	kills  = flag.Int("kills", 0, "kills of TestKills; 0: it is skipped")
	events = flag.Int("events", 0, "remembered events of TestManyEvents; 0: it is skipped")

	hooklockProgram, etcdProgram string
)

func TestMain(m *testing.M) {
	flag.Parse()
	testkit.Main(m, func(dir string) (err error) {
		if hooklockProgram, err = testkit.Build(dir, "hooklock", testkit.HooklockPackage, false); err != nil {
			return err
		}
		etcdProgram, err = testkit.Build(dir, "etcd", testkit.EtcdPackage, false)
		return err
	})
}

// service counts how often each event was executed. Events have numbers from 0 on.
type service struct {
	*httptest.Server
	ran []atomic.Uint32
}

func newService(t *testing.T, events int) *service {
	s := &service{ran: make([]atomic.Uint32, events)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if n, err := strconv.Atoi(r.Header.Get("Idempotency-Key")); err == nil {
			s.ran[n].Add(1)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// count returns how many of the first n events never ran, and how many ran more than once.
func (s *service) count(n int) (missing, twice int) {
	for i := range s.ran[:n] {
		switch ran := s.ran[i].Load(); {
		case ran == 0:
			missing++
		case ran > 1:
			twice++
		}
	}
	return missing, twice
}

// replica is a hooklock process whose log is a file.
type replica struct {
	*testkit.Hooklock
	log string
}

func startReplica(t *testing.T, etcd, service, idempotency string, more ...string) *replica {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	listen, admin := testkit.FreePort(t), testkit.FreePort(t)
	r := &replica{log: log.Name()}
	r.Hooklock = testkit.StartServeTo(t, log, hooklockProgram, fmt.Sprintf(`listen: %s
admin: {listen: %s}
upstream: %s
log: {level: warn}
etcd: {endpoints: [%s]}
routes:
  - {name: hook, path: "/hook/{workflow}", workflow: "{path.workflow}", lock: {release_delay: 0s}, idempotency: {%s}}
%s
`, listen, admin, service, etcd, idempotency, strings.Join(more, "\n")))
	r.Addr, r.Admin = listen, admin
	t.Cleanup(func() {
		if text, err := os.ReadFile(r.log); err == nil && t.Failed() {
			t.Logf("the last of a replica's log: %s", text[max(0, len(text)-2000):])
		}
	})
	testkit.Until(t, "the replica is ready", func() bool { return get("http://"+admin+"/readyz") == http.StatusOK })
	return r
}

// get returns the status of an answer; 0: none came.
func get(url string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// deliver sends one event and returns the status of its answer; 0: none came.
func deliver(client *http.Client, door string, event, workflows int) int {
	url := fmt.Sprintf("http://%s/hook/w%d", door, event%workflows)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url,
		strings.NewReader(`{"paid":true}`))
	if err != nil {
		return 0
	}
	req.Host = "hooks.example" // it is part of what a repetition must have in common
	req.Header.Set("Idempotency-Key", strconv.Itoa(event))
	res, err := client.Do(req)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode
}

// memory returns the resident memory of a process in MB, and how many descriptors it has open.
func memory(t *testing.T, pid int) (mb, descriptors int) {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(text), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			mb = kb / 1000
		}
	}
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	return mb, len(open)
}

// connect connects to a member of etcd.
func connect(t *testing.T, endpoint string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// size returns the number of keys in etcd, and what its file has in use, in MB.
func size(t *testing.T, c *clientv3.Client) (keys, mb int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	all, err := c.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	status, err := c.Status(ctx, c.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	return all.Count, status.DbSizeInUse / 1_000_000
}

// percentile returns the value below which p of 1 000 are, in milliseconds.
func percentile(took []time.Duration, p int) string {
	if len(took) == 0 {
		return "–"
	}
	slices.Sort(took)
	return fmt.Sprintf("%.1f", float64(took[min(len(took)*p/1000, len(took)-1)])/float64(time.Millisecond))
}

// machine says on what a table was measured.
func machine() string {
	return fmt.Sprintf("%s, %d cores, %s", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version())
}

// pause is a part of a schedule, or of a sender's patience: there is no event to wait for.
func pause(d time.Duration) { <-time.After(d) }
