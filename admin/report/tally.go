// Package report counts what each route found wrong with its deliveries: what mode observe would
// have stopped, so that a user can decide to enforce. It is kept in memory, of this process alone,
// in bounded space.
//
// Words: a Delivery is the report of one, a Finding how often one kind of problem was found on a
// Route, with some Examples, and a Report all findings of one process since a time. The Tally
// counts, in steps of some minutes. What it returns has the types of the API.
package report

import (
	"sync"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

const (
	// stepLength is the resolution of time: counts are kept for each span of this length.
	stepLength = 10 * time.Minute
	// keptFor is how far a report looks back.
	keptFor = 7 * 24 * time.Hour
	// maxExamples is how many examples of each finding are kept, the newest.
	maxExamples = 5

	steps = int64(keptFor / stepLength)
)

// kind is the kind of a finding: the class of a decision, or a missing event ID.
type kind int

// The kinds.
const (
	duplicate = kind(idem.ClassDuplicate)
	overlap   = kind(idem.ClassOverlap)
	mismatch  = kind(idem.ClassMismatch)
	forged    = kind(idem.ClassForged)
	unnamed   = kind(idem.ClassUnnamed)
	missingID = unnamed + 1   // no event ID
	changed   = missingID + 1 // a duplicate by its event ID that is another request than the first delivery
	stale     = kind(idem.ClassStale)
	// redirected: the service answered with a 3xx
	redirected = stale + 1
	twin       = redirected + 1 // another event with the same body came before
	kinds      = twin + 1
)

// Delivery is the report of one delivery.
type Delivery struct {
	Route string
	// Decision is what was decided, or, if that was not carried out, what would have been.
	Decision idem.Decision
	// Carried: the decision was carried out. Otherwise the delivery was forwarded.
	Carried   bool
	MissingID bool
	EventID   string
	// Placeholder: EventID is what a sender sends where a value is missing.
	Placeholder bool
	// Changed: it is a duplicate by its event ID, but another request than the first delivery.
	// Differs are the parts that differ, of that and of a mismatch.
	Changed   bool
	Differs   []string
	Stale     bool // it is older than an event of its scope that went through
	Workflow  string
	Key       string // short
	Execution idem.ExecutionID
	Code      string // of a rejection
	Signature string // why it is not valid
	TraceID   string
	Status    int
	// Redirected: the service answered with a 3xx.
	Redirected bool
	// TwinOf is the short key of an earlier event that has the same body; "": there is none.
	TwinOf string
	Result Result // of its request to the service
	// Failure is why that failed; the zero value: it did not, or that says nothing of the service,
	// as when a person cancelled it.
	Failure Failure
	// Counted: it and its Result are counted with its outcome, so not for Take.
	Counted bool
	// Accepted: it was parked, which is counted with that. Otherwise DecisionParked is about an
	// event that was parked before.
	Accepted bool
	Took     time.Duration // until its answer was written
	Service  time.Duration // of its request to the service
	// Verified: it comes from the sender: its signature is right, or its route needs none.
	Verified bool
	// UnsignedHandshake: it is a handshake without a signature. Any client can send one, so it says
	// nothing about the sender.
	UnsignedHandshake bool
	// Members are the parts of the delivery, if it was another request than the first one of its
	// event, or may be the first one of such; else nil.
	Members []idem.Member
}

// Tally counts deliveries. Make one with New; it is safe for concurrent use.
type Tally struct {
	replica string
	now     func() time.Time
	elapsed func() time.Duration
	started time.Time // without a monotonic reading, which would hide what clock is for

	mu     sync.RWMutex
	routes map[string]*route
	order  []string
	modes  map[string]string
	// senders are how the senders of the routes count failures.
	senders map[string]Sender
	// elsewhere is what other processes have seen of those senders.
	elsewhere map[string]Standings
	left      []idem.RouteCounts // of dropped routes, for Take
}

// New makes a tally for the process that is called replica. now is the wall clock, which may be set
// while the process runs, and elapsed is how long ago New was called, which cannot be; nil means
// those of the system.
func New(replica string, now func() time.Time, elapsed func() time.Duration) *Tally {
	if now == nil {
		now = time.Now
	}
	if elapsed == nil {
		base := time.Now()
		elapsed = func() time.Duration { return time.Since(base) }
	}
	return &Tally{replica: replica, now: now, elapsed: elapsed, started: now().Round(0), routes: map[string]*route{},
		modes: map[string]string{}}
}

// clockTime returns the time for counting: the wall clock as if it had not been set since the
// start.
func (t *Tally) clockTime() time.Time { return t.started.Add(t.elapsed()) }

// Route is a configured route as the report shows it.
type Route struct {
	Name, Mode string
	Sender     Sender
}

// SetRoutes sets the routes, in their order. The counts of others are dropped.
func (t *Tally) SetRoutes(routes []Route) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.routes
	t.routes, t.order, t.modes, t.senders = map[string]*route{}, nil, map[string]string{}, map[string]Sender{}
	for _, r := range routes {
		t.order = append(t.order, r.Name)
		t.modes[r.Name], t.senders[r.Name] = r.Mode, r.Sender
		if t.routes[r.Name] = old[r.Name]; t.routes[r.Name] == nil {
			t.routes[r.Name] = &route{}
		}
	}
	for name, r := range old {
		if t.routes[name] == nil {
			t.left = r.takeCounts(name, t.left)
		}
	}
}

