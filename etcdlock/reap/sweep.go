package reap

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// SweepPage is how many locks a sweep reads at a time.
const SweepPage = 100

const (
	sweepPause = 500 * time.Millisecond // at most, before a sweep: all processes hear of a death at once
	sweepAgain = 10 * time.Second       // before the next one, if etcd has refused to reap a lock
)

// Sweeper reaps what dead processes have left. An execution that meets a dead lock reaps it, too;
// the sweeper is for locks that none meets: behind one there may be a parked execution, or one that
// waits for a slot, and neither meets it. It is safe for concurrent use.
type Sweeper struct {
	reaper *Reaper
	wake   chan struct{}

	mu    sync.Mutex
	names map[string]struct{}           // sessions that ended
	holds map[idem.ExecutionID]struct{} // that are gone: they ran out, or with the end of what they held
	all   bool                          // look at every lock, once after a session has opened
}

// NewSweeper returns a sweeper that does nothing before Run.
func NewSweeper(r *Reaper) *Sweeper {
	return &Sweeper{reaper: r, wake: make(chan struct{}, 1), names: map[string]struct{}{},
		holds: map[idem.ExecutionID]struct{}{}}
}

// Died requests a sweep of what these sessions have owned.
func (w *Sweeper) Died(names []string) {
	if len(names) == 0 {
		return
	}
	w.mu.Lock()
	for _, name := range names {
		w.names[name] = struct{}{}
	}
	w.mu.Unlock()
	link.Wake(w.wake)
}

// Suspend lets no sweep of a test begin until resume is called. Other methods of w wait, too.
func (w *Sweeper) Suspend() (resume func()) {
	w.mu.Lock()
	return w.mu.Unlock
}

// maxHolds is how many holds are looked at one by one.
const maxHolds = 1000

// LookAtHold requests a look at the lock that this execution had.
func (w *Sweeper) LookAtHold(id idem.ExecutionID) {
	w.mu.Lock()
	w.lookAtHoldLocked(id)
	w.mu.Unlock()
	link.Wake(w.wake)
}

func (w *Sweeper) lookAtHoldLocked(id idem.ExecutionID) {
	if len(w.holds) < maxHolds {
		w.holds[id] = struct{}{}
	} else {
		w.all = true
	}
}

// Everything requests a look at every lock: an owner may have died unnoticed.
func (w *Sweeper) Everything() {
	w.mu.Lock()
	w.all = true
	w.mu.Unlock()
	link.Wake(w.wake)
}

// keepForNextSweep notes a lock that could not be reaped now, for the next sweep.
func (w *Sweeper) keepForNextSweep(l *idem.Lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if protocol.IsHold(l.Alive) {
		w.lookAtHoldLocked(l.Execution)
	} else {
		w.names[strings.TrimPrefix(l.Alive, protocol.KindSessions)] = struct{}{}
	}
}

// hasWork reports whether there is something to look at.
func (w *Sweeper) hasWork() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all || len(w.names) > 0 || len(w.holds) > 0
}

// Run sweeps on request, until ctx ends.
func (w *Sweeper) Run(ctx context.Context) {
	for {
		var again <-chan time.Time
		if w.hasWork() { // of the sweep before, or it has woken this one as well
			again = time.After(sweepAgain)
		}
		select {
		case <-w.wake:
		case <-again:
		case <-ctx.Done():
			return
		}
		if link.Sleep(ctx, rand.N(sweepPause)) != nil {
			return
		}
		w.mu.Lock()
		names, holds, all := w.names, w.holds, w.all
		w.names, w.holds, w.all = map[string]struct{}{}, map[idem.ExecutionID]struct{}{}, false
		w.mu.Unlock()
		if all || len(names) > 0 {
			w.sweepLocks(ctx, w.reaper.options.Layout.All(protocol.KindLocks), func(l *idem.Lock) bool {
				_, ended := names[strings.TrimPrefix(l.Alive, protocol.KindSessions)]
				return all || ended
			})
		}
		for id := range holds {
			if workflow, _, err := id.Parse(); err == nil && !all {
				w.sweepLocks(ctx, w.reaper.options.Layout.All(protocol.KindLocks)+protocol.Hex16(workflow)+"/",
					func(l *idem.Lock) bool {
						return l.Execution == id && protocol.IsHold(l.Alive)
					})
			}
		}
	}
}

// sweepLocks goes through the locks below prefix. One that it cannot reap now is left to the next
// sweep, or to a caller that meets it.
func (w *Sweeper) sweepLocks(ctx context.Context, prefix string, mayBeDead func(*idem.Lock) bool) {
	keys := link.Below(prefix, SweepPage)
	keys.Fresh = true
	for kv, err := range w.reaper.options.Pool.All(ctx, keys) {
		if err != nil { // ctx has ended
			return
		}
		if l, err := protocol.LockAt(kv); err == nil && mayBeDead(l) { // else of a newer release, which sweeps, too
			w.reapIfDead(ctx, l)
		}
	}
}

func (w *Sweeper) reapIfDead(ctx context.Context, l *idem.Lock) {
	ctx, cancel := context.WithTimeout(ctx, 2*w.reaper.options.Pool.Txn)
	defer cancel()
	dead, err := w.reaper.IsDead(ctx, l)
	switch {
	case err != nil:
		w.keepForNextSweep(l)
		return
	case !dead:
		return
	}
	if err := w.reaper.Reap(ctx, l); err != nil {
		w.keepForNextSweep(l)
		w.reaper.options.OnNotReaped(l, err)
	}
}
