package proxy

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
	"hooklock/idem/naming"
)

// object is what an upstream knows of one entity: the last update that it took.
type object struct {
	Object string `json:"object"`
	At     int    `json:"at"`
}

// objects is an upstream that takes every update for the newest, as services do.
type objects struct {
	url   string
	takes time.Duration // by each update

	mu    sync.Mutex
	state map[string]int
	stale map[int]string // the Hooklock-Stale of each update, by At
	runs  int
	fails bool
}

func newObjects(t *testing.T) *objects {
	o := &objects{state: map[string]int{}, stale: map[int]string{}}
	server := &http.Server{Handler: o, ReadHeaderTimeout: patience}
	ln := local(t)
	go server.Serve(ln)
	t.Cleanup(func() { server.Close() })
	o.url = ln.Addr().String()
	return o
}

func (o *objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var update object
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &update)
	<-time.After(o.takes)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs++
	o.stale[update.At] = strings.Join(r.Header.Values("Hooklock-Stale"), ",")
	if o.fails {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	o.state[update.Object] = update.At
}

func (o *objects) called() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.runs
}

// told is the Hooklock-Stale of the update of that time.
func (o *objects) told(at int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stale[at]
}

// now is what it takes for the newest of an object.
func (o *objects) now(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state[name]
}

func (o *objects) fail(fails bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fails = fails
}

// last is the latest delivery that an Observer heard of.
func (e *events) last() Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reports[len(e.reports)-1]
}

// newOrdered is a replica whose route asks for the order of events.
func newOrdered(t *testing.T, etcd *etcdtest.Etcd, up *objects, onStale idem.OnStale,
	change func(*idem.Policy)) *replica {
	t.Helper()
	r := newReplica(t, etcd, &service{url: up.url}, func(p *idem.Policy) {
		p.Order = &idem.OrderPolicy{OnStale: onStale, By: "{body.at}"}
		if change != nil {
			change(p)
		}
	})
	keys, err := naming.NewKeys(naming.KeySpec{
		Route: "r", Workflow: "w/{path.w}", EventID: "{header.Idempotency-Key}", OrderBy: "{body.at}",
		OrderScope: "{body.object}", OrderUnit: idem.UnitSeconds,
	})
	if err != nil {
		t.Fatal(err)
	}
	rules := *r.handler.rules.Load()
	route := *rules.Table.Routes[0]
	route.Keys, route.Observe = keys, route.Policy.Observe
	rules.Table.Routes = []*Route{&route}
	r.handler.SetRules(&rules)
	return r
}

// update delivers body as that event.
func (r *replica) update(t *testing.T, workflow, event, body string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/hooks/"+workflow, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "hooks.example"
	req.Header.Set("Idempotency-Key", event)
	req.Header.Set("hooklock_stale", "99s") // as a CGI program reads it
	req.Header.Set("Hooklock-Stale", "99s")
	transport := &http.Transport{DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get("Hooklock-Decision"), resp.Header, string(got), err}
}

func TestAnOlderEventRunsAndTheUpstreamIsToldHowMuchOlderItIs(t *testing.T) {
	etcd, up := etcdtest.Start(t), newObjects(t)
	a, b := newOrdered(t, etcd, up, idem.StaleAnnotate, nil), newOrdered(t, etcd, up, idem.StaleAnnotate, nil)
	for _, c := range []struct {
		r       *replica
		at      int
		object  string
		stale   string
		ordered naming.Ordered
	}{
		{a, 100, `"x"`, "", naming.OrderedOK},
		{b, 63, `"x"`, "37s", naming.OrderedOK},
		{b, 64, `"y"`, "", naming.OrderedOK}, // another scope
		{a, 101, `"x"`, "", naming.OrderedOK},
		{a, 65, `null`, "", naming.OrderedMissing},
	} {
		got := c.r.update(t, "w", fmt.Sprint("e", c.at), fmt.Sprintf(`{"object":%s,"at":%d}`, c.object, c.at))
		if got.status != 200 || got.decision != "executed" || up.told(c.at) != c.stale {
			t.Errorf("%d: %+v, and the upstream was told %q, want %q", c.at, got, up.told(c.at), c.stale)
		}
		if last := c.r.events.last(); last.Stale != c.stale || last.Ordered != c.ordered {
			t.Errorf("%d is reported as %q older, %q", c.at, last.Stale, last.Ordered)
		}
	}
	for i, at := range []string{`"soon"`, `[1]`, `1e99`} {
		if got := a.update(t, "w", fmt.Sprint("odd", i), `{"object":"x","at":`+at+`}`); got.decision != "executed" {
			t.Errorf("an event whose place cannot be read: %+v", got)
		}
	}
	if got := a.update(t, "w", "e63", `{"object":"x","at":63}`); got.decision != "replayed" {
		t.Errorf("a copy of what ran: %+v", got)
	}
}

