package guard

import (
	"context"
	"crypto/rand"
	"io"
	"sync/atomic"
	"time"

	"hooklock/idem"
)

// Options are what a Guard works with.
type Options struct {
	Ledger idem.Ledger // where locks and records are
	// Base is the life of the executions: when it ends, running ones stop and end with an unknown
	// outcome. It is not the life of a sender's connection: a sender that hangs up changes nothing.
	Base context.Context
	// RequestTimeout bounds each decision of the ledger. Zero means 2 s.
	RequestTimeout time.Duration
	// Cache answers duplicates without the ledger. The owner of the Ledger must also tell the Cache
	// of forgotten records and of lost sessions.
	Cache *Cache
	// MaxWaiting bounds the deliveries that wait in this process, over all workflows. It is called
	// each time, because the limit may be reloaded. Nil means that none may wait.
	MaxWaiting func() int
	// OvertakenWait is how long an event waits that fail_fast has refused before and that now meets
	// another execution. Many short calls end in that time, so that an event which comes again and
	// again is present when one ends. Zero means 1 s, a negative value no wait.
	OvertakenWait time.Duration
	// Parks is what the ledger knows of parked executions. ParkLimits bounds them; it is called
	// each time, because the limits may be reloaded. Nil means that nothing is parked.
	Parks      idem.ParkLedger
	ParkLimits func() ParkLimits
	Now        func() time.Time // nil means time.Now
	Random     io.Reader        // nil means crypto/rand
}

// Guard admits deliveries, and settles the executions of those that it admitted.
type Guard struct {
	options  Options
	live     live
	waiting  waiterLimit
	refusals refusals
	quotas   quotas
	cache    *Cache
	worker   Worker // nil if nothing is parked

	lively   atomic.Int64    // when a delivery that was not parked at once last came; ns of the guard's clock
	draining context.Context // ends when deliveries that may be parked should stop waiting
	drain    context.CancelCauseFunc
}

// New makes a Guard. It starts no goroutine and needs no Close.
func New(o Options) *Guard {
	if o.RequestTimeout == 0 {
		o.RequestTimeout = 2 * time.Second
	}
	if o.MaxWaiting == nil {
		o.MaxWaiting = func() int { return 0 }
	}
	if o.OvertakenWait == 0 {
		o.OvertakenWait = time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	g := &Guard{options: o, cache: o.Cache}
	g.draining, g.drain = context.WithCancelCause(context.Background())
	return g
}

// Admission is the answer of Admit: an Execution that may run, or the Verdict why the delivery does
// not.
type Admission struct {
	Execution *Execution // nil if the delivery does not run
	idem.Verdict
	// Waited is how long the delivery waited, in the queue or for the answer of the first delivery
	// of its event. 0 if it did not.
	Waited time.Duration
	// Twin is the earlier event that the delivery was taken for. The zero value if it is its own
	// event.
	Twin idem.FirstTwin
	// Unrecorded is of superseded: the event did not run, and the ledger does not have that yet.
	Unrecorded bool
	Err        error // the cause of store_unavailable, for the log
}

// Admit decides about one delivery. It returns within RequestTimeout, or twice that if the request
// store hangs or the policy has a TwinWindow, unless the policy lets the delivery wait. sender ends
// when the sender no longer waits for the answer; a decision that is under way does not depend on
// it.
func (g *Guard) Admit(sender context.Context, r *idem.Request) Admission {
	r.Scope.PerEvent = r.Policy.PerEvent()
	if r.Policy.Strategy == idem.NoLock {
		r.Order = nil // nothing tells two events apart, so none has a position
	}
	if !r.Policy.Idempotency || r.Scope.Key == "" {
		r.Scope.Key = g.randomKey()
	}
	twin, refused := g.joinTwins(r)
	if refused != nil {
		return *refused
	}
	t := acquisition{guard: g, request: r, sender: sender}
	t.acquireLock()
	a := t.admission
	a.Twin = twin
	if err := g.loadKeptAnswer(&a.Verdict); err != nil {
		a = unavailableAdmission(err)
		a.Twin = twin
	}
	if a.WhileWaiting && r.Policy.Observe {
		g.options.Ledger.DropRecord(a.Record)
	}
	if a.Execution == nil && !r.Policy.Observe && ofCopy(&a.Verdict) {
		g.options.Ledger.CountDuplicate(a.Holder, r.Policy.RetentionOf(r.ByPayload))
	}
	return a
}

// loadKeptAnswer reads the answer for a duplicate if it is stored apart from its record.
func (g *Guard) loadKeptAnswer(v *idem.Verdict) error {
	if v.Decision != idem.DecisionReplayed && v.Decision != idem.DecisionAttached || v.StatusOnly {
		return nil
	}
	ctx, cancel := context.WithTimeout(g.options.Base, g.options.RequestTimeout)
	defer cancel()
	return g.readAnswer(ctx, v.Record)
}

func (g *Guard) readAnswer(ctx context.Context, rec *idem.Record) error {
	if rec.Answer == nil || !rec.Answer.Apart {
		return nil
	}
	return g.options.Ledger.ReadAnswer(ctx, rec)
}

// ofCopy reports whether a delivery that did not run gets its answer as a duplicate of Holder, or
// is refused as one.
func ofCopy(v *idem.Verdict) bool {
	if v.Holder == "" || v.WhileWaiting {
		return false
	}
	switch v.Decision.Row().Class {
	case idem.ClassDuplicate, idem.ClassFailed, idem.ClassBug: // settled, running, or attached to one that ended so
		return true
	}
	return v.Copy != nil && (v.Decision == idem.DecisionSkipped || v.Decision == idem.DecisionParked) ||
		v.Record != nil && v.Decision == idem.DecisionSuperseded
}

// Waiting returns how many deliveries wait in this process, and since when the oldest of them does;
// the zero time if none does.
func (g *Guard) Waiting() (n int, since time.Time) { return g.waiting.countWaiters() }

// randomKey makes the key of a delivery that is its own event: if idempotency is off, or if it has
// no event ID.
func (g *Guard) randomKey() idem.Key {
	key, err := idem.RandomKey(g.options.Random)
	if err != nil {
		panic(err) // see readRandom
	}
	return key
}

// readRandom fills b with random bytes. crypto/rand never fails; a test's reader that fails is a
// bug in the test.
func (g *Guard) readRandom(b []byte) {
	if _, err := io.ReadFull(g.options.Random, b); err != nil {
		panic(err)
	}
}
