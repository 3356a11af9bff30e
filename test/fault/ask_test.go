package fault

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// ledgerOfEffects is a service without any idempotency: each request takes effect, unless the
// service dies before it does. It says what has taken effect.
type ledgerOfEffects struct {
	mu      sync.Mutex
	effects map[string]int
	deaths  int
}

func (l *ledgerOfEffects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if event, is := strings.CutPrefix(r.URL.Path, "/effects/"); is {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.effects[event] == 0 {
			w.WriteHeader(http.StatusNotFound)
		}
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	dies := rand.IntN(10) < 3
	before := rand.IntN(2) == 0
	l.mu.Lock()
	if dies {
		l.deaths++
	}
	if !dies || !before {
		l.effects[r.Header.Get("Idempotency-Key")]++
	}
	l.mu.Unlock()
	if dies {
		panic(http.ErrAbortHandler) // the connection breaks without an answer
	}
}

// However often the service and the replicas die, each event takes effect once: the service is
// asked what became of each that it did not answer.
func TestEachEventTakesEffectOnceThoughTheServiceAndReplicasDie(t *testing.T) {
	t.Parallel()
	const senders, each, kills = 6, 40, 4
	service := &ledgerOfEffects{effects: map[string]int{}}
	front := httptest.NewServer(service)
	t.Cleanup(front.Close)
	s := arranged(t, etcdtest.Start(t), "ask")
	s.config.Endpoints, s.config.Upstream = []string{s.etcd.Endpoint}, strings.TrimPrefix(front.URL, "http://")
	s.config.Routes = cluster.Route("hook", `lock: {release_delay: 0s}, idempotency: {on_unknown: ask, attempts: 0},
     ask: {url: "/effects/{header.Idempotency-Key}", executed: {status: 200}, not_executed: {status: 404}, after: 0s}`)
	var mu sync.Mutex
	replicas := make([]*cluster.Replica, 3)
	door := func() string {
		mu.Lock()
		defer mu.Unlock()
		return replicas[rand.IntN(len(replicas))].Door
	}
	replace := func(i int) {
		fresh := cluster.StartReplica(t, programs, s.config)
		mu.Lock()
		defer mu.Unlock()
		replicas[i] = fresh
	}
	for i := range replicas {
		replace(i)
	}
	var settled atomic.Int64
	var sending sync.WaitGroup
	for n := range senders {
		sending.Go(func() {
			for i := range each {
				d := cluster.Delivery{Route: "hook", Workflow: fmt.Sprint(i % 20), Event: fmt.Sprintf("%d-%d", n, i)}
				testkit.Until(t, d.Event+" is settled", func() bool {
					a := s.sender.Send(context.Background(), door(), d)
					return a.Status == http.StatusOK
				})
				settled.Add(1)
			}
		})
	}
	for k := range kills {
		testkit.Until(t, "more events are settled", func() bool {
			return settled.Load() > int64((k+1)*senders*each/(kills+1))
		})
		i := rand.IntN(len(replicas))
		replicas[i].Kill()
		replace(i)
	}
	sending.Wait()
	service.mu.Lock()
	defer service.mu.Unlock()
	t.Logf("%d events, %d deaths of the service, %d of a replica", senders*each, service.deaths, kills)
	if len(service.effects) != senders*each {
		t.Errorf("%d events took effect, want %d", len(service.effects), senders*each)
	}
	for event, n := range service.effects {
		if n != 1 {
			t.Errorf("%s took effect %d times", event, n)
		}
	}
}
