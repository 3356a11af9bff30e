//go:build linux

package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discovery "k8s.io/client-go/kubernetes/typed/discovery/v1"
)

// service stands in for kube-proxy: it knows the ready endpoints of a Service, some tenths of a
// second late, as a node does.
type service struct {
	only  string // the name of a port; empty: all of them
	mu    sync.Mutex
	at    []string // host:port
	next  int
	ended sync.WaitGroup
}

func follow(t *testing.T, namespace, name string) *service {
	t.Helper()
	clients, err := discovery.NewForConfig(control.API)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); s.ended.Wait() })
	s.ended.Go(func() {
		for tick := time.NewTicker(300 * time.Millisecond); ; {
			slices, err := clients.EndpointSlices(namespace).List(ctx,
				metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + name})
			if err == nil {
				var at []string
				for _, slice := range slices.Items {
					for _, port := range slice.Ports {
						for _, e := range slice.Endpoints {
							if port.Port != nil && (s.only == "" || *port.Name == s.only) &&
								e.Conditions.Ready != nil && *e.Conditions.Ready {
								at = append(at, fmt.Sprintf("%s:%d", e.Addresses[0], *port.Port))
							}
						}
					}
				}
				s.mu.Lock()
				s.at = at
				s.mu.Unlock()
			}
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	})
	return s
}

// pick is an endpoint, one after the other; empty where there is none.
func (s *service) pick() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.at) == 0 {
		return ""
	}
	s.next++
	return s.at[s.next%len(s.at)]
}

func (s *service) awaitEndpoints(t *testing.T, n int, port string) {
	t.Helper()
	Await(t, fmt.Sprintf("the Service has %d endpoints with port %s", n, port), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, at := range s.at {
			if !strings.HasSuffix(at, ":"+port) {
				return false
			}
		}
		return len(s.at) == n
	})
}

// sender delivers until it is stopped, each delivery once, as many at a time as it has senders.
type sender struct {
	path  string
	stop  chan struct{}
	ended sync.WaitGroup

	mu     sync.Mutex
	sent   int
	failed []string
}

// front is an address that deliveries are sent to.
type front struct {
	client *http.Client
	url    string
	host   string // empty: that of url
}

// send begins to deliver to path, at the address that where gives each time.
func send(path string, where func() string) *sender {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	return sendBy(path, func(path, key string) string {
		return front{client, "http://" + where(), ""}.deliver(path, key)
	})
}

func sendBy(path string, deliver func(path, key string) string) *sender {
	s := &sender{path: path, stop: make(chan struct{})}
	for worker := range 4 {
		s.ended.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-s.stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
				said := deliver(path, fmt.Sprintf("%s-%d-%d", filepath.Base(path), worker, i))
				s.mu.Lock()
				s.sent++
				if said != "" {
					s.failed = append(s.failed, said)
				}
				s.mu.Unlock()
			}
		})
	}
	return s
}

// deliver says what went wrong, or nothing.
func (f front) deliver(path, key string) string {
	req, err := http.NewRequest(http.MethodPost, f.url+path, strings.NewReader(`{"id":"`+key+`"}`))
	if err != nil {
		return err.Error()
	}
	req.Host = f.host
	req.Header.Set("Idempotency-Key", key)
	res, err := f.client.Do(req)
	if err != nil {
		return key + ": " + err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return fmt.Sprintf("%s: %s %v: %s %v", key, res.Status, res.Header, body, err)
	}
	return ""
}

// sentSoFar is how many deliveries have been answered.
func (s *sender) sentSoFar() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// more waits until some more deliveries have been answered: what was just done has met traffic.
func (s *sender) more(t *testing.T, n int) {
	t.Helper()
	from := s.sentSoFar()
	Await(t, "deliveries go on", func() bool { return s.sentSoFar() >= from+n })
}

// end stops it, and fails the test for deliveries that were not answered with 200, or did not run
// just once.
func (s *sender) end(t *testing.T) {
	t.Helper()
	close(s.stop)
	s.ended.Wait()
	for i, f := range s.failed {
		if i < 5 {
			t.Errorf("%s", f)
		}
	}
	times := ran(t, s.path)
	twice := 0
	for key, n := range times {
		if n != 1 {
			twice++
			t.Errorf("%s ran %d times", key, n)
		}
	}
	t.Logf("%d deliveries, %d not answered with 200, %d ran more than once", s.sent, len(s.failed), twice)
	if len(s.failed) > 0 || len(times) != s.sent {
		t.Errorf("%d of %d deliveries failed, %d ran", len(s.failed), s.sent, len(times))
	}
}