func TestAnOlderEventIsSkippedWithASuccessAndLeavesARecord(t *testing.T) {
	etcd, up := etcdtest.Start(t), newObjects(t)
	r := newOrdered(t, etcd, up, idem.StaleSkip, nil)
	first := r.update(t, "w", "new", `{"object":"x","at":100}`)
	for range 2 { // a copy is judged as the first one was
		got := r.update(t, "w", "old", `{"object":"x","at":63}`)
		var body struct{ Status, ExecutionID, Workflow, SupersededBy string }
		if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != 200 ||
			got.decision != "superseded" || body.Status != "superseded" || body.Workflow != "w/w" ||
			body.SupersededBy != first.header.Get("Hooklock-Execution") ||
			body.ExecutionID != got.header.Get("Hooklock-Execution") || got.header.Get("Hooklock-Recorded") != "" {
			t.Fatalf("%v: %+v", err, got)
		}
		found, err := r.store.Execution(t.Context(), idem.ExecutionID(body.ExecutionID))
		if err != nil || found.Record == nil || found.Record.Status != idem.Aborted ||
			found.Record.Outcome != idem.NotExecuted || string(found.Record.Superseded()) != body.SupersededBy ||
			found.Record.Stale.By != "37s" || found.Record.Abort.Reason != "superseded: 37s older than "+
			body.SupersededBy+", which went through" {
			t.Errorf("%v: %+v", err, found)
		}
	}
	if up.called() != 1 {
		t.Errorf("the upstream was called %d times", up.called())
	}
	if got := r.update(t, "w", "newer", `{"object":"x","at":100}`); got.decision != "executed" {
		t.Errorf("one as new as the newest: %+v", got)
	}
}

func TestAnOlderEventIsRejectedAndBurnsNothing(t *testing.T) {
	etcd, up := etcdtest.Start(t), newObjects(t)
	r := newOrdered(t, etcd, up, idem.StaleReject, nil)
	first := r.update(t, "w", "new", `{"object":"x","at":100}`).header.Get("Hooklock-Execution")
	got := r.update(t, "w", "old", `{"object":"x","at":63}`)
	var p problem
	if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.status != 409 || got.decision != "stale_event" ||
		p.Code != "stale_event" || p.Executed != idem.EffectNo ||
		p.Detail != "37s older than "+first+", which went through; nothing was executed" {
		t.Errorf("%v: %+v", err, got)
	}
	if up.called() != 1 {
		t.Errorf("the upstream was called %d times", up.called())
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if n, err := etcd.Count(ctx, protocol.NewLayout("/hooklock").All(protocol.KindRecords)); err != nil || n != 1 {
		t.Errorf("%d records, %v: what was refused has none", n, err)
	}
}

func TestWhatFailedMakesNothingStale(t *testing.T) {
	etcd, up := etcdtest.Start(t), newObjects(t)
	r := newOrdered(t, etcd, up, idem.StaleSkip, nil)
	up.fail(true)
	if got := r.update(t, "w", "new", `{"object":"x","at":100}`); got.status != 500 {
		t.Fatalf("%+v", got)
	}
	up.fail(false)
	if got := r.update(t, "w", "old", `{"object":"x","at":63}`); got.decision != "executed" {
		t.Errorf("%+v", got)
	}
}

func TestObserveForwardsWhatItWouldNotRun(t *testing.T) {
	for onStale, would := range map[idem.OnStale]string{idem.StaleSkip: "superseded", idem.StaleReject: "stale_event",
		idem.StaleAnnotate: "executed"} {
		etcd, up := etcdtest.Start(t), newObjects(t)
		r := newOrdered(t, etcd, up, onStale, func(p *idem.Policy) { p.Observe = true })
		r.update(t, "w", "new", `{"object":"x","at":100}`)
		got := r.update(t, "w", "old", `{"object":"x","at":63}`)
		if got.status != 200 || got.decision != "bypassed; would="+would || up.called() != 2 || up.told(63) != "37s" {
			t.Errorf("%s: %+v, %d calls, told %q", onStale, got, up.called(), up.told(63))
		}
	}
}

func TestUnderStrategyNoneNothingIsJudged(t *testing.T) {
	etcd, up := etcdtest.Start(t), newObjects(t)
	r := newOrdered(t, etcd, up, idem.StaleSkip, func(p *idem.Policy) { p.Strategy = idem.NoLock })
	r.update(t, "w", "new", `{"object":"x","at":100}`)
	if got := r.update(t, "w", "old", `{"object":"x","at":63}`); got.decision != "executed" {
		t.Errorf("%+v", got)
	}
}

var (
	flood    = flag.Int("flood", 240, "updates of the flood")
	entities = flag.Int("entities", 12, "what they are about")
)

// TestAFloodOutOfOrderLeavesTheNewestOfEach: whatever comes when, at whichever replica. Larger: go
// test ./proxy -run Flood -flood 10000 -entities 100
func TestAFloodOutOfOrderLeavesTheNewestOfEach(t *testing.T) {
	etcd, up := etcdtest.Start(t), newObjects(t)
	waits := func(p *idem.Policy) { p.Strategy = idem.Wait }
	replicas := []*replica{newOrdered(t, etcd, up, idem.StaleSkip, waits),
		newOrdered(t, etcd, up, idem.StaleSkip, waits)}
	order := rand.New(rand.NewPCG(1, 2)).Perm(*flood)
	var all sync.WaitGroup
	next := make(chan int)
	for worker := range 16 {
		all.Go(func() {
			for n := range next {
				r := replicas[(worker+n)%2]
				got := r.update(t, fmt.Sprint(n%*entities), fmt.Sprint("e", n),
					fmt.Sprintf(`{"object":"o%d","at":%d}`, n%*entities, n / *entities))
				if got.err != nil || got.status != 200 {
					t.Errorf("%d: %+v", n, got)
				}
			}
		})
	}
	for _, n := range order {
		next <- n
	}
	close(next)
	all.Wait()
	skipped := *flood - up.called()
	t.Logf("%d of %d updates did not run", skipped, *flood)
	if skipped == 0 {
		t.Error("none came out of order")
	}
	for i := range *entities {
		if name, want := fmt.Sprint("o", i), (*flood-1-i) / *entities; up.now(name) != want {
			t.Errorf("%s is %d at the end, and the newest was %d", name, up.now(name), want)
		}
	}
}
