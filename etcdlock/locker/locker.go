package locker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// What Do, TryAcquire, Acquire and Unlock return, beside the context's error.
var (
	// ErrLockLost: this process has lost the lock, or cannot confirm that it has it. Another
	// process may have it.
	ErrLockLost = idem.ErrLockLost
	// ErrUnavailable: etcd does not answer or refuses, so nothing was acquired. The text says why.
	ErrUnavailable = idem.ErrStoreUnavailable
	// ErrNotReleased: the lock is not given back yet, because etcd does not answer. The Store goes
	// on trying until it is closed.
	ErrNotReleased = errors.New("lock not given back yet")
)

// HeldError is the error of TryAcquire: another execution has the lock, or it is free and others
// wait for it.
type HeldError struct {
	Workflow string // whose lock was asked for
	// Holder names the process that has the lock: Options.Holder and its session. "" = the lock is
	// being handed to the first waiter.
	Holder string
	// Execution is what it runs. "" as with Holder.
	Execution idem.ExecutionID
}

// Error names the workflow and the holder, and says what to do.
func (e *HeldError) Error() string {
	if e.Holder == "" {
		return fmt.Sprintf("workflow %q is waited for by others: wait with Acquire, or try again", e.Workflow)
	}
	return fmt.Sprintf("workflow %q is locked by %s, which runs %s: wait with Acquire, or try again", e.Workflow,
		e.Holder, e.Execution)
}

// Lock is the lock of a workflow that this process has. Its methods may be called from any
// goroutine.
type Lock struct {
	owned *owned.Lock
	life  context.Context // ends when the lock is lost
}

// Locks take locks that cover no event, in this process.
type Locks struct {
	Ledger idem.Ledger     // where the locks are
	Keeper *session.Keeper // keeps the session of this process
	Clock  link.Clock      // measures elapsed time
	Pool   *link.Pool      // reads and watches etcd
}

// Locker takes locks for Go programs that know nothing of webhooks. A workflow has one holder, over
// all processes.
type Locker struct{ locks *Locks }

// New returns a locker that takes its locks with l.
func New(l *Locks) *Locker { return &Locker{l} }

// afterDeath is for how long the record says that a holder of a Lock died.
const afterDeath = time.Hour

// TryAcquire takes the lock of a workflow, or returns a *HeldError. It does not wait for a session:
// after Open, WaitReady does. If ctx ends first, the Store gives back what etcd may still grant.
func (s *Locker) TryAcquire(ctx context.Context, workflow string) (*Lock, error) {
	taken := &HeldError{Workflow: workflow}
	held, err := idem.ClaimLock(ctx, func() (idem.RunningLock, *idem.Obstacle, error) {
		return s.locks.Ledger.Claim(ctx, s.locks.Describe(workflow), 0)
	}, func(seen *idem.Obstacle) (dead *idem.Lock, over bool) {
		switch l := seen.Lock; {
		case l == nil: // it is free, and others wait for it
		case l.Dead:
			return l, false
		default:
			taken.Holder, taken.Execution = l.Holder, l.Execution
		}
		return nil, true
	}, s.locks.Ledger.Reap)
	switch {
	case err != nil:
		return nil, fmt.Errorf("acquire %q: %w", workflow, err)
	case held == nil:
		return nil, taken
	}
	return beginLock(ctx, workflow, held)
}

// Acquire waits for the lock of a workflow until ctx ends: first come, first served, over all
// processes. It also waits for a session; if that is lost meanwhile, it begins again at the end of
// the queue.
func (s *Locker) Acquire(ctx context.Context, workflow string) (*Lock, error) {
	err := s.locks.Keeper.WaitReady(ctx)
	if err == nil {
		var held idem.RunningLock
		if held, err = s.locks.Await(ctx, func() idem.Lock { return s.locks.Describe(workflow) }); held != nil {
			return beginLock(ctx, workflow, held)
		}
	}
	return nil, fmt.Errorf("acquire %q: %w", workflow, err)
}

