package link

import (
	"context"
	"sync"
	"time"
)

// Reflector keeps its owner's picture of some keys as etcd has them: it lists them, watches them
// from the next revision on, and lists them again when the watch breaks. It is called what
// client-go calls it.
type Reflector struct {
	Pool *Pool  // lists and watches the keys
	On   Stream // the stream that its watches are on
	Source
	Round time.Duration // 0 = Idle is not asked
}

// Source are the keys of a Reflector, and its owner's picture of them.
type Source interface {
	// List reads the keys, and returns the revision at which it did. Its error ends Run; it is that
	// of ctx, or the owner's own.
	List(ctx context.Context) (revision int64, err error)
	// Watches returns what is watched from a revision on.
	Watches(from int64) []Watch
	// Idle is called in each Round while the keys are watched. It returns true when they need not
	// be.
	Idle() bool
}

// Needed is a Source that is watched until ctx ends.
type Needed struct{}

// Idle implements Source.
func (Needed) Idle() bool { return false }

// Run returns when ctx ends, when List fails, or when Idle has returned true in two rounds in a
// row. known is the revision as of which the owner knows the keys, 0 = it does not: they are listed
// first.
func (r *Reflector) Run(ctx context.Context, known int64) {
	for idle := false; !idle && ctx.Err() == nil; known = 0 {
		if known == 0 {
			var err error
			if known, err = r.List(ctx); err != nil {
				return
			}
		}
		idle = r.runWatch(ctx, known+1)
	}
}

// runWatch returns when the watch breaks, or when nothing wants it any more: idle.
func (r *Reflector) runWatch(ctx context.Context, from int64) (idle bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var rounds sync.WaitGroup
	if r.Round > 0 {
		rounds.Go(func() {
			defer cancel()
			idle = r.untilIdle(ctx)
		})
	}
	_ = r.Pool.Watch(ctx, r.On, r.Watches(from)...) // whatever the error was, all is listed again
	cancel()
	rounds.Wait()
	return idle
}

// untilIdle returns false if ctx ends first.
func (r *Reflector) untilIdle(ctx context.Context) bool {
	for quiet := 0; quiet < 2; quiet++ {
		if Sleep(ctx, r.Round) != nil {
			return false
		}
		if !r.Idle() {
			quiet = -1
		}
	}
	return true
}
