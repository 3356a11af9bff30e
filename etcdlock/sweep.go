package etcdlock

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

const (
	sweepPage  = 100
	sweepPause = 500 * time.Millisecond // at most, before a sweep: all processes hear of a death at once
	sweepAgain = 10 * time.Second       // before the next one, where etcd took no burial
)

// sweeper buries what the dead have left. Whoever meets a dead lock buries it, too; the sweeper is for locks that nobody asks for: behind one there may be
// what is parked, or who waits for a slot, and neither meets it.
type sweeper struct {
	store *core
	wake  chan struct{}

	mu    sync.Mutex
	names map[string]struct{}           // sessions that ended
	holds map[idem.ExecutionID]struct{} // that are gone: they ran out, or with the end of what they held
	all   bool                          // look at every lock, once after a session has opened
}

func newSweeper(s *core) *sweeper {
	return &sweeper{store: s, wake: make(chan struct{}, 1), names: map[string]struct{}{}, holds: map[idem.ExecutionID]struct{}{}}
}

// died asks for a sweep of what these sessions have owned.
func (w *sweeper) died(names []string) {
	if len(names) == 0 {
		return
	}
	w.mu.Lock()
	for _, name := range names {
		w.names[name] = struct{}{}
	}
	w.mu.Unlock()
	w.nudge()
}

// maxHolds is how many holds are looked at one by one.
const maxHolds = 1000

// holdGone asks for a look at the lock that this execution had.
func (w *sweeper) holdGone(id idem.ExecutionID) {
	w.mu.Lock()
	if len(w.holds) < maxHolds {
		w.holds[id] = struct{}{}
	} else {
		w.all = true
	}
	w.mu.Unlock()
	w.nudge()
}

// everything asks for a look at every lock: somebody may have died unnoticed.
func (w *sweeper) everything() {
	w.mu.Lock()
	w.all = true
	w.mu.Unlock()
	w.nudge()
}

func (w *sweeper) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// left notes a lock that could not be buried now, for the next sweep.
func (w *sweeper) left(l *idem.Lock) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !protocol.IsHold(l.Alive):
		w.names[strings.TrimPrefix(l.Alive, protocol.KindSessions)] = struct{}{}
	case len(w.holds) < maxHolds:
		w.holds[l.Execution] = struct{}{}
	default:
		w.all = true
	}
}

// more reports whether there is something to look at.
func (w *sweeper) more() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all || len(w.names) > 0 || len(w.holds) > 0
}

func (w *sweeper) run(ctx context.Context) {
	for {
		var again <-chan time.Time
		if w.more() { // of the sweep before, or it has woken this one as well
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
			w.sweep(ctx, w.store.layout.Locks(), func(l *idem.Lock) bool {
				_, ended := names[strings.TrimPrefix(l.Alive, protocol.KindSessions)]
				return all || ended
			})
		}
		for id := range holds {
			if workflow, _, err := id.Parse(); err == nil && !all {
				w.sweep(ctx, w.store.layout.Locks()+protocol.Hex16(workflow)+"/", func(l *idem.Lock) bool { return l.Execution == id && protocol.IsHold(l.Alive) })
			}
		}
	}
}

// sweep goes through the locks below prefix, page by page. One that it cannot bury now is left to whoever meets it, or to the next sweep.
func (w *sweeper) sweep(ctx context.Context, prefix string, mayBeDead func(*idem.Lock) bool) {
	for from, end := prefix, clientv3.GetPrefixRangeEnd(prefix); ; {
		var page *clientv3.GetResponse
		for pause := link.NewBackoff(); page == nil; {
			err := w.store.pool.Try(ctx, link.AttemptTimeout, func(ctx context.Context, c *clientv3.Client) (err error) {
				page, err = c.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(sweepPage))
				return err
			})
			if err != nil && pause.Wait(ctx) != nil {
				return
			}
		}
		for _, kv := range page.Kvs {
			l, err := protocol.LockAt(kv)
			if err != nil {
				continue // of a newer release, which sweeps, too
			}
			if mayBeDead(l) {
				w.buryIfDead(ctx, l)
			}
		}
		if !page.More || len(page.Kvs) == 0 {
			return
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

func (w *sweeper) buryIfDead(ctx context.Context, l *idem.Lock) {
	ctx, cancel := context.WithTimeout(ctx, 2*link.TxnTimeout)
	defer cancel()
	dead, err := w.store.isDead(ctx, l)
	switch {
	case err != nil:
		w.left(l)
		return
	case !dead:
		return
	}
	if err := w.store.bury(ctx, l); err != nil {
		w.left(l)
		w.store.o.Logger.Warn("lock.bury", "execution", l.Execution, "workflow", l.Scope.Workflow, "error", err)
	}
}
