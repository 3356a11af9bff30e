package owned

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Lock is a lock that this process holds. It implements idem.RunningLock.
type Lock struct {
	locks   *Locks
	options *Options
	keys    protocol.Keys
	writer  string // marks the record that it writes
	worked  bool   // it acts for another process, which may have called the upstream

	mu      sync.Mutex
	since   link.Instant     // when this process got it, or the latest try of a parked one began
	lock    *idem.Lock       // as last seen in etcd; replaced, never changed
	session *session.Session // that vouches for it
	ending  bool             // Settle or Release was called: no call runs any more
	// the first revision that says of a parked one that its latest try has ended; 0 = none does
	rested     int64
	candidates protocol.Candidates // the known waiters when it got the lock
	handing    bool                // handing it over was tried
	rewound    bool                // etcd went back since it was taken: its later states are lost
	stopped    error               // why the call has to stop
	onStop     func(error)
	counts     []*commit.Count // of what is not known to be written yet
}

var _ idem.RunningLock = (*Lock)(nil)

// Lock implements idem.RunningLock.
func (h *Lock) Lock() *idem.Lock {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lock
}

// currentState returns the lock as it was seen last, the session that vouches for it, and why the
// call has to stop, if it has.
func (h *Lock) currentState() (l *idem.Lock, of *session.Session, stopped error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lock, h.session, h.stopped
}

// runTime is for how long its upstream may have been at work.
func (h *Lock) runTime() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.options.Clock.Since(h.since)
}

// Begin implements idem.RunningLock.
func (h *Lock) Begin() error {
	lock, of, stopped := h.currentState()
	switch err := of.Err(); {
	case stopped != nil:
		return stopped
	case lock.Cancel != nil:
		return idem.ErrCancelled
	case err != nil && lock.Parked != nil: // the next session adopts it, if no other process was faster
		return fmt.Errorf("%w: %w: %w", idem.ErrLockLost, idem.ErrNotRenewed, err)
	case err != nil:
		return fmt.Errorf("%w: %w", idem.ErrLockLost, err)
	}
	return nil
}

// OnStop implements idem.RunningLock.
func (h *Lock) OnStop(f func(error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onStop = f
	if h.stopped != nil {
		cause := h.stopped
		h.options.Tasks.Help(func(context.Context) { f(cause) })
	}
}

// Count implements idem.RunningLock.
func (h *Lock) Count(one idem.Counted) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts = append(h.counts, &commit.Count{Counted: one})
}

// withCounts has r commit what is counted with the next write. It returns r.
func (h *Lock) withCounts(r *commit.Request) *commit.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.Counts = append(r.Counts, h.counts...)
	return r
}

// LeaveCounts is called when this process writes nothing more of the execution, or has written what
// it counts.
func (h *Lock) LeaveCounts() {
	h.mu.Lock()
	counts := h.counts
	h.counts = nil
	h.mu.Unlock()
	h.options.Sender.Release(counts)
}

// Stop tells the running call to stop, once.
func (h *Lock) Stop(cause error) {
	h.mu.Lock()
	f := h.onStop
	if h.stopped != nil || h.ending {
		f = nil
	}
	if h.stopped == nil || h.unheardLocked() {
		h.stopped = cause
	}
	h.mu.Unlock()
	if f != nil {
		f(cause)
	}
}

// unheardLocked reports whether a parked execution stopped only because its session could not be
// confirmed. A call that ran was closed then; the execution itself goes on under the next session,
// if no other process was faster.
func (h *Lock) unheardLocked() bool {
	return h.lock.Parked != nil && errors.Is(h.stopped, idem.ErrNotRenewed)
}

// See takes over the newest state of the own lock, with a cancel that stands in it.
func (h *Lock) See(l *idem.Lock) {
	h.mu.Lock()
	if l.Stale == nil {
		l.Stale = h.lock.Stale // was found as the lock was taken, and is written with what is put next
	}
	if l.Token == h.lock.Token { // the process that handed it over may have another clock
		l.StartedAt = h.lock.StartedAt
	}
	// equal where a claim's answer was lost: the same lock, but with what was put into it meanwhile
	if l.Revision >= h.lock.Revision {
		h.lock = l
		h.noteRestLocked(l)
	}
	h.mu.Unlock()
	if l.Cancel != nil {
		h.Stop(idem.ErrCancelled)
	}
}

// noteRestLocked remembers when l began to rest: what is written into it later, as a cancel, does
// not make its latest try younger.
func (h *Lock) noteRestLocked(l *idem.Lock) {
	switch {
	case l.Parked == nil || l.Parked.Trying:
		h.rested = 0
	case h.rested == 0:
		h.rested = l.Revision
	}
}

// restsSince returns the revision since which etcd says that the latest try has ended; 0 = it does
// not.
func (h *Lock) restsSince() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rested
}

// lookAgain reads the lock after another process has changed it.
func (h *Lock) lookAgain(life context.Context) {
	st, err := history.Look(life, h.options.Pool, h.keys)
	switch {
	case err != nil: // the end of the call finds out
	case h.isOwnIn(st):
		h.See(st.Lock)
	default:
		h.stopAsLost()
	}
}

// stopAsLost is called when another process has the lock, or has ended it. The end of a delivery
// finds that out, and forgets the lock; a resting one has no end.
func (h *Lock) stopAsLost() {
	if h.Lock().Parked == nil {
		h.Stop(idem.ErrLockLost)
		return
	}
	_ = h.letGoAsLost()
}

// letGoAsLost gives up what this process ran: another one finds the lock without a process, and
// takes it over.
func (h *Lock) letGoAsLost() error {
	h.Stop(idem.ErrLockLost)
	h.locks.LetGo(h)
	h.options.Parked.MakeReady(h.keys.Lock)
	return idem.ErrLockLost
}

// setEnding says whether the end of the lock is under way: then no call is stopped.
func (h *Lock) setEnding(is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ending = is
}

// isOwnIn reports whether the lock in etcd is still this one's. The token of a parked execution
// changes with an attempt, also where its answer got lost: then the session tells, because this
// process takes nothing up that it has.
func (h *Lock) isOwnIn(st *protocol.State) bool {
	l, of, _ := h.currentState()
	if !st.Runs(l.Execution) || st.Lock.Created != l.Created {
		return false
	}
	return st.Lock.Token == l.Token || of != nil && st.Lock.Alive == protocol.SessionAlive(of.Name)
}
