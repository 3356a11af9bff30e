package front

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"hooklock/test/testkit"
)

// replica starts a Hooklock at a given address; several share what etcd has.
func replica(t *testing.T, etcd, upstream, listen, health string) *testkit.Hooklock {
	t.Helper()
	return testkit.Serve(t, hooklockProgram, fmt.Sprintf(`
listen: %s
admin: {listen: "127.0.0.1:0"}
health: {listen: %q}
upstream: %s
etcd: {endpoints: [%q], request_timeout: 10s}
routes:
  - {name: plain, match: {path: "/plain/{w}", methods: [POST, PUT]}, workflow: "plain/{path.w}", lock: {release_delay: 0s}}
`, listen, health, upstream, etcd))
}

// burst sends events side by side over connections of their own, and on kept ones, and returns
// those that got no 200.
func burst(t *testing.T, front, name string, senders, each int) (failed []string) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range senders {
		all.Go(func() {
			var sender *testkit.Conn
			for j := range each {
				path := fmt.Sprintf("/plain/%s-%d-%d", name, i, j)
				if sender != nil && i%2 == 0 {
					_ = sender.Close()
					sender = nil
				}
				if sender == nil {
					sender = testkit.Dial(t, front)
				}
				sender.Say(testkit.Request(path, `{"id":1}`, "Idempotency-Key: 1"))
				a, err := sender.TryAnswer("POST")
				if err != nil || a.Status != 200 || a.Decision() != "executed" {
					mu.Lock()
					failed = append(failed, fmt.Sprintf("%s: %v, %v", path, a, err))
					mu.Unlock()
					sender = nil
				} else if strings.Contains(a.Raw, "\r\nConnection: close\r\n") {
					sender = nil
				}
			}
		})
	}
	all.Wait()
	return failed
}

// elsewhere is the same port of another address of this machine.
func elsewhere(address string) string { return strings.Replace(address, "127.0.0.1:", "127.0.0.2:", 1) }

// forgets waits until p has no connection to a replica that has died: what is sent on such a one
// may have arrived. Caddy has also to find out that it is dead.
func (p *proxy) forgets(t *testing.T, front, replica string) {
	t.Helper()
	ip, port, _ := net.SplitHostPort(replica)
	n, _ := strconv.Atoi(port)
	b := net.ParseIP(ip).To4()
	remote := fmt.Sprintf("%02X%02X%02X%02X:%04X", b[3], b[2], b[1], b[0], n)
	testkit.Until(t, "no connection to "+replica, func() bool {
		table, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			t.Skipf("connections cannot be seen here: %v", err)
		}
		for line := range strings.Lines(string(table)) {
			if f := strings.Fields(line); len(f) > 3 && f[2] == remote && f[3] == established {
				return false
			}
		}
		return true
	})
	if p.name == "caddy" {
		testkit.Until(t, "Caddy knows that a replica is dead", func() bool {
			for range 64 { // it chooses at random: of hundreds of tries, ten in a row may go to the other one
				if a := testkit.Exchange(t, front, "GET /settle HTTP/1.1\r\nHost: "+site+
					"\r\nConnection: close\r\n\r\n"); a.Status != 200 {
					return false
				}
			}
			return true
		})
	}
}

// established is how /proc/net/tcp spells it. A connection that the dead side has closed is noticed
// before it is used.
const established = "01"

// finds waits until p sends deliveries to a replica that has come back: those who look after their
// replicas do so later.
func (p *proxy) finds(t *testing.T, front string, h *testkit.Hooklock) {
	t.Helper()
	testkit.Until(t, "the replica gets deliveries again", func() bool {
		testkit.Exchange(t, front, "GET /settle HTTP/1.1\r\nHost: "+site+"\r\nConnection: close\r\n\r\n")
		return strings.Contains(h.Metrics(t), `http_server_request_duration_seconds_count{`)
	})
}

