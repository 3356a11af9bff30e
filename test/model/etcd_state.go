package model

// state is everything at one moment: etcd, the processes, the senders' deliveries, what is still on
// its way, and what the checker remembers. It has no pointers, so that it is copied and hashed as a
// whole.
type state struct {
	store
	processes  [maxProcesses]process
	deliveries [maxDeliveries]delivery
	holders    [maxDeliveries]holder
	carriers   [maxCarriers]delivery // one for each process: what it does with a parked execution
	lost       [maxLost]txn          // sent, no answer came: may be applied at any later time, or never
	known      witness
	left       budget
}

type process struct {
	up      bool
	session session  // as it believes
	epoch   revision // as it believes
	met     bool     // a delivery has come to it
	paused  bool     // as it has heard
	acking  bool     // the answer to its acknowledgement got lost
}

// budget is how often what goes wrong, and what people do, may happen.
type budget struct {
	ambiguous uint8 // answers that get lost
	crash     uint8
	restart   uint8
	expire    uint8 // a session's lease ends, its process does not know
	unheard   uint8 // a process gives a session up that etcd still has
	hangUp    uint8
	cancel    uint8
	force     uint8
	forget    uint8
	ask       uint8 // the service is asked what became of an unknown outcome
	proof     uint8 // the file of a dead process is read, of one execution
	guard     uint8
	beat      uint8
	age       uint8 // max_duration reached
	old       uint8 // max_age of what is parked reached
	answer    uint8 // the time of a kept answer is over
	again     uint8 // a person lets a settled event run again
	run       uint8 // of a blocked one, or of a request that was kept
	down      uint8 // a carrier gives its execution to the others
	pause     uint8
	resume    uint8
}

// phase is where a delivery is in its life.
type phase uint8

const (
	idle phase = iota
	claiming
	acquiring // claiming for a client of the lock API
	enqueueing
	waiting
	leaving
	fencing
	rereading
	claimedPhase // has the lock, nothing sent yet
	running
	settling
	releasing
	holdingOn // the upstream answered 202
	attached
	parkingPlace // its place is to outlive its session
	parkingLock  // its lock is
	resting      // a parked one: how its try ended is written down
	rested       // a parked one between two tries
	trying       // a parked one: the next try is announced
	done
)

// answer is what the sender was told.
type answer uint8

const (
	noAnswer answer = iota
	executed
	replayed
	locked
	inFlight
	earlierUnknown
	exhausted
	storeUnavailable
	lockLost
	hungUp
	aborted
	crashed
	unreachable
	copied // the first one's answer
	superseded
	replacedByNewer // a newer one waits in its place, or has
	accepted
	unsure // nobody knows whether it was accepted
	refusedPaused
	answers
)

func (a answer) notExecuted() bool {
	return a == locked || a == inFlight || a == storeUnavailable || a == hungUp || a == unreachable ||
		a == refusedPaused || a == superseded || a == replacedByNewer
}

type delivery struct {
	at      phase
	process uint8
	session session
	ids     uint8 // execution IDs used up
	prev    revision
	token   revision // the fencing token
	created revision // of the lock: its own, or the one that it waits for
	l, q, o revision
	first   execution // that it attached to
	outcome outcome
	cancel  uint8 // as seen in the own lock
	answer  answer

	answered    bool // the sender has got its 503
	decideAgain bool // after leaving the queue
	left        bool // the sender has hung up
	parked      bool // the lock is, as far as is known
	blocked     bool
	turn        bool  // it may have a turn at the limit
	begun       bool  // a try of a parked one that the upstream may have got something of
	paused      bool  // as its process knew when it arrived
	newest      uint8 // the mark, as it was when it got the lock
	stale       bool  // it ends because of that
	tooOld      bool  // it ends because its age was over
	challenged  bool  // its upstream asked for credentials

	looked      bool      // it has read the queue, where it may replace who waits
	last, overQ revision  // what it saw there
	over        execution // who waits there and is to be replaced
	overParked  bool      // it is parked
}

// finish keeps only what the checker needs.
func (t *delivery) finish(a answer) {
	*t = delivery{at: done, ids: t.ids, token: t.token, answer: a, turn: t.turn && a != crashed}
}

// holder is the upstream after its 202, or a client of the lock API.
type holder struct {
	token, created revision // of the lock; the delivery may still be on its way somewhere else

	at    uint8
	lease uint8 // that it was told of
	used  uint8
}

const (
	holding uint8 = iota + 1
	completing
	over
)

// kept reports whether a process keeps that session alive.
func (m *model) kept(s *state, i session) bool {
	for p := range m.processCount {
		if s.processes[p].up && s.processes[p].session == i {
			return true
		}
	}
	return false
}

func (m *model) anybodyUp(s *state) bool {
	for p := range m.processCount {
		if s.processes[p].up {
			return true
		}
	}
	return false
}

func (m *model) openSession(s *state, p int) {
	s.opened++
	r := s.next()
	s.sessions[s.opened] = r
	s.processes[p] = process{up: true, session: session(s.opened), epoch: r, paused: s.paused && m.breaks != opensBlind}
	s.acked[s.opened] = s.paused
}

// mine: the lock is still that of this execution. A cooling lock is nobody's.
func (m *model) mine(s *state, x execution, token revision) bool {
	l := &s.locks[m.lock(x)]
	return l.created != 0 && l.token == token && l.by == x && (!l.cooling || m.breaks == coolingIsMine)
}

// keepLost puts a transaction among the lost ones; false: there are too many.
func (s *state) keepLost(t *txn) bool {
	for i := range s.lost {
		if s.lost[i].kind == 0 {
			s.lost[i] = *t
			return true
		}
	}
	return false
}

// finishOr reports whether it goes on; it is refused otherwise.
func (t *delivery) finishOr(goesOn bool, a answer) bool {
	if !goesOn {
		t.finish(a)
	}
	return goesOn
}