// CountTry counts a try of a parked event, whose delivery was noted before, how long its request to
// the service took, and why it failed. counted: not for Take, because it is counted with its
// outcome. One of an unknown route is not counted.
func (t *Tally) CountTry(name string, result Result, took time.Duration, why Failure, counted bool) {
	t.withRoute(name, func(r *route) {
		now := t.clockTime()
		r.recent.add("", result, now)
		if !counted {
			r.countCall(result, took)
		}
		r.spell.add(result, why, now)
	})
}

// withRoute calls f with a route, locked.
func (t *Tally) withRoute(name string, f func(*route)) {
	t.mu.RLock()
	r := t.routes[name]
	t.mu.RUnlock()
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r)
}

// Note counts a delivery. One of an unknown route is not counted.
func (t *Tally) Note(d *Delivery) {
	t.mu.RLock()
	r, from := t.routes[d.Route], t.senders[d.Route]
	t.mu.RUnlock()
	if r != nil {
		r.noteDelivery(d, len(from.Limits) > 0 && from.Fails(d.Status, d.Took), moment{t.clockTime(), t.now()})
	}
}

// moment is the time of a note.
type moment struct {
	at    time.Time // by the clock of the tally
	shown time.Time // by the wall clock
}

// wallTime returns a time of the clock of the tally by the wall clock, in whole milliseconds; the
// zero time as it is.
func (m moment) wallTime(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return m.shown.Round(0).Add(at.Sub(m.at)).UTC().Round(time.Millisecond)
}

// route is the counts of one route.
type route struct {
	mu       sync.Mutex
	all      ring
	recent   recent
	untaken  idem.RouteCounts // since the last Take
	newest   time.Time        // when the newest delivery was noted, by the wall clock
	verified time.Time        // when the newest verified one was, too
	spell    spell            // in which requests to the service fail
	failures failures         // of verified deliveries
	// suspected are those of verified and of unverified deliveries: the sender's, if it signs with
	// a secret that the route does not have.
	suspected failures
	found     [kinds]*ring // nil until the first one
	examples  [kinds]examples
	attempts  attempts
	ids       eventIDs
}

func (r *route) noteDelivery(d *Delivery, failed bool, now moment) {
	at := now.at.UnixNano() / int64(stepLength)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all.add(at)
	r.recent.add(d.Decision, d.Result, now.at)
	r.newest = now.shown
	r.countDelivery(d, now.shown)
	r.spell.add(d.Result, d.Failure, now.at)
	r.noteSender(d, failed, now)
	k := kind(d.Decision.Row().Class)
	if k >= duplicate && k <= unnamed {
		r.addFinding(k, d, at, now)
	}
	if d.MissingID {
		r.addFinding(missingID, d, at, now)
	}
	if d.Stale || k == stale {
		r.addFinding(stale, d, at, now)
	}
	if d.Changed {
		r.addFinding(changed, d, at, now)
	}
	if d.Redirected {
		r.addFinding(redirected, d, at, now)
	}
	if d.TwinOf != "" {
		r.addFinding(twin, d, at, now)
	}
	r.ids.noteDelivery(d, now)
	r.attempts.noteDelivery(d, now)
}