// Await waits for the lock that lock describes, each time it is asked for an execution of its own.
// The error is ctx's cause where that has ended, or idem.ErrCancelled where an operator ended the
// wait.
func (s *Locks) Await(ctx context.Context, lock func() idem.Lock) (idem.RunningLock, error) {
	end, err := idem.AwaitLock(ctx, s.Ledger, &waiter{locks: s, ctx: ctx, lock: lock}, idem.Verdict{Attempt: 1})
	if end.Entry != nil {
		_ = end.Entry.Leave(ctx) // the Store goes on to remove it
	}
	switch {
	case end.Running != nil:
		return end.Running, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case end.Verdict.Decision != "":
		return nil, idem.ErrCancelled // nothing else can happen to an event that is unique
	}
	return nil, err
}

// waiter waits for a lock that covers no event.
type waiter struct {
	locks   *Locks
	ctx     context.Context
	lock    func() idem.Lock
	session *session.Session // that its place is of
}

// Lock implements idem.Waiter.
func (w *waiter) Lock(idem.Verdict) idem.Lock {
	w.session, _, _ = w.locks.Keeper.Current()
	return w.lock()
}

// Judge implements idem.Waiter.
func (w *waiter) Judge(seen *idem.Obstacle, _ bool) idem.Verdict {
	if seen.Lock != nil && seen.Lock.Dead {
		return idem.Verdict{Reap: seen.Lock}
	}
	return idem.Verdict{Attempt: 1}
}

// BeforeRetry implements idem.Waiter: where the place went with its session, there is another one
// of the next.
func (w *waiter) BeforeRetry(err error) error {
	if session, _, _ := w.locks.Keeper.Current(); session != nil && session == w.session &&
		!errors.Is(err, idem.ErrQueueEntryLost) {
		return err
	}
	return w.locks.Keeper.WaitReady(w.ctx)
}

// RequestContext implements idem.Waiter. What is left undone when ctx ends, the Store goes on to
// undo.
func (w *waiter) RequestContext() (context.Context, context.CancelFunc) { return w.ctx, func() {} }

// Now implements idem.Waiter.
func (w *waiter) Now() time.Time { return w.locks.Clock.Now() }

// Describe returns an execution of a unique event: it shares only its workflow with others.
func (s *Locks) Describe(workflow string) idem.Lock {
	key, _ := idem.RandomKey(rand.Reader) // never fails
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return idem.Lock{
		ExecutionFacts: idem.ExecutionFacts{
			Execution: idem.NewExecutionID(workflow, key, random), Scope: idem.Scope{Workflow: workflow, Key: key},
			Attempt: 1, StartedAt: s.Clock.Now(), Retention: afterDeath,
		},
	}
}

func beginLock(ctx context.Context, workflow string, held idem.RunningLock) (*Lock, error) {
	life, lose := context.WithCancelCause(context.Background())
	held.OnStop(lose)
	l := &Lock{owned: held.(*owned.Lock), life: life}
	if err := held.Begin(); err != nil { // its answer came too late
		_ = l.Unlock(ctx)
		return nil, fmt.Errorf("acquire %q: %w", workflow, err)
	}
	return l, nil
}

// Token returns a number that is larger than that of every earlier holder of the workflow. Send it
// with each write, and let the receiver refuse one below the largest that it has seen. This
// protects if the lock was lost and its holder does not know it yet.
func (l *Lock) Token() int64 { return l.owned.Lock().Token }

// Execution returns the ID under which others see this process as the holder, in a HeldError.
func (l *Lock) Execution() idem.ExecutionID { return l.owned.Lock().Execution }

// Lost returns a channel that is closed if the lock was lost before Unlock was called, as far as
// this process can know. Stop working then.
func (l *Lock) Lost() <-chan struct{} { return l.life.Done() }

// Err returns why Lost is closed; nil if it is not.
func (l *Lock) Err() error { return context.Cause(l.life) }

// Unlock gives the lock back, and leaves nothing in etcd. nil means that no other process had it
// until now. ErrLockLost means that the lock was lost, because this process was taken for dead.
// ErrNotReleased means that etcd did not answer before ctx ended. It may be called again.
func (l *Lock) Unlock(ctx context.Context) error {
	err := l.owned.Release(ctx)
	if errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("%w: %w", ErrNotReleased, err)
	}
	return err
}
