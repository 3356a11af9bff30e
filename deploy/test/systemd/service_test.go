package systemd

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// door is where senders come in, as the packages have it.
const door = "127.0.0.1:8080"

// service is what stands behind Hooklock in the machine: it counts what it is asked to do.
type service struct {
	mu   sync.Mutex
	runs map[string]int // by event
}

// serveAt starts the service where the packages' sidecar.yaml looks for it.
func (m *machine) serveAt(address string) *service {
	m.t.Helper()
	s := &service{runs: map[string]int{}}
	server := &http.Server{Handler: s}
	ended := make(chan struct{})
	ln := m.listen(address)
	go func() { defer close(ended); _ = server.Serve(ln) }()
	m.t.Cleanup(func() { _ = server.Close(); <-ended })
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event := r.Header.Get("Idempotency-Key")
	s.mu.Lock()
	s.runs[event]++
	n := s.runs[event]
	s.mu.Unlock()
	fmt.Fprintf(w, "%s ran %d", event, n)
}

// once checks that each of the events ran exactly once, and none else did.
func (s *service) once(t *testing.T, events int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.runs) != events {
		t.Errorf("%d events ran, of %d", len(s.runs), events)
	}
	for event, n := range s.runs {
		if n != 1 {
			t.Errorf("%s ran %d times", event, n)
		}
	}
}

// deliver sends one event to address and returns the answer, or why there is none.
func (m *machine) deliver(address, event string) (*testkit.Answer, error) {
	nc, err := m.dial(m.t.Context(), "tcp", address)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	c := testkit.NewConn(m.t, nc)
	c.Say(testkit.Request("/hooks/"+event, `{"id":1}`, "Idempotency-Key: "+event, "Connection: close"))
	return c.TryAnswer("POST")
}

// delivers checks that the event gets its one answer, by that decision.
func (m *machine) delivers(event, decision string) {
	m.t.Helper()
	a, err := m.deliver(door, event)
	if err != nil || a.Status != 200 || a.Decision() != decision || string(a.Body) != event+" ran 1" {
		m.t.Errorf("%s: %v, %v; want %s", event, a, err, decision)
	}
}

// install installs a package, from the outside.
func (m *machine) install(deb string) {
	m.t.Helper()
	m.put(deb, "/root/"+filepath.Base(deb))
	m.run("dpkg --install /root/" + filepath.Base(deb))
}

const config = "/etc/hooklock/sidecar.yaml"

// configured is the packages' file with a route, and whatever else is given.
func (m *machine) configured(more string) string {
	m.t.Helper()
	text := kit.Read(m.t, kit.Deploy("packages/sidecar.yaml"))
	const none = "\nroutes: []\n"
	if strings.Count(text, none) != 1 {
		m.t.Fatal("the packages' sidecar.yaml does not say routes: []")
	}
	return strings.Replace(text, none,
		"\n"+more+
			"\nroutes:\n  - {name: orders, path: \"/hooks/{w}\", workflow: \"orders/{path.w}\", lock: {release_delay: 0s}}\n", 1)
}

// running is a machine with a Hooklock from the package, which has a route to a service.
func running(t *testing.T) (*machine, *service) {
	t.Helper()
	m := boot(t)
	s := m.serveAt("127.0.0.1:8081")
	m.install(oldPackage)
	m.write(config, m.configured(""))
	m.run("systemctl enable --now hooklock")
	return m, s
}

// senders send events one after the other, each until it has its answer, until stop is called. It
// returns how many events that were, and how many connections were refused or broke off.
func (m *machine) senders(n int) (stop func() (events, failures int)) {
	var all sync.WaitGroup
	var mu sync.Mutex
	over := make(chan struct{})
	events, failures := 0, 0
	for i := range n {
		all.Go(func() {
			for j := 0; ; j++ {
				select {
				case <-over:
					return
				default:
				}
				event := fmt.Sprintf("event-%d-%d", i, j)
				for {
					a, err := m.deliver(door, event)
					if err == nil && a.Status == 200 {
						break
					}
					mu.Lock()
					if failures++; failures < 10 {
						m.t.Logf("%s: %v, %v", event, a, err)
					}
					mu.Unlock()
					if m.t.Context().Err() != nil {
						return
					}
				}
				mu.Lock()
				events++
				mu.Unlock()
			}
		})
	}
	return func() (int, int) {
		close(over)
		all.Wait()
		return events, failures
	}
}
