package proxy

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/idem/naming"
	"hooklock/proxy/wire"
)

const patience = time.Minute

// service is the legacy service of a test: it runs an event when the test lets it.
type service struct {
	url    string
	begun  chan string        // the body of each event that reached it
	calls  chan idem.Callback // what it may speak about
	closed chan string        // the body of each event whose call was closed before it answered
	reply  chan string        // what to answer; "" = 200 with the event's number
	mu     sync.Mutex
	heads  []http.Header // of those that reached it
	runs   int
	now    int
	most   int
}

func newService(t *testing.T) *service {
	s := &service{begun: make(chan string, 1000), calls: make(chan idem.Callback, 1000),
		closed: make(chan string, 1000), reply: make(chan string, 1000)}
	server := &http.Server{Handler: s, ReadHeaderTimeout: patience}
	ln := local(t)
	go server.Serve(ln)
	t.Cleanup(func() { server.Close() })
	s.url = ln.Addr().String()
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.runs++
	s.heads = append(s.heads, r.Header)
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now--
		s.mu.Unlock()
	}()
	token, _ := strconv.ParseInt(r.Header.Get("Hooklock-Fencing-Token"), 10, 64)
	s.calls <- idem.Callback{Execution: idem.ExecutionID(r.Header.Get("Hooklock-Execution")), Token: token,
		Key: r.Header.Get("Hooklock-Callback-Key")}
	s.begun <- string(body)
	select {
	case answer := <-s.reply:
		ask, isHold := strings.CutPrefix(answer, "hold ")
		if isHold {
			w.Header().Set("Hooklock-Hold", ask)
		}
		if status, err := strconv.Atoi(answer); err == nil {
			w.WriteHeader(status)
		}
		io.WriteString(w, "answer to "+string(body))
	case <-r.Context().Done():
		s.closed <- string(body)
	}
}

func (s *service) seen() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.heads)
}

func (s *service) count() (runs, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs, s.most
}

func local(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// replica is one Hooklock, without its process.
type replica struct {
	url     string
	guard   *guard.Guard
	handler *Handler
	server  *Server
	store   *etcdlock.Store
	events  *events
}

// events remembers what an Observer heard.
type events struct {
	mu      sync.Mutex
	reports []Report
	names   []EventName
}

func (e *events) OnDelivered(r *Report) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reports = append(e.reports, *r)
}

func (e *events) Event(name EventName, _ *Report) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.names = append(e.names, name)
}

// heard reports whether there was such an event.
func (e *events) heard(name EventName) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.names, name)
}

func (e *events) OnPassed(*Report) {}

func newReplica(t *testing.T, etcd *etcdtest.Etcd, up *service, change func(*idem.Policy)) *replica {
	t.Helper()
	return newReplicaAt(t, etcd.Endpoint, up, change)
}

