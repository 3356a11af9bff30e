package model

// Bounds of every scenario; a scenario uses fewer. They keep a state small.
const (
	maxProcesses  = 3
	maxSessions   = 7
	maxLocks      = 3
	maxEvents     = 3
	maxDeliveries = 3
	idsPerArrival = 2 // execution IDs that one delivery may use up
	maxExecutions = maxDeliveries*idsPerArrival + 1
	holdLeases    = 4 // leases of one H; the last one is for cooling
	coolingLease  = holdLeases - 1
	maxCarriers   = 2
	maxSlots      = 2
	maxLost       = 3 // transactions without an answer at the same time
)

type (
	revision  uint8 // of the store; 0 = absent
	execution uint8 // 0 = none
	session   uint8 // never used again; 0 = none
	alive     uint8 // the key that a lock names: a session, or byHold
	outcome   uint8
)

const byHold alive = 100 // H of the execution in the lock

// Outcomes of an execution.
const (
	success      outcome = iota + 1
	failed               // a whole answer came, and it does not settle the event
	failedUnsure         // nobody knows what the upstream did
	abortedClean         // aborted, and provably not executed
	abortedUnsure
)

func (o outcome) unknown() bool { return o == failedUnsure || o == abortedUnsure }

// What a lock says of a cancel.
const (
	notCancelled uint8 = iota
	cancelled
	cancelledForGood // final: the event never runs again
	skipped          // of a parked execution: its request is kept
)

type lock struct { // L
	created, modified revision
	by                execution
	alive             alive
	cancel            uint8
	cooling, steps    bool

	token   revision // the fencing token
	parked  bool
	trying  bool // a try has begun, and how it ended is not written down
	blocked bool // it waits for a person
	again   bool // a person lets its event run again, which was settled

	slot uint8 // of the limit, from 1; 0 = it has none
}

type place struct { // Q
	created, modified revision
	by                execution
	session           session // 0 = it is parked, and lives until a transaction deletes it
	parked            bool
	again             bool // as that of a lock
}

type record struct { // I
	modified revision
	by       execution
	outcome  outcome
	final    bool
	letter   bool // its request is kept
	again    bool // an attempt before it has settled the event, so its duplicates do not run
}

// settled: its duplicates get an answer and do not run.
func (r record) settled() bool { return r.outcome == success || r.again }

type hold struct { // H
	modified revision
	lease    uint8
}

// What is kept of a parked execution: its request, and an index that says whether it is parked, or
// is kept with its record.
const (
	noRequest     uint8 = 0
	storedRequest uint8 = 1 // without an index there is none
	parkedRequest       = storedRequest | 2
	letterRequest       = storedRequest | 4
)

// What became of the age of a parked execution.
const (
	noAge       uint8 = iota
	young             // its lease runs
	aged              // its lease has run out
	agedAndAnew       // and somebody has let it run since, of which its carrier may not have heard yet
)

// What became of the answer of a record that has a key of its own.
const (
	noKeptAnswer uint8 = iota
	answerKept
	answerLeft // its time is over
)

// store is etcd. A cancel's C is not in it: it only wakes the owner up, and the cancel itself
// stands in L.
type store struct {
	clock    revision
	opened   uint8                     // sessions so far
	sessions [maxSessions + 1]revision // S: the epoch, 0 = gone
	locks    [maxLocks]lock
	queue    [maxEvents]place
	records  [maxEvents]record
	holds    [maxExecutions]hold
	paused   bool
	spent    [maxExecutions]uint8   // leases of H that have run out, one bit each
	requests [maxExecutions]uint8   // R and P
	ages     [maxExecutions]uint8   // G
	slots    [maxSlots]execution    // of one limit, and who has them
	turns    [maxExecutions]session // of those who wait for a slot; 0 = none
	acked    [maxSessions + 1]bool  // what S says: its process had heard of the pause
	mark     uint8                  // M: the newest of its scope that went through; 0 = none has
	answers  [maxExecutions]uint8   // of records; nothing but an answer to a duplicate depends on them
}

func (s *store) next() revision { s.clock++; return s.clock }

func (s *store) leaseLives(x execution, lease uint8) bool { return s.spent[x]&(1<<lease) == 0 }

func (s *store) isAlive(a alive, x execution) bool {
	if a == byHold {
		return s.holds[x].modified != 0
	}
	return s.sessions[a] != 0
}

