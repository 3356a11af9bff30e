package etcdlock

import (
	"context"
	"sync"
)

// tasks are the goroutines that resolve what was begun, even when whoever began it has stopped to wait.
type tasks struct {
	life context.Context // theirs
	end  context.CancelFunc

	mu   sync.Mutex
	n    int
	shut bool
	none chan struct{} // closed when shut and none is left
}

func newTasks() *tasks {
	t := &tasks{none: make(chan struct{})}
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// start runs f as a task of its own; false after close.
func (t *tasks) start(f func(context.Context)) bool { return t.run(f, false) }

// help runs f on behalf of what runs already, also while the tasks are being closed; false when nothing runs any more.
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

// inTime runs f as a task, by start or help, and waits until ctx ends for what it brings. What comes after that goes to late, on the same
// goroutine; nil = nobody wants it then. The error is errClosed, or the context's.
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

// within is ctx for a caller that has entered: it ends with the tasks' life, too, because close waits for the caller.
func (t *tasks) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(t.life, func() { cancel(errClosed) })
	return ctx, func() {
		unhook()
		cancel(nil)
	}
}

// enter makes the caller itself a task, until it calls leave; false after close.
func (t *tasks) enter() bool { return t.add(false) }

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

// close starts no more and waits for the others; when ctx ends first it ends their life and waits on. The error says that
// something was left undone. Call it once.
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