func newReplicaAt(t *testing.T, endpoint string, up *service, change func(*idem.Policy)) *replica {
	t.Helper()
	cache := guard.NewCache(0)
	var policy idem.Policy
	store, err := etcdlock.Open(etcdlock.Options{
		Endpoints: []string{endpoint}, SessionTTL: 10 * time.Second, OnForget: cache.Forget, OnReset: cache.Reset,
		Limit: func(string, idem.Slot) int { return policy.Concurrency },
	})
	if err != nil {
		t.Fatal(err)
	}
	base, end := context.WithCancelCause(context.Background())
	r := &replica{store: store, events: &events{}}
	r.guard = guard.New(guard.Options{
		Ledger: store.Ledger, Base: base, Cache: cache, MaxWaiting: func() int { return 1000 }, OvertakenWait: patience,
		// the default is short for many deliveries at once on a machine that has other work
		RequestTimeout: 6 * time.Second,
	})
	pool, unmatched := wire.NewUpstream(wire.Options{Addr: up.url, MaxIdle: 64}),
		wire.NewUpstream(wire.Options{Addr: up.url, MaxIdle: 64})
	keys, err := naming.NewKeys(naming.KeySpec{Route: "r", Workflow: "w/{path.w}", EventID: "{header.Idempotency-Key}"})
	if err != nil {
		t.Fatal(err)
	}
	pattern, err := ParsePattern("/hooks/{w}")
	if err != nil {
		t.Fatal(err)
	}
	policy = idem.Policy{
		Route: "r", Strategy: idem.FailFast, Idempotency: true, Retention: time.Hour, PayloadRetention: time.Minute,
		ReplayBody: 1 << 16,
		OnMismatch: idem.MismatchReject, OnUnknown: idem.UnknownRetry, InFlight: idem.Conflict,
		WaitTimeout: patience, MaxWaiting: 100, AttachTimeout: patience,
	}
	policy.Keep.Add(200, 299)
	change(&policy)
	quiet := slog.New(slog.DiscardHandler)
	r.handler = NewHandler(HandlerOptions{
		Gate: r.guard, Upstream: pool, Unmatched: unmatched, UpstreamHost: "u", Timeout: patience, Base: base,
		Observer: r.events, Log: quiet,
	}, &Rules{
		Table: Table{Routes: []*Route{{Name: "r", Pattern: pattern, Methods: []string{"POST"}, Keys: keys,
			Policy: policy}}},
		Limits: Limits{RequestBody: 1 << 20, HeadTimeout: patience, BodyTimeout: patience},
	})
	r.server = NewServer(ServerOptions{Handler: r.handler, MaxHead: 16 << 10, IdleTimeout: patience,
		MaxConnections: 1000, Log: quiet})
	r.server.fast.MaxIdleWorkerDuration = time.Millisecond
	door := local(t)
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(r.server.Listener(door)) }()
	r.url = "http://" + door.Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := store.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		end(guard.ErrShutdown)
		if err := r.server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		<-served
		if err := store.Close(ctx); err != nil {
			t.Error(err)
		}
		pool.Close()
		unmatched.Close()
	})
	return r
}

// observes puts its route into mode observe; its policy has to say so, too. Its deliveries count
// against these limits.
func (r *replica) observes(t *testing.T, uses ...string) {
	t.Helper()
	rules := *r.handler.rules.Load()
	route := *rules.Table.Routes[0]
	keys, err := naming.NewKeys(naming.KeySpec{Route: "r", Workflow: "w/{path.w}", EventID: "{header.Idempotency-Key}",
		Uses: uses})
	if err != nil {
		t.Fatal(err)
	}
	route.Observe, route.Keys = true, keys
	rules.Table.Routes = []*Route{&route}
	r.handler.SetRules(&rules)
}

// answer is what a sender got.
type answer struct {
	status   int
	decision string
	header   http.Header
	body     string
	err      error
}

// send delivers event to workflow; the answer comes when it comes.
func (r *replica) send(ctx context.Context, workflow, event string) <-chan answer {
	got := make(chan answer, 1)
	go func() {
		transport := &http.Transport{DisableKeepAlives: true}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/hooks/"+workflow,
			strings.NewReader("event "+event))
		if err != nil {
			got <- answer{err: err}
			return
		}
		req.Host = "hooks.example" // whatever replica it goes to
		req.Header.Set("Idempotency-Key", event)
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			got <- answer{err: err}
			return
		}
		defer resp.Body.Close()
		var body bytes.Buffer
		_, err = body.ReadFrom(resp.Body)
		got <- answer{resp.StatusCode, resp.Header.Get("Hooklock-Decision"), resp.Header, body.String(), err}
	}()
	return got
}

// await takes the next of ch, and fails when none comes.
func await[T any](t *testing.T, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// decided takes the next answer of ch, and fails the test where its decision is another one.
func decided(t *testing.T, ch <-chan answer, decision string) {
	t.Helper()
	if got := await(t, ch); got.decision != decision {
		t.Errorf("got %+v, want %s", got, decision)
	}
}

// ran fails the test where the upstream ran another number of deliveries.
func ran(t *testing.T, up *service, want int) {
	t.Helper()
	if runs, _ := up.count(); runs != want {
		t.Errorf("%d runs, want %d", runs, want)
	}
}

// queued waits until n deliveries wait in etcd.
func queued(t *testing.T, etcd *etcdtest.Etcd, n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		got, err := etcd.Count(ctx, "/hooklock/v1/queue/")
		if err != nil {
			t.Fatal(err)
		}
		if got == n {
			return
		}
	}
}
