package virtual

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/idem"
)

// kind is what kind of world it is.
type kind struct {
	retention time.Duration // of an event
	maxAge    time.Duration // of a parked one
	// How many times longer than usual pass between two faults, or two acts of operators, and
	// between two events of a sender.
	rareFaults, rareEvents int
	skews                  []time.Duration // of the clocks of processes
	gates                  map[string]bool // of etcd
	beside                 bool            // its processes have what beside is
	remembered             int             // lines of history that are kept; 0 = all
}

// world is everything that a seed decides about.
type world struct {
	t        testing.TB
	kind     kind
	seed     uint64
	began    time.Time
	etcd     *etcd
	judge    *judge
	truth    *truth
	service  *service
	tasks    sync.WaitGroup // packets and whatever else goes on by itself
	breaking sync.WaitGroup // faults

	diskFull, leaving atomic.Bool

	mu        sync.Mutex
	rng       *rand.Rand
	loss      int // of 100 packets
	processes []*process
	born      int
	routes    []*route
	revokes   map[string]time.Time // when the session of a process was ended early
	history   []string
	failures  int
	broken    []string // what failed, however little of the history is kept
}

// route is one route, whose settings are drawn anew by each reload, as far as a reload may change
// them.
type route struct {
	name        string
	most        int // events of a workflow that may run at a time
	idempotency bool
	onUnknown   idem.OnUnknown
	attempts    int           // of an event that may fail; 0 = any number
	order       idem.OnStale  // "": its events have no order
	delay       time.Duration // release_delay
	fifo        bool          // its events are accepted at once, and run in that order
	workflows   int
	current     idem.Policy
	w           *world
}

func newWorld(t testing.TB, seed uint64, dir string, k kind) *world {
	w := &world{t: t, kind: k, seed: seed, began: time.Now(), rng: rand.New(rand.NewPCG(seed, 1)),
		revokes: map[string]time.Time{}}
	w.judge, w.service = newJudge(w), &service{w: w}
	w.truth = &truth{deliveries: map[int]map[string]int{}, unsure: map[int]int{}}
	for i := range 4 {
		w.routes = append(w.routes, w.newRoute(i))
	}
	w.etcd = startEtcd(t, dir, w.kind.gates)
	for range 3 {
		w.addProcess()
	}
	return w
}

// pick is a number below n.
func (w *world) pick(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// chance is true in so many of 1000 cases.
func (w *world) chance(of1000 int) bool { return w.pick(1000) < of1000 }

// between is a time from lo to hi.
func (w *world) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(w.pick(int(hi-lo)/1000+1))*1000
}

func pickOf[T any](w *world, of ...T) T { return of[w.pick(len(of))] }

// newRoute draws the settings that stay. One in four events of a limited or unlocked route overlap
// on purpose.
func (w *world) newRoute(i int) *route {
	r := &route{w: w, name: fmt.Sprintf("route%d", i), most: 1, idempotency: true,
		onUnknown: pickOf(w, idem.UnknownRetry, idem.UnknownBlock, idem.UnknownAsk), workflows: 1 + w.pick(3),
		attempts: pickOf(w, 0, 1, 2, 20), delay: pickOf(w, 0, 10*time.Second)}
	switch i {
	case 0:
		r.order = pickOf(w, "", idem.StaleSkip, idem.StaleReject, idem.StaleAnnotate)
	case 1:
		r.fifo = true
	case 2:
		r.most = 2 + w.pick(2)
	case 3:
		r.idempotency = w.chance(500)
	}
	r.draw()
	return r
}

