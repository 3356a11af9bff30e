package commit

import (
	"context"
	"errors"
	"sync"

	"hooklock/etcdlock/link"
	"hooklock/idem"
)

// ErrClosed is returned once the Store is closed.
var ErrClosed = errors.New("store is closed")

// Tasks runs the goroutines that finish what was begun, even if the caller has stopped waiting for
// it.
type Tasks struct {
	Life context.Context // of all tasks
	end  context.CancelFunc

	mu      sync.Mutex
	running int
	shut    bool
	none    chan struct{} // closed when shut is set and no task is left
}

// NewTasks returns tasks of which none runs.
func NewTasks() *Tasks {
	t := &Tasks{none: make(chan struct{})}
	t.Life, t.end = context.WithCancel(context.Background())
	return t
}

// Start runs f as a task of its own. It returns false after Close.
func (t *Tasks) Start(f func(context.Context)) bool { return t.startTask(f, false) }

// Help runs f on behalf of a running task, also during Close. It returns false when no task runs
// any more.
func (t *Tasks) Help(f func(context.Context)) bool { return t.startTask(f, true) }

func (t *Tasks) startTask(f func(context.Context), helps bool) bool {
	if !t.addRunning(helps) {
		return false
	}
	go func() {
		defer t.Leave()
		f(t.Life)
	}()
	return true
}

// InTime runs f as a task, by Start or Help, and waits for its result until ctx ends. A later
// result goes to late, on the same goroutine; nil drops it. It returns ErrClosed or the error of
// ctx.
func InTime[T any](ctx context.Context, run func(func(context.Context)) bool, f func(life context.Context) T,
	late func(life context.Context, result T)) (result T, err error) {
	done, gone := make(chan T), make(chan struct{})
	if !run(func(life context.Context) {
		r := f(life)
		select {
		case done <- r:
		case <-gone:
			if late != nil {
				late(life, r)
			}
		}
	}) {
		return result, ErrClosed
	}
	select {
	case result = <-done:
		return result, nil
	case <-ctx.Done():
		close(gone)
		return result, context.Cause(ctx)
	}
}

// Within returns a context for a caller that has entered. It also ends with the tasks' life,
// because Close waits for the caller.
func (t *Tasks) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(t.Life, func() { cancel(ErrClosed) })
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

// Enter makes the caller itself a task until it calls Leave. It returns false after Close.
func (t *Tasks) Enter() bool { return t.addRunning(false) }

// Busy reports whether a task runs.
func (t *Tasks) Busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running > 0
}

func (t *Tasks) addRunning(helps bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shut && (!helps || t.running == 0) {
		return false
	}
	t.running++
	return true
}

// Leave ends what Enter began.
func (t *Tasks) Leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	if t.shut && t.running == 0 {
		close(t.none)
	}
}

// Close lets no more tasks start and waits for the others. If ctx ends first, it ends their life
// and waits on; the error then says that something was left undone.
func (t *Tasks) Close(ctx context.Context) error {
	t.mu.Lock()
	if !t.shut && t.running == 0 {
		close(t.none)
	}
	t.shut = true
	t.mu.Unlock()
	defer t.end()
	select {
	case <-t.none:
		return nil
	case <-ctx.Done():
	}
	t.end()
	<-t.none
	return context.Cause(ctx)
}

// Repeat calls try until it is done, or until ctx or the tasks' life ends; what it did is then not
// known, and the next reader finds out. done false: things have changed, and it is called again,
// after a pause if err is not nil. What is repeated compares what it changes. Repeat returns the
// error of a try that is done, or an idem.ErrStoreUnavailable with the last reason that etcd gave.
func (t *Tasks) Repeat(ctx context.Context, try func(ctx context.Context) (done bool, err error)) error {
	if !t.Enter() {
		return Unavailable(ErrClosed)
	}
	defer t.Leave()
	ctx, cancel := t.Within(ctx)
	defer cancel()
	var reason error // of the newest try that was not cut off
	for pause := link.NewBackoff(); ; {
		done, err := try(ctx)
		if done {
			return err
		}
		cut := ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)) ||
			errors.Is(err, link.ErrNotSent))
		switch {
		case cut && reason != nil:
			err = reason
		case err == nil:
			err = context.Cause(ctx)
		default:
			if reason = err; pause.Wait(ctx) == nil {
				continue
			}
		}
		if errors.Is(err, idem.ErrStoreUnavailable) {
			return err
		}
		if err != nil {
			return Unavailable(err)
		}
	}
}
