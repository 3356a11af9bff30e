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
	// Policy returns the policy of the route of that name; nil: this process has no such route, and
	// leaves its executions to others.
	Policy func(route string) *idem.Policy
	// Running bounds the tries that go on at a time. It is called each time, because the limit may
	// be reloaded.
	Running func() int
	// Try sends the request of a parked execution once, and ends x with what it knows. request is
	// what Parking.Keep kept.
	Try func(x *guard.Execution, request []byte)
	// Ask asks the service what became of the latest try of a parked execution, whose lock has the
	// Question. It sets the outcome, the URL, the status and why it is unknown. nil: nothing is
	// asked.
	Ask func(ctx context.Context, lock *idem.Lock) idem.Asked
	// Drop deletes the stored request of so many bytes, outside of the ledger, of an execution that
	// has ended. nil: there is none.
	Drop func(id idem.ExecutionID, bytes int64)
	// OnEvent is called with events of executions whose sender is gone. It must not block.
	OnEvent func(Event)
	Now     func() time.Time // that of the Guard; nil means time.Now
}

// Ledger is an idem.ParkLedger that also knows the pauses, as idem.Ledger does.
type Ledger interface {
	idem.ParkLedger
	Paused(route, workflow string) *idem.Pause
}

// Event is one event of a parked execution.
type Event struct {
	What EventKind
	Lock *idem.Lock // as it was last seen
	Why  string     // for operators
	Code string
	Err  error
}

// EventKind is the kind of an event of a parked execution.
type EventKind string

// The kinds, besides its end.
const (
	EventRetry   EventKind = "retry"   // it is tried again
	EventBlocked EventKind = "blocked" // its queue waits for a decision
	// it ended without having gone through, and its request is kept
	EventDeadLetter EventKind = "dead_letter"
	// its service asks to be left alone, and its whole route is
	EventLeftAlone EventKind = "left_alone"
	EventDone      EventKind = "done" // an answer settled it
	// it did not run, because a newer event of its scope had gone through
	EventSuperseded EventKind = EventKind(idem.DecisionSuperseded)
	EventLost       EventKind = "lost" // another process runs it, or it was ended elsewhere
)

// Worker runs parked executions, of this process and of those that are gone, each queue in its
// order, within a bound on tries at a time. While the upstream is away, one try at a time asks
// whether it is back.
type Worker struct {
	options Options
	slots   slots
	tasks   sync.WaitGroup
	life    context.Context
	end     context.CancelCauseFunc

	mu     sync.Mutex
	runs   map[idem.Scope]*run // at most one for each lock
	inLine map[idem.Scope]bool // queues that wait for a slot, to be taken from
}

// New makes the Worker of a Guard, before that admits anything. Run has to be called.
func New(o Options) *Worker {
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = 2 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	w := &Worker{options: o, runs: map[idem.Scope]*run{}, inLine: map[idem.Scope]bool{}}
	w.slots = slots{running: o.Running, busy: o.Guard.BusyFor}
	w.life, w.end = context.WithCancelCause(context.Background())
	o.Guard.SetWorker(w)
	return w
}

// Run takes parked executions, until Close. It does not wait for slots, so that changes of running
// executions are seen while all are taken.
func (w *Worker) Run() {
	for {
		scope, route, err := w.options.Ledger.NextReady(w.life)
		if w.life.Err() != nil {
			return
		}
		w.wakeRun(scope)
		// a process with the route takes it; after a reload all queues are ready again
		if err != nil || route != "" && w.options.Policy(route) == nil {
			continue
		}
		w.lineUp(scope, route)
	}
}

// lineUp takes from a queue when there is a slot. A queue has one place in the line.
func (w *Worker) lineUp(scope idem.Scope, route string) {
	w.mu.Lock()
	waits := w.inLine[scope]
	w.inLine[scope] = true
	w.mu.Unlock()
	if waits {
		return
	}
	w.slots.joinQueue(route, scope.Workflow, func(slot *trySlot) {
		w.mu.Lock()
		delete(w.inLine, scope)
		w.mu.Unlock()
		w.tasks.Go(func() { w.takeParked(scope, slot) })
	})
}

// wakeRun wakes the execution that this process runs in a queue, because it may have changed: an
// operator may want it to run now.
func (w *Worker) wakeRun(s idem.Scope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.runs[s.OfLock()]; r != nil {
		sendSignal(r.wake)
	}
}

// OnReload has to be called when the routes or the limits have changed: a route may have been
// added, and there may be more slots.
func (w *Worker) OnReload() {
	w.slots.serveWaiters()
	w.options.Ledger.MarkReady(idem.Scope{})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.runs {
		sendSignal(r.wake)
	}
}

// OnReached implements guard.Worker.
func (w *Worker) OnReached() {
	if w.slots.seemsAway.Load() {
		w.slots.noteReached()
	}
}

// Drain takes nothing more. Executions stay parked for others, but for the tries that go on.
func (w *Worker) Drain() {
	w.end(guard.ErrShutdown)
	w.slots.close()
}

// Close is Drain, and waits for the tries that go on, until ctx ends.
func (w *Worker) Close(ctx context.Context) error {
	w.Drain()
	over := make(chan struct{})
	go func() { defer close(over); w.tasks.Wait() }()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// takeParked runs the first execution of a queue if it is parked and no worker runs it.
func (w *Worker) takeParked(s idem.Scope, slot *trySlot) {
	ctx, cancel := context.WithTimeout(w.life, w.options.RequestTimeout)
	taken, err := w.options.Ledger.TakeParked(ctx, s, func(route string) bool { return w.options.Policy(route) != nil })
	cancel()
	if err != nil || taken == nil {
		slot.giveUpSlot()
		if err != nil && w.life.Err() == nil {
			w.tasks.Go(func() { // the store does not answer: later
				if sleep(w.life, pauseAfter(firstPause, mostPause, 1)) == nil {
					w.options.Ledger.MarkReady(s)
				}
			})
		}
		return
	}
	r := w.registerRun(w.options.Guard.Resume(taken.Running))
	r.tooOld = taken.TooOld
	lock := taken.Running.Lock()
	r.planNextTry()
	switch {
	case taken.Carried && lock.Parked.Trying: // the end of what was sent will never be known
		slot.giveUpSlot()
		r.run(&guard.Tried{Sent: true, Failure: leftBy(taken)})
	case r.due.After(w.options.Now()):
		slot.giveUpSlot()
		r.run(nil)
	default:
		r.slot, r.request = slot, taken.Request // nothing keeps a request in memory while it waits
		r.run(nil)
	}
}

// leftBy returns why the latest try has no end.
func leftBy(t *idem.Taken) idem.Failure {
	if t.HoldExpired {
		return idem.Failure{Code: "hold_expired",
			Detail: "the upstream's hold was neither completed nor renewed in time; how far the work came is unknown"}
	}
	return idem.Failure{Code: string(idem.DecisionLockLost),
		Detail: "the process that tried it is gone; how far it came is unknown"}
}

// TakeOver implements guard.Worker.
func (w *Worker) TakeOver(x *guard.ParkedExecution, t guard.Tried) {
	r := w.registerRun(x)
	w.tasks.Go(func() { r.run(&t) })
}

// registerRun registers an execution that this process runs.
func (w *Worker) registerRun(running *guard.ParkedExecution) *run {
	lock := running.Lock()
	r := &run{worker: w, running: running, id: lock.Execution, scope: lock.Scope.OfLock(), bytes: lock.Parked.Bytes,
		wake: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[r.scope] = r
	return r
}

func sendSignal(c chan struct{}) {
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