// draw makes a policy that the configuration would accept.
func (r *route) draw() {
	w := r.w
	keep := idem.StatusSet{}
	keep.Add(200, 299)
	p := idem.Policy{
		Route: r.name, Strategy: pickOf(w, idem.FailFast, idem.Wait, idem.Wait, idem.Skip, idem.Latest),
		WaitTimeout: w.between(time.Second, 40*time.Second), MaxWaiting: 50,
		Concurrency: r.most, InFlight: pickOf(w, idem.Conflict, idem.Attach), AttachTimeout: 90 * time.Second,
		ReleaseDelay: r.delay,
		MaxDuration:  pickOf(w, 0, 10*time.Minute), Idempotency: r.idempotency, Retention: w.kind.retention,
		PayloadRetention: 10 * time.Minute, ReplayBody: 100,
		OnMismatch: pickOf(w, idem.MismatchReplay, idem.MismatchReject), OnUnknown: r.onUnknown, Attempts: r.attempts,
		Keep: keep, HoldTTL: holdTTL, Verified: true,
	}
	if w.chance(700) || r.fifo {
		p.Park = &idem.ParkPolicy{
			Locked: true, Slow: true, Unreachable: true, Unknown: r.onUnknown != idem.UnknownBlock, Failed: true,
			After: pickOf(w, 0, time.Second, 8*time.Second), Answer: 202,
			MaxAge: w.kind.maxAge, Attempts: 3 + w.pick(20),
			OnFailure: pickOf(w, idem.FailureHold, idem.FailureSkip), Signature: idem.SignatureKeep, MaxWaiting: 1000,
			RetryFirst: pickOf(w, 0, 100*time.Millisecond), RetryMost: pickOf(w, 0, time.Minute),
			Delay: pickOf(w, 0, 0, 7*time.Second),
		}
	}
	switch {
	case r.fifo:
		p.Park.After, p.Strategy, p.Park.OnFailure = 0, pickOf(w, idem.FailFast, idem.Wait), idem.FailureHold
	case r.most > 1:
		p.Strategy = pickOf(w, idem.FailFast, idem.Wait)
	case p.Strategy == idem.Skip:
		p.Park = nil
	case p.Strategy == idem.Latest && w.chance(300):
		p.Quiet, p.MaxWait = time.Second, 10*time.Second
	}
	if r.onUnknown == idem.UnknownAsk {
		p.Ask = &idem.AskPolicy{After: max(r.delay, pickOf(w, 0, 2*time.Second)), Attempts: 1 + w.pick(5), Answer: 200}
	}
	if r.order != "" {
		p.Order = &idem.OrderPolicy{OnStale: r.order, By: "{body.n}"}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.current = p
}

func (r *route) policy() *idem.Policy {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	p := r.current
	return &p
}

func (w *world) route(name string) *route {
	for _, r := range w.routes {
		if r.name == name {
			return r
		}
	}
	return nil
}

func (w *world) policy(name string) *idem.Policy {
	if r := w.route(name); r != nil {
		return r.policy()
	}
	return nil
}

// slots is etcdlock.Options.Limit.
func (w *world) slots(route string, _ idem.Slot) int {
	if r := w.route(route); r != nil {
		return r.most
	}
	return 0
}

// request is what the guard is asked about a delivery; other: it has another body than the event's.
func (e *event) request(policy *idem.Policy, other bool) *idem.Request {
	hash := sha256.Sum256([]byte(e.id))
	r := &idem.Request{Scope: idem.Scope{Workflow: e.workflow, Key: e.key}, EventID: e.id,
		Fingerprint: idem.Fingerprint(hash[:]), Policy: policy, Question: "/" + e.id}
	if other {
		r.Fingerprint[0]++
	}
	if policy.Order != nil {
		r.Order = &idem.Order{ScopeKey: fmt.Sprintf("%x", sha256.Sum256([]byte(e.workflow)))[:32], Scope: e.workflow,
			At: strconv.FormatInt(e.n, 10)}
	}
	return r
}

func keyOf(id, workflow string) idem.Key {
	return idem.Key(fmt.Sprintf("%016x-%x", xxhash.Sum64String(id),
		sha256.Sum256([]byte(id+"\x00"+workflow)))[:16+1+32])
}

// fate is what becomes of one request to etcd and its answer.
type fate struct {
	there, back             time.Duration
	requestLost, answerLost bool
	late                    bool // it waits where the network is cut, instead of being lost
}

func (w *world) fate() fate {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fate{
		there:       time.Duration(w.rng.IntN(2500)) * time.Microsecond,
		back:        time.Duration(w.rng.IntN(2500)) * time.Microsecond,
		requestLost: w.rng.IntN(100) < w.loss, answerLost: w.rng.IntN(100) < w.loss, late: w.rng.IntN(2) == 0,
	}
}

// challenged is the status with which the service asks for credentials. The sender comes again with
// them.
const challenged = 401

// plan is what the service does with one request.
type plan struct {
	takes  time.Duration
	status int           // 0 = its connection breaks
	works  bool          // it is done, whatever its caller hears
	hold   time.Duration // it goes on for so long after its answer
}

func (w *world) plan(*event) plan {
	p := plan{takes: w.between(5*time.Millisecond, 300*time.Millisecond), status: 200, works: true}
	if w.chance(60) {
		p.takes = w.between(time.Second, 20*time.Second)
	}
	if w.chance(10) {
		p.takes = 2 * upstreamTimeout
	}
	switch n := w.pick(100); {
	case n < 5:
		p.status, p.works = 500, false
	case n < 6:
		p.status, p.works = 429, false
	case n < 7:
		p.status, p.works = challenged, false
	case n < 9:
		p.status, p.works = 0, w.chance(500)
	case n < 12:
		p.status, p.hold, p.works = 202, w.between(time.Second, 3*time.Minute), !w.chance(100)
	}
	return p
}

func (w *world) addProcess() *process {
	w.mu.Lock()
	name := fmt.Sprintf("p%d", w.born)
	w.born++
	w.mu.Unlock()
	p := w.startProcess(name, pickOf(w, w.kind.skews...))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(w.processes, p)
	return p
}

func (w *world) anyProcess() *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.processes[w.rng.IntN(len(w.processes))]
}