func TestWhileOneReplicaIsDeadNoDeliveryFails(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
		etcd := testkit.StartEtcd(t, etcdProgram, 1)[0].Endpoint
		// one health port for both
		first, second, health := testkit.FreePort(t), elsewhere(testkit.FreePort(t)), testkit.FreePort(t)
		_, port, _ := strings.Cut(health, ":")
		doomed := replica(t, etcd, up.URL, first, health)
		other := replica(t, etcd, up.URL, second, elsewhere(health))
		front := p.as(t, &setup{backends: []string{first, second}, health: port})
		// many at once: a policy that counts for all of them together may look at the dead replica
		// alone
		const senders, each = 16, 50
		steps := []string{"both", "one-dead", "one-back", "other-dead"}
		for _, step := range steps {
			switch step {
			case "one-dead":
				doomed.Kill()
				<-doomed.Done()
				p.forgets(t, front, first)
			case "one-back":
				doomed = replica(t, etcd, up.URL, first, health)
				p.finds(t, front, doomed)
			case "other-dead":
				other.Kill()
				<-other.Done()
				p.forgets(t, front, second)
			}
			if failed := burst(t, front, step, senders, each); len(failed) > 0 {
				t.Errorf("%s: %d of %d deliveries failed, such as %s", step, len(failed), senders*each, failed[0])
			}
		}
		ran := map[string]int{}
		for _, r := range up.Requests() {
			_, rest, _ := strings.Cut(r, " ")
			target, _, _ := strings.Cut(rest, " ")
			if strings.HasPrefix(target, "/plain/") {
				ran[target]++
			}
		}
		if len(ran) != len(steps)*senders*each {
			t.Errorf("%d events ran, of %d", len(ran), len(steps)*senders*each)
		}
		for target, n := range ran {
			if n != 1 {
				t.Errorf("%s ran %d times", target, n)
			}
		}
	})
}

// Replicas are replaced one after the other: the second one ends when the first is ready, and not
// when HAProxy has looked at it again.
func TestHAProxySendsToAReplicaThatIsBackBeforeTheOtherOneEnds(t *testing.T) {
	t.Parallel()
	p := proxies[slices.IndexFunc(proxies, func(p *proxy) bool { return p.name == "haproxy" })]
	p.program(t)
	up := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	etcd := testkit.StartEtcd(t, etcdProgram, 1)[0].Endpoint
	first, second := testkit.FreePort(t), elsewhere(testkit.FreePort(t))
	replaced, other := replica(t, etcd, up.URL, first, ""), replica(t, etcd, up.URL, second, "")
	s := &setup{backends: []string{first, second}}
	front := p.as(t, s)
	replaced.Kill()
	<-replaced.Done()
	testkit.Until(t, "HAProxy knows that a replica is dead", func() bool {
		return strings.Contains(s.running.Stderr.String(), "is DOWN")
	})
	replica(t, etcd, up.URL, first, "")
	other.Kill()
	<-other.Done()
	p.forgets(t, front, second)
	if failed := burst(t, front, "replaced", 16, 2); len(failed) > 0 {
		t.Errorf("%d of 32 deliveries failed, such as %s", len(failed), failed[0])
	}
}

// What broke at one replica may have run there: it is not for the front to try the other one.
func TestADeliveryThatBreaksAtOneReplicaIsNotSentToTheOther(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		first, second := dying(t), dying(t)
		well := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer well.Close()
		_, port, _ := strings.Cut(well.Listener.Addr().String(), ":")
		front := p.as(t, &setup{backends: []string{first.Addr, second.Addr}, health: port})
		for _, method := range []string{"POST", "PUT"} {
			for i := range 4 {
				target := fmt.Sprintf("/dies-%s-%d", method, i)
				sender := testkit.Dial(t, front)
				sender.Say(testkit.RequestWith(method, target, `{"id":1}`))
				if a, err := sender.TryAnswer(method); err == nil && a.Status < 500 {
					t.Errorf("%s: %v", target, a)
				}
				if n := len(first.Received(target)) + len(second.Received(target)); n != 1 {
					t.Errorf("%s was sent %d times", target, n)
				}
			}
		}
	})
}