// isDead: to be reaped. What is parked is taken over instead.
func (s *store) isDead(l lock) bool {
	return l.created != 0 && (!l.parked || l.cooling) && !s.isAlive(l.alive, l.by)
}

// uncarried: parked, and no process has it.
func (s *store) uncarried(l lock) bool {
	return l.created != 0 && l.parked && !l.cooling && !s.isAlive(l.alive, l.by)
}

// executionOf is the n-th execution ID that a delivery uses.
func executionOf(delivery int, n uint8) execution {
	return execution(1+delivery*idsPerArrival) + execution(n)
}

func (x execution) delivery() int { return int(x-1) / idsPerArrival }

func (m *model) event(x execution) int { return m.events[x.delivery()] }

// position is where the event of x stands in the one scope that there is; 0 = its route does not
// ask.
func (m *model) position(x execution) uint8 { return m.order[m.event(x)] }

// lock is the lock that an execution takes: its workflow's, or its event's own.
func (m *model) lock(x execution) int {
	if m.none[x.delivery()] {
		return ownLock
	}
	return m.lockOf[m.event(x)]
}

// ownLock is event A's own, where some replicas have strategy none.
const ownLock = 1

// other is the lock that a copy of the event takes at a replica with another strategy; nil = it has
// none.
func (m *model) other(s *state, x execution) *lock {
	switch {
	case m.none[x.delivery()]:
		return &s.locks[m.lockOf[m.event(x)]]
	case m.none != [maxDeliveries]bool{} && m.event(x) == 0:
		return &s.locks[ownLock]
	}
	return nil
}

// otherIs is the mod revision of that lock.
func (m *model) otherIs(s *state, x execution) revision {
	if o := m.other(s, x); o != nil {
		return o.modified
	}
	return 0
}

// copyInOther is that lock where a copy of the event has it, running or cooling; the zero lock
// otherwise.
func (m *model) copyInOther(s *state, x execution) lock {
	if o := m.other(s, x); o != nil && o.created != 0 && m.event(o.by) == m.event(x) {
		return *o
	}
	return lock{}
}

// client is a client's lock of the workflow that holds an execution back, or would pass it; the
// zero lock otherwise.
func (m *model) client(s *state, x execution) lock {
	if o := m.other(s, x); m.heldBack && m.none[x.delivery()] && o.created != 0 && m.byAPI[o.by.delivery()] {
		return *o
	}
	return lock{}
}

// ahead counts the places in the queue of a lock that are older than q. Before an event's own lock
// only that event itself can wait.
func (m *model) ahead(s *state, lock int, q revision) (n int) {
	for e := range m.eventCount {
		if p := &s.queue[e]; p.created != 0 && p.created < q && (m.lockOf[e] == lock || m.ofEventA(lock) && e == 0) {
			n++
		}
	}
	return n
}

// ofEventA: lock is event A's own.
func (m *model) ofEventA(lock int) bool { return lock == ownLock && m.none != [maxDeliveries]bool{} }

const everybody revision = 255

// loseSession is the end of a session's lease: S goes and the places in queues that live as long.
// Its locks stay, and are dead.
func (m *model) loseSession(s *state, gone session) {
	s.sessions[gone] = 0
	for e := range s.queue {
		if p := &s.queue[e]; p.created != 0 && !p.parked && p.session == gone {
			s.known.where[p.by] = nowhere // not ended: it may queue again under its ID
			*p = place{}
		}
	}
	for x := range s.turns {
		if s.turns[x] == gone {
			s.turns[x] = 0
		}
	}
	for i := range s.locks {
		if l := &s.locks[i]; l.created != 0 && l.alive == alive(gone) {
			s.known.excuse[l.by] |= sessionLost
		}
	}
}

// loseHold is the end of one lease of an H.
func (m *model) loseHold(s *state, x execution, lease uint8) {
	s.spent[x] |= 1 << lease
	if s.holds[x].modified == 0 || s.holds[x].lease != lease {
		return
	}
	h := &s.holders[x.delivery()]
	if h.at == holding && h.lease > lease && s.leaseLives(x, h.lease) && lease != coolingLease {
		m.broke(heldAsLongAsTold)
	}
	if lease == coolingLease {
		s.known.closed[m.lock(x)] = 0
	}
	s.holds[x] = hold{}
	s.known.excuse[x] |= sessionLost
}