// replace ends a process with how, and starts another one after a while.
func (w *world) replace(old *process, how func(*process), after time.Duration) {
	w.mu.Lock()
	w.processes = slices.DeleteFunc(w.processes, func(p *process) bool { return p == old })
	alone := len(w.processes) == 0
	w.mu.Unlock()
	if alone {
		w.addProcess()
	}
	w.tasks.Go(func() { how(old) })
	time.Sleep(after)
	if !alone {
		w.addProcess()
	}
}

// say adds a line to the history.
func (w *world) say(who, format string, args ...any) {
	line := fmt.Sprintf("%-14v %-8s "+format, append([]any{time.Since(w.began).Round(time.Microsecond), who},
		args...)...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if most := w.kind.remembered; most > 0 && len(w.history) == most {
		w.history = slices.Delete(w.history, 0, most/2)
	}
	w.history = append(w.history, line)
}

func (w *world) at(t time.Time) time.Duration { return t.Sub(w.began).Round(time.Millisecond) }

// fail notes that a promise was broken.
func (w *world) fail(format string, args ...any) {
	w.say("BROKEN", format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
	if w.failures++; w.failures <= 5 {
		w.t.Errorf("seed %d, after %v: %s", w.seed, time.Since(w.began).Round(time.Second),
			fmt.Sprintf(format, args...))
	}
}

// write puts the history of a failed run where it can be read. The same seed may fail again in
// another way: each run has a file of its own.
func (w *world) write(dir string) {
	f, err := os.CreateTemp(dir, fmt.Sprintf("history-%d-*.txt", w.seed))
	if err == nil {
		_, err = f.WriteString(strings.Join(slices.Concat(w.broken, w.history), "\n") + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.t.Error(err)
		return
	}
	w.t.Logf("the whole history is in %s", f.Name())
}

// senders send events until end, each with the retry schedule of its kind.
func (w *world) senders(end time.Time) {
	var sending sync.WaitGroup
	for i := range 6 {
		sending.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				r := w.routes[w.pick(len(w.routes))]
				e := &event{id: fmt.Sprintf("evt_%d_%d", i, n), route: r.name,
					workflow: fmt.Sprintf("%s/w%d", r.name, w.pick(r.workflows))}
				e.n = time.Since(w.began).Milliseconds() - int64(w.pick(60_000)) // some come after a newer one
				e.key = keyOf(e.id, e.workflow)
				w.say("sender", "%s of %s, strategy %s, limit %d", e.id, e.workflow, r.policy().Strategy, r.most)
				w.judge.add(e)
				sending.Go(func() { w.send(e, schedules[w.pick(len(schedules))]) })
				if w.chance(100) { // a burst
					continue
				}
				time.Sleep(w.between(200*time.Millisecond, 20*time.Second) * time.Duration(w.kind.rareEvents))
			}
		})
	}
	sending.Wait()
}

// schedules are pauses between attempts of real senders, in short.
var schedules = [][]time.Duration{
	{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour},
	{10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second},
	{5 * time.Minute, 20 * time.Minute, time.Hour, 2 * time.Hour},
	{}, // it does not send again
}

// send delivers an event until it is taken, sometimes twice at a time, and sometimes once more
// later.
func (w *world) send(e *event, pauses []time.Duration) {
	for _, pause := range append([]time.Duration{0}, pauses...) {
		time.Sleep(pause)
		if w.chance(50) {
			w.tasks.Go(func() { w.deliver(e) })
		}
		if got := w.deliver(e); got.status >= 200 && got.status < 300 {
			break
		}
	}
	if w.chance(100) {
		time.Sleep(w.between(time.Second, 20*time.Minute))
		w.deliver(e)
	}
}

// deliveryLimit is what a delivery takes at most: its wait, the service's time-out, and what the
// ledger may take for each.
const deliveryLimit = 5 * time.Minute

func (w *world) deliver(e *event) reply {
	since := time.Now()
	got := w.anyProcess().deliver(e)
	if took := time.Since(since); took > deliveryLimit {
		w.fail("a delivery of %s was answered after %v", e.id, took)
	}
	if got.decision == idem.DecisionSuperseded {
		w.judge.explain(e.id, "superseded")
	}
	return got
}

// revoked reports whether a session was ended early a moment ago: then two calls may overlap
// (etcdlock's documentation says so).
func (w *world) revoked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.revokes {
		if time.Since(at) < 2*time.Minute {
			return true
		}
	}
	return false
}

// keys are what is left in the database, with the time that each lives; 0 = for ever.
func (w *world) keys() map[string]time.Duration {
	m, _ := w.etcd.current()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	all, err := m.client.Get(ctx, "", clientv3.WithPrefix())
	if err != nil {
		w.t.Error(err)
		return nil
	}
	left := map[string]time.Duration{}
	for _, kv := range all.Kvs {
		life := time.Duration(0)
		if kv.Lease != 0 {
			if ttl, err := m.client.TimeToLive(ctx, clientv3.LeaseID(kv.Lease)); err == nil {
				life = time.Duration(ttl.TTL) * time.Second
			}
		}
		left[string(kv.Key)] = life
	}
	return left
}
