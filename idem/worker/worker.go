package worker

import (
	"context"
	"sync"
	"time"

	"hooklock/idem"
	"hooklock/idem/guard"
)

// Options are what a Worker works with.
type Options struct {
	Guard *guard.Guard
	// Ledger is that of the Guard, and RequestTimeout bounds each request to it. Zero means 2 s.
	Ledger         Ledger
	RequestTimeout time.Duration
	// Policy returns the policy of the route of that name; nil: this process has no such route, and leaves its executions to others.
	Policy func(route string) *idem.Policy
	// Running bounds the tries that go on at a time. It is called each time, because the limit may be reloaded.
	Running func() int
	// Try sends the request of a parked execution once, and ends x with what it knows. request is what Parking.Keep kept.
	Try func(x *guard.Execution, request []byte)
	// Drop deletes the stored request of so many bytes, outside of the ledger, of an execution that has ended. nil: there is none.
	Drop func(id idem.ExecutionID, bytes int64)
	// Told is called with events of executions whose sender is gone. It must not block.
	Told func(Told)
	Now  func() time.Time // that of the Guard; nil means time.Now
}

// Ledger is an idem.ParkLedger that also knows the pauses, as idem.Ledger does.
type Ledger interface {
	idem.ParkLedger
	Paused(route, workflow string) *idem.Pause
}

// Told is one event of a parked execution.
type Told struct {
	What ToldKind
	Lock *idem.Lock // as it was last seen
	Why  string     // for operators
	Code string
	Err  error
}

// ToldKind is the kind of an event of a parked execution.
type ToldKind string

// The kinds, besides its end.
const (
	ToldRetry      ToldKind = "retry"                           // it is tried again
	ToldBlocked    ToldKind = "blocked"                         // its queue waits for a decision
	ToldDeadLetter ToldKind = "dead_letter"                     // it ended without having gone through, and its request is kept
	ToldDone       ToldKind = "done"                            // an answer settled it
	ToldSuperseded ToldKind = ToldKind(idem.DecisionSuperseded) // it did not run, because a newer event of its scope had gone through
	ToldLost       ToldKind = "lost"                            // another process runs it, or it was ended elsewhere
)

// Worker runs parked executions, of this process and of those that are gone, each queue in its order, within a bound on tries at a time. While the upstream is away, one try at a time asks whether it is back.
type Worker struct {
	o     Options
	slots slots
	tasks sync.WaitGroup
	life  context.Context
	end   context.CancelCauseFunc

	mu      sync.Mutex
	runs    map[idem.Scope]*parkedRun // at most one for each lock
	ready   []idem.Scope              // queues to take from when there is a slot, each once
	isReady map[idem.Scope]bool       // those
	some    chan struct{}             // signals that ready is not empty
}

// New makes the Worker of a Guard, before that admits anything. Run has to be called.
func New(o Options) *Worker {
	if o.Told == nil {
		o.Told = func(Told) {}
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = 2 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Worker{o: o, runs: map[idem.Scope]*parkedRun{}, isReady: map[idem.Scope]bool{}, some: make(chan struct{}, 1)}
	c.slots = slots{running: o.Running, busy: o.Guard.Busy}
	c.life, c.end = context.WithCancelCause(context.Background())
	o.Guard.SetWorker(c)
	return c
}

// Run takes parked executions, until Close. Queues wait for a slot in another goroutine, so that changes of running executions are seen while
// all slots are taken.
func (c *Worker) Run() {
	var taking sync.WaitGroup
	defer taking.Wait()
	taking.Go(c.takeReady)
	for {
		scope, route, err := c.o.Ledger.NextReady(c.life)
		if c.life.Err() != nil {
			return
		}
		c.look(scope)
		if err != nil || route != "" && c.o.Policy(route) == nil { // a process with the route takes it; after a reload all queues are ready again
			continue
		}
		c.mu.Lock()
		if !c.isReady[scope] {
			c.ready, c.isReady[scope] = append(c.ready, scope), true
		}
		c.mu.Unlock()
		poke(c.some)
	}
}

// takeReady takes from ready queues, the oldest first, when there is a slot.
func (c *Worker) takeReady() {
	for {
		select {
		case <-c.some:
		case <-c.life.Done():
			return
		}
		for c.hasReady() {
			leave, err := c.slots.enter(c.life)
			if err != nil {
				return
			}
			c.mu.Lock()
			scope := c.ready[0]
			c.ready = c.ready[1:]
			delete(c.isReady, scope)
			c.mu.Unlock()
			c.tasks.Go(func() { c.take(scope, leave) })
		}
	}
}

func (c *Worker) hasReady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ready) > 0
}

