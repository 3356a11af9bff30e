package owned

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/predecessor"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/etcdlock/view"
	"hooklock/idem"
)

// Options are what the locks of a process work with.
type Options struct {
	Pool     *link.Pool       // reads and watches etcd
	Sender   *commit.Sender   // sends the transactions
	Tasks    *commit.Tasks    // run in the background; Store.Close waits for them
	Leases   *commit.Leases   // the shared leases of records
	Layout   protocol.Layout  // spells the keys
	Clock    link.Clock       // measures elapsed time
	Writer   string           // marks the records that this process writes
	Keeper   *session.Keeper  // keeps the session of this process
	Finisher *finish.Finisher // ends executions
	// Predecessors have the file that proves how executions ended. Nil: there is none.
	Predecessors *predecessor.Predecessors
	// Correct puts the end of an execution whose lock was lost into a record that says unknown. It
	// returns nil if nothing was to be corrected, or idem.ErrStoreUnavailable.
	Correct func(ctx context.Context, lost *idem.Lock, end idem.End) (*idem.Record, error)
	*view.View
	Listener
}

// Listener hears of what no call of idem.RunningLock returns. None of its methods blocks.
type Listener interface {
	// OnEnded is called after such an end. recorded is false if it will never be in etcd.
	OnEnded(record *idem.Record, recorded bool)
	// OnReduced is called once for a record that etcd has refused for its size, so that less of it
	// is written. bytes are those of the refused request.
	OnReduced(record *idem.Record, bytes int)
}

// Locks are the locks that this process holds. It is safe for concurrent use.
type Locks struct {
	options *Options

	mu    sync.Mutex
	locks map[idem.ExecutionID]*Lock
	// early are executions whose lock was reported changed, and when, while this process did not
	// hold it: the answer to its claim may be on its way.
	early map[idem.ExecutionID]time.Time
}

// New returns locks of which this process holds none yet.
func New(o *Options) *Locks {
	return &Locks{options: o, locks: map[idem.ExecutionID]*Lock{}, early: map[idem.ExecutionID]time.Time{}}
}

// Make returns l as a lock that this process has, without keeping it: a session does not vouch for
// it from then on.
func (s *Locks) Make(l idem.Lock, k protocol.Keys, of *session.Session) *Lock {
	writer := s.options.Writer
	if of != nil { // most records have it as the end of their holder, and need not say it twice
		writer = of.Name
	}
	h := &Lock{locks: s, options: s.options, keys: k, writer: writer, since: s.options.Clock.Instant(), lock: &l,
		session: of}
	h.noteRestLocked(&l) // nothing else knows h yet
	return h
}

// OnBehalf returns the lock of another process, to do what only its holder may do. Its record is
// told apart from all others.
func (s *Locks) OnBehalf(l idem.Lock, k protocol.Keys) *Lock {
	h := s.Make(l, k, nil)
	h.writer, h.worked, h.ending = session.NewName(), true, true
	return h
}

// Add registers a lock that was won with a session. If that is over by now, the lock follows the
// others to the next one.
func (s *Locks) Add(l idem.Lock, k protocol.Keys, of *session.Session) *Lock {
	h := s.Make(l, k, of)
	s.checkTakenLock(h, of, s.storeLock(h))
	return h
}

// storeLock makes h a lock that this process holds. early: it was changed since it was taken.
func (s *Locks) storeLock(h *Lock) (early bool) {
	id := h.lock.Execution
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locks[id] = h
	_, early = s.early[id]
	delete(s.early, id)
	return early
}

// checkTakenLock looks at a lock that was changed early, and lets one whose session is over by now
// go with the others to the next one.
func (s *Locks) checkTakenLock(h *Lock, of *session.Session, early bool) {
	if early {
		s.options.Tasks.Help(h.lookAgain)
	}
	if next, _, err := s.options.Keeper.Current(); err == nil && next != of {
		s.options.Tasks.Help((&adopting{lock: h, to: next}).run)
	}
}

// LetGo is when this process has nothing to do with a lock any more. It may have taken the same
// execution up again since.
func (s *Locks) LetGo(h *Lock) {
	h.LeaveCounts()
	l := h.Lock()
	if len(l.Slots) > 0 {
		s.options.Slots.NoteFree(l)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[l.Execution] == h {
		delete(s.locks, l.Execution)
	}
}

// Of returns the lock of id if this process holds it, or nil.
func (s *Locks) Of(id idem.ExecutionID) *Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.locks[id]
}

// Has reports whether this process holds the lock of id, and so ends it itself.
func (s *Locks) Has(id idem.ExecutionID) bool { return s.Of(id) != nil }

// All returns all locks.
func (s *Locks) All() []*Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.locks))
}

// Reread reads the lock of an execution that this process may run, after another process has
// changed it. If this process does not hold it yet, it is read when it does.
func (s *Locks) Reread(id idem.ExecutionID) {
	now := s.options.Clock.Now()
	s.mu.Lock()
	h := s.locks[id]
	if h == nil {
		maps.DeleteFunc(s.early, func(_ idem.ExecutionID, at time.Time) bool { return now.Sub(at) > commit.NoticeLife })
		s.early[id] = now
	}
	s.mu.Unlock()
	if h != nil {
		s.options.Tasks.Help(h.lookAgain)
	}
}

// Early returns how many executions were reported changed while this process did not hold their
// lock, and not long ago.
func (s *Locks) Early() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.early)
}

// RereadParked reads the lock of a parked execution that this process runs: a person may have ended
// it, or let it run now.
func (s *Locks) RereadParked(id idem.ExecutionID) {
	if h := s.Of(id); h != nil {
		s.options.Tasks.Help(func(life context.Context) {
			h.lookAgain(life)
			s.options.Parked.MakeReadyFor(id)
		})
	}
}

// Adopt moves the running locks of earlier sessions to the one that has opened. It returns how many
// there are.
func (s *Locks) Adopt(to *session.Session) (n int) {
	for _, h := range s.All() {
		if _, of, _ := h.currentState(); of != to {
			s.options.Tasks.Start((&adopting{lock: h, to: to}).run)
			n++
		}
	}
	return n
}

// Unheard stops the calls whose lock cannot be confirmed any more, because its session was not
// renewed in time.
func (s *Locks) Unheard(of *session.Session) {
	for _, h := range s.All() {
		if _, by, _ := h.currentState(); by == of {
			h.Stop(fmt.Errorf("%w: %w", idem.ErrLockLost, idem.ErrNotRenewed))
		}
	}
}

// Rewind lets any state of a lock that etcd has be the newest one, and asks for nothing of what was
// after it: etcd was put back to an earlier state.
func (s *Locks) Rewind() {
	for _, h := range s.All() {
		h.mu.Lock()
		l := *h.lock
		l.Revision = l.Created
		h.lock, h.rewound = &l, true
		h.mu.Unlock()
	}
}

// OnEnded tells of an end that no call of idem.RunningLock returns.
func (s *Locks) OnEnded(record *idem.Record, recorded bool) { s.options.OnEnded(record, recorded) }