// noteSender counts d for the standing of the route with its sender.
func (r *route) noteSender(d *Delivery, failed bool, now moment) {
	if d.UnsignedHandshake {
		return
	}
	r.suspected.add(failed, now.at)
	if d.Verified {
		r.failures.add(failed, now.at)
		r.verified = now.shown
	}
}

func (r *route) addFinding(k kind, d *Delivery, at int64, now moment) {
	if r.found[k] == nil {
		r.found[k] = new(ring)
	}
	r.found[k].add(at)
	r.examples[k].add(example{noted: now.at, shown: client.Example{
		At: client.Time{Time: now.shown}, Decision: string(d.Decision), CarriedOut: d.Carried, Key: d.Key,
		Workflow: d.Workflow, ExecutionID: string(d.Execution),
		Code: d.Code, Signature: d.Signature, Status: d.Status, TraceID: d.TraceID, Differs: d.Differs,
		TwinOf: d.TwinOf,
	}})
}

// ring is counts by step of time; it forgets those older than keptFor.
type ring struct {
	last   int64 // the newest step in it
	counts []uint32
}

func (r *ring) add(at int64) {
	if r.counts == nil {
		r.counts, r.last = make([]uint32, steps), at
	}
	for ; r.last < at; r.last++ {
		if at-r.last > steps {
			r.last = at - steps
		}
		r.counts[(r.last+1)%steps] = 0
	}
	r.counts[at%steps]++
}

// countBetween returns the count from step from to step to, both included.
func (r *ring) countBetween(from, to int64) (n int64) {
	if r == nil || r.counts == nil {
		return 0
	}
	for at := max(from, r.last-steps+1, 0); at <= min(to, r.last); at++ {
		n += int64(r.counts[at%steps])
	}
	return n
}

// examples are the newest of one kind.
type examples struct {
	next int
	all  []example
}

type example struct {
	noted time.Time // by the clock of the tally
	shown client.Example
}

func (e *examples) add(x example) {
	if len(e.all) < maxExamples {
		e.all = append(e.all, x)
		return
	}
	e.all[e.next] = x
	e.next = (e.next + 1) % maxExamples
}

// newerThan returns those that are not older than from, the newest first.
func (e *examples) newerThan(from time.Time) []client.Example {
	found := []client.Example{}
	for i := range e.all {
		x := e.all[(e.next+len(e.all)-1-i)%len(e.all)]
		if !x.noted.Before(from) {
			found = append(found, x.shown)
		}
	}
	return found
}

// Report returns what was found since then, by the clock as it is set now. The zero time means
// everything that is kept.
func (t *Tally) Report(since time.Time) client.Report {
	shown, now := t.now(), t.clockTime()
	// by how much it was set since the start; less does not show in the steps
	set := shown.Round(0).Sub(now).Round(time.Minute)
	since = since.Add(-set)
	if oldest := now.Add(-keptFor + stepLength); since.Before(oldest) {
		since = oldest
	}
	since = since.Truncate(stepLength)
	if since.Before(t.started) {
		since = t.started
	}
	from, to := since.UnixNano()/int64(stepLength), now.UnixNano()/int64(stepLength)
	t.mu.RLock()
	defer t.mu.RUnlock()
	r := client.Report{
		Replica: t.replica, StartedAt: client.Time{Time: t.started}, Since: client.Time{Time: since.Add(set)},
		Until: client.Time{Time: shown}, Routes: []client.RouteReport{},
	}
	for _, name := range t.order {
		c := t.routes[name].countSince(since, from, to)
		c.Route, c.Mode = name, t.modes[name]
		r.Routes = append(r.Routes, c)
	}
	return r
}

func (r *route) countSince(since time.Time, from, to int64) client.RouteReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	finding := func(k kind) client.Finding {
		return client.Finding{Count: r.found[k].countBetween(from, to), Examples: r.examples[k].newerThan(since)}
	}
	return client.RouteReport{
		Deliveries: r.all.countBetween(from, to), Stale: finding(stale), Duplicates: finding(duplicate),
		Overlaps: finding(overlap), Mismatches: finding(mismatch),
		Changed: finding(changed), Redirected: finding(redirected), Twins: finding(twin),
		MissingEventIDs: finding(missingID), Forged: finding(forged), Unnamed: finding(unnamed),
		Changing: r.attempts.foundSince(since), WrongEventID: r.ids.foundSince(since),
	}
}