// look wakes the execution that this process runs in a queue, because it may have changed: an operator may want it to run now.
func (c *Worker) look(s idem.Scope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.runs[s.OfLock()]; e != nil {
		poke(e.wake)
	}
}

// Reloaded has to be called when the routes have changed: one may have been added.
func (c *Worker) Reloaded() {
	c.o.Ledger.MarkReady(idem.Scope{})
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.runs {
		poke(e.wake)
	}
}

// Reached implements Worker.
func (c *Worker) Reached() {
	if c.slots.seemsAway.Load() {
		c.slots.reached()
	}
}

// Drain takes nothing more. Executions stay parked for others, but for the tries that go on.
func (c *Worker) Drain() { c.end(guard.ErrShutdown) }

// Close is Drain, and waits for the tries that go on, until ctx ends.
func (c *Worker) Close(ctx context.Context) error {
	c.Drain()
	over := make(chan struct{})
	go func() { defer close(over); c.tasks.Wait() }()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take runs the first execution of a queue if it is parked and no worker runs it. leave gives the slot back.
func (c *Worker) take(s idem.Scope, leave func()) {
	ctx, cancel := context.WithTimeout(c.life, c.o.RequestTimeout)
	taken, err := c.o.Ledger.Take(ctx, s, func(route string) bool { return c.o.Policy(route) != nil })
	cancel()
	if err != nil || taken == nil {
		leave()
		if err != nil && c.life.Err() == nil {
			c.tasks.Go(func() { // the store does not answer: later
				if sleep(c.life, pauseAfter(1)) == nil {
					c.o.Ledger.MarkReady(s)
				}
			})
		}
		return
	}
	e := c.begin(c.o.Guard.Resume(taken.Held))
	e.tooOld = taken.TooOld
	lock := taken.Held.Lock()
	if taken.Carried && lock.Parked.Trying { // the end of what was sent will never be known
		leave()
		e.run(&guard.Tried{Sent: true, Failure: leftBy(taken)}, nil)
		return
	}
	if taken.Carried && maybeAtWork(lock) {
		leave()
		e.due = c.o.Now().Add(lock.ReleaseDelay)
		e.run(nil, nil)
		return
	}
	e.request = taken.Request // nothing keeps a request in memory while it waits
	e.run(nil, leave)
}

// maybeAtWork reports whether the upstream may still be at work on the latest try of a parked execution that another process had. That
// process's clock alone measured its wait, so the whole delay begins anew. Without a NextAttempt an operator has said that it is to run now.
func maybeAtWork(l *idem.Lock) bool {
	p := l.Parked
	return l.ReleaseDelay > 0 && p.Last != nil && p.Last.Outcome == idem.Unknown && !p.NextAttempt.IsZero()
}

// leftBy returns why the latest try has no end.
func leftBy(t *idem.Taken) idem.Failure {
	if t.HoldExpired {
		return idem.Failure{Code: "hold_expired", Detail: "the upstream's hold was neither completed nor renewed in time; how far the work came is unknown"}
	}
	return idem.Failure{Code: string(idem.DecisionLockLost), Detail: "the process that tried it is gone; how far it came is unknown"}
}

// TakeOver implements Worker.
func (c *Worker) TakeOver(x *guard.ParkedExecution, t guard.Tried) {
	e := c.begin(x)
	c.tasks.Go(func() { e.run(&t, nil) })
}

// begin registers an execution that this process runs.
func (c *Worker) begin(held *guard.ParkedExecution) *parkedRun {
	lock := held.Lock()
	e := &parkedRun{c: c, held: held, id: lock.Execution, scope: lock.Scope.OfLock(), bytes: lock.Parked.Bytes, wake: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[e.scope] = e
	return e
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
