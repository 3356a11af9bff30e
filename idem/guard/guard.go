package guard

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"sync/atomic"
	"time"

	"hooklock/idem"
)

// Options are what a Guard works with.
type Options struct {
	Ledger idem.Ledger
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

// Admission is the answer of Admit: an execution that may run, or the decision that the delivery
// does not.
type Admission struct {
	Execution *Execution
	idem.Verdict
	// Waited is how long the delivery waited: in the queue, or for the answer of the first delivery
	// of its event. 0 = it did not wait.
	Waited time.Duration
	// Unrecorded: (of superseded) the event did not run, but the ledger does not have this yet.
	Unrecorded bool
	Err        error // the cause of store_unavailable, for the log
}

// Admit decides about one delivery. It returns within RequestTimeout, or twice that if the request
// store hangs, unless the policy lets the delivery wait. sender ends when the sender no longer
// waits for the answer; a decision that is under way does not depend on it.
func (g *Guard) Admit(sender context.Context, r *idem.Request) Admission {
	r.Scope.PerEvent = r.Policy.PerEvent()
	if r.Policy.Strategy == idem.NoLock {
		r.Order = nil // nothing tells two events apart, so none has a position
	}
	if !r.Policy.Idempotency || r.Scope.Key == "" {
		r.Scope.Key = g.randomKey()
	}
	t := turn{guard: g, request: r, sender: sender}
	t.take()
	a := t.admission
	if err := g.whole(&a.Verdict); err != nil {
		a = unavailable(err)
	}
	if a.WhileWaiting && r.Policy.Observe {
		g.options.Ledger.Drop(a.Record)
	}
	if a.Execution == nil && !r.Policy.Observe && ofCopy(&a.Verdict) {
		g.options.Ledger.Duplicate(a.Holder, r.Policy.RetentionOf(r.ByPayload))
	}
	return a
}

// whole reads the answer for a duplicate if it is stored apart from its record.
func (g *Guard) whole(v *idem.Verdict) error {
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
	return g.options.Ledger.Answer(ctx, rec)
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
func (g *Guard) Waiting() (n int, since time.Time) { return g.waiting.waiting() }

// admit decides without waiting.
func (g *Guard) admit(r *idem.Request) Admission {
	if rec := g.cache.get(r.Scope.Key, g.options.Now()); rec != nil {
		if v := idem.Decide(&idem.Obstacle{Record: rec}, r, g.options.Now()); v.Decision != "" {
			return Admission{Verdict: v}
		}
	}
	if r.Policy.Quiet > 0 && !r.Policy.Observe { // it waits even if the lock is free, because a newer one may come
		return Admission{Verdict: idem.Verdict{Decision: idem.DecisionLocked}}
	}
	ctx, cancel := context.WithTimeout(g.options.Base, g.options.RequestTimeout) // from here on the ledger may be asked
	defer cancel()
	mine, running, err := g.live.enter(ctx, r.Scope)
	switch {
	case err != nil:
		return unavailable(err)
	case running != nil:
		return Admission{Verdict: idem.Decide(&idem.Obstacle{Lock: running}, r, g.options.Now())}
	}
	if wait, ok := g.quotas.take(r.Policy, g.options.Now()); !ok {
		g.live.leave(mine)
		return Admission{Verdict: idem.Verdict{Decision: idem.DecisionThrottled, RetryAfter: wait}}
	}
	held, callbackKey, v, err := g.claim(ctx, r)
	if held == nil || v.Attempt > 1 { // no execution, so no new event
		g.quotas.add(r.Policy, 1, g.options.Now())
	}
	if held == nil {
		g.live.leave(mine)
		if err != nil {
			return unavailable(err)
		}
		return Admission{Verdict: v}
	}
	g.live.won(mine, held.Lock())
	return g.judged(newExecution(g, r.Policy, r, held, mine, callbackKey), r)
}

// judged ends an execution at once that is older than what went through, if its route does not let
// it run.
func (g *Guard) judged(x *Execution, r *idem.Request) Admission {
	stale := x.Lock().Stale
	now := idem.Situation{Attached: true, Stale: r.Policy.StalenessOf(stale)}
	does := idem.Next(&now)
	if does == idem.ActCall || r.Policy.Observe {
		return Admission{Execution: x}
	}
	v := idem.Verdict{Decision: idem.DecisionStale, Holder: x.Lock().Execution, Stale: stale}
	if does == idem.ActRelease {
		return Admission{Verdict: v, Err: x.release().Err}
	}
	v.Decision = idem.DecisionSuperseded
	end := x.settle(idem.End{Status: idem.Aborted, Outcome: idem.NotExecuted, Abort: stale.Abort(g.options.Now())})
	return Admission{Verdict: v, Unrecorded: !end.Recorded && !end.Lost, Err: end.Err}
}

func unavailable(err error) Admission {
	return Admission{Verdict: idem.Verdict{Decision: idem.DecisionStoreUnavailable}, Err: err}
}

// claim asks the ledger until it holds the lock, or knows why it may not.
func (g *Guard) claim(ctx context.Context, r *idem.Request) (held idem.RunningLock, callbackKey string, v idem.Verdict,
	err error) {
	v = idem.Verdict{Attempt: 1}
	var seenAt moment
	var unread error
	held, err = idem.ClaimLock(ctx, func() (idem.RunningLock, *idem.Obstacle, error) {
		var lock idem.Lock
		seenAt = g.cache.seenAt(g.options.Now())
		if r.Policy.Strategy == idem.Wait {
			// A delivery that cannot wait claims all the same: it may be a duplicate, which is
			// answered as one.
			ahead := g.options.Ledger.Ahead(r.Scope)
			if ahead != nil && g.options.Ledger.Paused(r.Policy.Route, r.Scope.Workflow) == nil &&
				g.waiting.room(r.Scope.Workflow, r.Policy.MaxWaiting, g.options.MaxWaiting()) {
				return nil, &idem.Obstacle{Lock: ahead, Queue: true}, nil
			}
		}
		lock, callbackKey = g.newLock(r, v)
		return g.options.Ledger.Claim(ctx, lock, v.Prev)
	}, func(seen *idem.Obstacle) (dead *idem.Lock, over bool) {
		if unread = g.rememberRecord(ctx, r, seen, seenAt); unread != nil {
			return nil, true
		}
		if v = idem.Decide(seen, r, g.options.Now()); v.Decision != "" {
			return nil, true
		}
		if dead = v.Reap; dead != nil {
			v = idem.Verdict{Attempt: 1} // read again, as at first
		}
		return dead, false
	}, g.options.Ledger.Reap)
	return held, callbackKey, v, cmp.Or(err, unread)
}

// rememberRecord reads the answer of the record that was seen, which was written at any time
// before, and remembers both: unless a person lets the event run again, whose answer will be
// another one.
func (g *Guard) rememberRecord(ctx context.Context, r *idem.Request, seen *idem.Obstacle, at moment) error {
	rec := seen.Record
	if rec == nil {
		return nil
	}
	if rec.Settled() {
		if err := g.readAnswer(ctx, rec); err != nil {
			return err
		}
	}
	if !seen.Runs(r.Scope.Key) {
		g.cache.remember(r.Policy, rec, at, idem.Slack(rec.Retention))
	}
	return nil
}

// newLock returns the lock that a claim would write, and its callback key.
func (g *Guard) newLock(r *idem.Request, v idem.Verdict) (idem.Lock, string) {
	var random [20]byte
	g.read(random[:])
	callbackKey, hash := idem.NewCallbackKey([10]byte(random[4:14]))
	id := idem.NewExecutionID(r.Scope.Workflow, r.Scope.Key, [4]byte(random[:4]))
	return r.Lock(id, hash, &v, g.options.Now()), callbackKey
}

// randomKey makes the key of a delivery that is its own event: if idempotency is off, or if it has
// no event ID.
func (g *Guard) randomKey() idem.Key {
	key, err := idem.RandomKey(g.options.Random)
	if err != nil {
		panic(err) // see read
	}
	return key
}

// read fills b with random bytes. crypto/rand never fails; a test's reader that fails is a bug in
// the test.
func (g *Guard) read(b []byte) {
	if _, err := io.ReadFull(g.options.Random, b); err != nil {
		panic(err)
	}
}
