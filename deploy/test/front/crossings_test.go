package front

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"hooklock/test/testkit"
)

// impatient shortens how long a front waits for an answer, so that a frozen replica costs seconds.
var impatient = map[string][]string{
	"nginx":   {"proxy_read_timeout 60s;", "proxy_read_timeout 3s;"},
	"haproxy": {"timeout server 60s", "timeout server 3s"},
	"apache":  {"ProxyTimeout 60", "ProxyTimeout 3"},
	"caddy":   {"response_header_timeout 60s", "response_header_timeout 3s"},
	"traefik": {"responseHeaderTimeout: 60s", "responseHeaderTimeout: 3s"},
}

// curlUntilDone sends each event with a curl of its own, which repeats it after any failure as a
// sender does. It returns what the curls said of events that failed for good, and the number of
// repeats.
func curlUntilDone(t *testing.T, front, name string, events int) (failed []string, repeats int) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	dir := t.TempDir() // curl 7.88.1 repeats nothing if its output is /dev/null: exit status 23
	for i := range events {
		all.Go(func() {
			c := exec.Command("curl", "--no-progress-meter", "-o", fmt.Sprintf("%s/%s-%d", dir, name, i), "-w",
				"%{http_code}", "--retry", "20", "--retry-all-errors",
				"--retry-delay", "1", "-H", "Host: "+site, "-H", "Idempotency-Key: 1", "-d", `{"id":1}`,
				fmt.Sprintf("http://%s/plain/%s-%d", front, name, i))
			out, err := c.CombinedOutput()
			mu.Lock()
			defer mu.Unlock()
			repeats += strings.Count(string(out), "Will retry")
			if err != nil || !strings.HasSuffix(string(out), "200") {
				failed = append(failed, fmt.Sprintf("%d: %v %s", i, err, out))
			}
		})
	}
	all.Wait()
	return failed, repeats
}

// A frozen process still has a kernel that accepts connections and takes requests. When it wakes up
// it reads those that senders have given up.
func TestEachEventRunsOnceWhileAReplicaDrainsAndWhileItIsFrozen(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: no real sender repeats its deliveries")
	}
	inFront(t, func(t *testing.T, p *proxy) {
		up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
		etcd := testkit.StartEtcd(t, etcdProgram, 1)[0].Endpoint
		first, second, health := testkit.FreePort(t), elsewhere(testkit.FreePort(t)), testkit.FreePort(t)
		_, port, _ := strings.Cut(health, ":")
		frozen, drained := replica(t, etcd, up.URL, first, health), replica(t, etcd, up.URL, second, elsewhere(health))
		hasty := *p
		hasty.exchange = impatient[p.name]
		front := hasty.as(t, &setup{backends: []string{first, second}, health: port})
		const events = 12
		ran := func(step string) {
			t.Helper()
			for i := range events {
				if target := fmt.Sprintf("/plain/%s-%d", step, i); len(up.Received(target)) != 1 {
					t.Errorf("%s ran %d times", target, len(up.Received(target)))
				}
			}
		}
		frozen.Freeze(t)
		failed, repeats := curlUntilDone(t, front, "frozen", events)
		t.Logf("while one replica is frozen: %d repeats", repeats)
		if len(failed) > 0 {
			t.Errorf("%d events got no 200: %s", len(failed), failed[0])
		}
		frozen.Thaw(t)
		for i := range events { // by then it has read what lay in its sockets
			testkit.Until(t, "the thawed replica answers", func() bool {
				return testkit.Post(t, first, fmt.Sprintf("/plain/frozen-%d", i), `{"id":1}`,
					"Idempotency-Key: 1").Status == 200
			})
		}
		ran("frozen")
		drained.Signal(t, syscall.SIGTERM)
		failed, repeats = curlUntilDone(t, front, "drained", events)
		t.Logf("while one replica drains: %d repeats", repeats)
		if len(failed) > 0 {
			t.Errorf("%d events got no 200: %s", len(failed), failed[0])
		}
		ran("drained")
	})
}

// HAProxy and Apache hang up on a sender whose later request on a connection got no answer. curl
// then repeats a POST by itself, as wget and Java's HttpURLConnection do. The other fronts answer
// 502.
func TestASenderThatRepeatsByItselfRunsNoEventTwice(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed: no real sender repeats its deliveries")
	}
	inFront(t, func(t *testing.T, p *proxy) {
		work := newHeld()
		up := testkit.NewUpstream(t, func(r *testkit.Received) string {
			if r.Target == "/plain/held" {
				return work.handle(r)
			}
			return testkit.OK("done")
		})
		etcd := testkit.StartEtcd(t, etcdProgram, 1)[0].Endpoint
		first, second, health := testkit.FreePort(t), elsewhere(testkit.FreePort(t)), testkit.FreePort(t)
		_, port, _ := strings.Cut(health, ":")
		both := []*testkit.Hooklock{replica(t, etcd, up.URL, first, health),
			replica(t, etcd, up.URL, second, elsewhere(health))}
		front := p.as(t, &setup{backends: []string{first, second}, health: port})
		type end struct {
			said string
			err  error
		}
		ended := make(chan end, 1)
		go func() { // one curl, one connection
			out, err := exec.Command("curl", "-s", "-w", " %{http_code} ", "-H", "Host: "+site, "-H",
				"Idempotency-Key: 1", "-d", `{"id":1}`,
				"http://"+front+"/plain/before", "http://"+front+"/plain/held").CombinedOutput()
			ended <- end{string(out), err}
		}()
		testkit.Receive(t, "the second delivery", work.came)
		runs := slices.IndexFunc(both, func(h *testkit.Hooklock) bool {
			return regexp.MustCompile(`(?m)^hooklock_lock_active(\{.*\})? 1$`).MatchString(h.Metrics(t))
		})
		if runs < 0 {
			t.Fatal("no replica says that it runs the event")
		}
		both[runs].Kill()
		curl := testkit.Receive(t, "the end of curl", ended)
		want := "502"
		if p.name == "haproxy" || p.name == "apache" {
			want = "409"
		}
		if curl.err != nil || !strings.HasPrefix(curl.said, "done 200 ") ||
			!strings.HasSuffix(curl.said, " "+want+" ") {
			t.Errorf("curl got %v %s, want %s at last", curl.err, curl.said, want)
		}
		if want == "409" && !strings.Contains(curl.said, `"code":"execution_in_flight"`) {
			t.Errorf("curl got %s", curl.said)
		}
		if n := len(up.Received("/plain/held")); n != 1 {
			t.Errorf("the event ran %d times", n)
		}
	})
}
