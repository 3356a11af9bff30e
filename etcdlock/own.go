package etcdlock

import (
	"maps"
	"sync"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/idem"
)

// ownLocks are the locks that this process holds. It is safe for concurrent use.
type ownLocks struct {
	mu    sync.Mutex
	locks map[idem.ExecutionID]*owned
	// early are executions whose lock was reported changed, and when, while this process did not hold it: the answer to its claim may be on its way.
	early map[idem.ExecutionID]time.Time
}

func newOwnLocks() *ownLocks {
	return &ownLocks{locks: map[idem.ExecutionID]*owned{}, early: map[idem.ExecutionID]time.Time{}}
}

// add makes h a lock that this process holds. early: it was changed since it was taken.
func (o *ownLocks) add(h *owned) (early bool) {
	id := h.lock.Execution
	o.mu.Lock()
	defer o.mu.Unlock()
	o.locks[id] = h
	_, early = o.early[id]
	delete(o.early, id)
	return early
}

// remove is called when this process has nothing to do with h any more. It may have taken the same execution up again since.
func (o *ownLocks) remove(id idem.ExecutionID, h *owned) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.locks[id] == h {
		delete(o.locks, id)
	}
}

// of returns the lock of id if this process holds it, or nil.
func (o *ownLocks) of(id idem.ExecutionID) *owned {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.locks[id]
}

// has reports whether this process holds the lock of id, and so ends it itself.
func (o *ownLocks) has(id idem.ExecutionID) bool { return o.of(id) != nil }

// changed is of for a lock that was reported changed now. If this process does not hold it, add reports that.
func (o *ownLocks) changed(id idem.ExecutionID, now time.Time) *owned {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.locks[id]
	if h == nil {
		maps.DeleteFunc(o.early, func(_ idem.ExecutionID, at time.Time) bool { return now.Sub(at) > commit.NoticeLife })
		o.early[id] = now
	}
	return h
}

// which returns the locks that f holds for.
func (o *ownLocks) which(f func(*owned) bool) (locks []*owned) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range o.locks {
		if f(h) {
			locks = append(locks, h)
		}
	}
	return locks
}

// all returns all locks.
func (o *ownLocks) all() []*owned { return o.which(func(*owned) bool { return true }) }
