package etcdlock

import (
	"context"
	"errors"
	"sync"
)

// errClosed is returned once the Store is closed.
var errClosed = errors.New("store is closed")

// tasks runs the goroutines that finish what was begun, even if the caller has stopped waiting for it.
type tasks struct {
	life context.Context // of all tasks
	end  context.CancelFunc

	mu   sync.Mutex
	n    int
	shut bool
	none chan struct{} // closed when shut is set and no task is left
}

func newTasks() *tasks {
	t := &tasks{none: make(chan struct{})}
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// start runs f as a task of its own. It returns false after close.
func (t *tasks) start(f func(context.Context)) bool { return t.run(f, false) }

// help runs f on behalf of a running task, also during close. It returns false when no task runs any more.
func (t *tasks) help(f func(context.Context)) bool { return t.run(f, true) }

func (t *tasks) run(f func(context.Context), helps bool) bool {
	if !t.add(helps) {
		return false
	}
	go func() {
		defer t.leave()
		f(t.life)
	}()
	return true
}

// inTime runs f as a task, by start or help, and waits for its result until ctx ends. A later result goes to late, on the same goroutine; nil drops
// it. It returns errClosed or the error of ctx.
func inTime[T any](ctx context.Context, run func(func(context.Context)) bool, f func(life context.Context) T, late func(life context.Context, result T)) (result T, err error) {
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
		return result, errClosed
	}
	select {
	case result = <-done:
		return result, nil
	case <-ctx.Done():
		close(gone)
		return result, context.Cause(ctx)
	}
}

// within returns a context for a caller that has entered. It also ends with the tasks' life, because close waits for the caller.
func (t *tasks) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(t.life, func() { cancel(errClosed) })
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

// enter makes the caller itself a task until it calls leave. It returns false after close.
func (t *tasks) enter() bool { return t.add(false) }

// busy reports whether a task runs.
func (t *tasks) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n > 0
}

func (t *tasks) add(helps bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shut && (!helps || t.n == 0) {
		return false
	}
	t.n++
	return true
}

func (t *tasks) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n--
	if t.shut && t.n == 0 {
		close(t.none)
	}
}

// close lets no more tasks start and waits for the others. If ctx ends first, it ends their life and waits on; the error then says that something was
// left undone. Call it once.
func (t *tasks) close(ctx context.Context) error {
	t.mu.Lock()
	t.shut = true
	if t.n == 0 {
		close(t.none)
	}
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
