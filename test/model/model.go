package model

// model is one scenario, perhaps with something left out, and what a search finds in it.
type model struct {
	scenario
	drops  []compareOf // compares that are left out
	breaks breakage    // a rule that is left out

	broken  promise // by the step just made
	seen    [kinds]struct{ applied, refused int }
	answers [answers]int
	goal    func(s *state) bool    // a state to find
	sent    func(s *state, t *txn) // hears of every transaction that is sent

	spelled  spelled
	compiled map[txn]*compiled
	compares [kinds]map[string]bool // of each transaction that was compiled

	scratch state
	places  []*revision
}

// compareOf is one compare of one transaction.
type compareOf struct {
	kind kind
	name string // see nameOf
}

// breakage is a rule of the processes, not a compare, that a mutation leaves out.
type breakage uint8

const (
	nothingBroken breakage = iota
	noFence
	sameIDAgain           // after an ambiguous claim
	lateLockIsKept        // after the sender was told 503
	rereadMissesCancel    // that stands in a lock which a lost answer had got
	coolingIsMine         // L mine = lock.create alone
	forceRecordsCooling   // writes a record for an execution that has one
	finalOnlyWhereAborted // and lost where the outcome is known
	forceForgetsFinal
	reapForgetsCancel
	endWithoutDelay
	reapWithoutDelay
	copySaysNotExecuted  // where it finds nothing of the execution that it attached to
	attachToAnybody      // any record of the event ends the copy's wait
	acceptsBefore        // the commit
	handOverKeepsToken   // of who had the lock
	handOverWithoutDelay // where the lock has to cool
	handOverWhilePaused
	handOverToAnybody // who waits
	tokenNotSpelled   // by who puts over a lock with a token of its own
	carryKeepsToken   // of the process before
	attemptKeepsToken // of the try before
	tryWithoutAttempt
	exhaustedRuns     // where its attempts are used up
	carrierTriesAgain // what may have run, under on_unknown: block
	anyLockIsCarried  // also that of another process
	ownIsLeft         // a lock that names the own session, and that nobody in the process has
	pauseBeforeEpoch  // is asked for when a delivery arrives
	ackWithoutFence
	opensBlind       // to the pauses that are there
	turnWhilePaused  // of who waits
	takenWhilePaused // from the queue, by a carrier
	triedWhilePaused
	successRaisesLater // after its settle
	anyEndRaises
	raisesBlindly
	readsMarkBefore // the lock is taken
	forgetDropsAnyMark
	forgetKeepsLetter
	slotIsKept // when its lock is freed
	holdIsKept // as that
	restKeepsSlot
	triedWithoutSlot
	slotFreedEarly // while its lock cools
	turnIsKept     // by who waits no more
	replacedForNobody
	replacedMayRun // again, as a copy
	toldTooEarly   // that a newer one waits
	answerLater    // a kept answer is not written with its record
	leftAnswerRuns // a duplicate, where the kept answer has left
	passesClient   // whose lock of the workflow it has seen
	correctsBesideCopy
	provesForOthers
	failureUnsettles // an event that a person has let run again
)

func newModel(sc scenario) *model {
	m := &model{scenario: sc, compiled: map[txn]*compiled{}}
	for k := range m.compares {
		m.compares[k] = map[string]bool{}
	}
	m.spell()
	return m
}

func (m *model) initial() *state {
	s := &state{left: m.budget}
	for p := range m.processCount {
		m.openSession(s, p)
	}
	m.canonical(s)
	return s
}

// canonical makes states equal that differ only in what cannot matter: how high revisions are, the
// order of what is lost, lost transactions that can never pass.
func (m *model) canonical(s *state) {
	m.tidyLost(s)
	for x := range s.known.upstream {
		if s.known.upstream[x] == finished && (!s.known.accepted[x] || s.known.ended[x] != 0) {
			s.known.excuse[x] = 0
		}
		if s.known.ended[x] != 0 {
			s.known.cancelled[x] = false
		}
	}
	m.places = m.places[:0]
	m.revisions(s)
	var used [256]bool
	for _, p := range m.places {
		used[*p] = true
	}
	var rank [256]revision
	n := revision(0)
	for r := 1; r <= int(s.clock); r++ {
		if used[r] {
			n++
			rank[r] = n
		}
	}
	for _, p := range m.places {
		*p = rank[*p]
	}
	s.clock = n
}

func (m *model) tidyLost(s *state) {
	for i := range s.lost {
		if t := &s.lost[i]; t.kind != 0 && m.compile(t).hopeless(&s.store) {
			*t = txn{}
		}
	}
	for i := range s.lost {
		for j := i + 1; j < maxLost; j++ {
			if s.lost[j].kind != 0 && s.lost[i].before(&s.lost[j]) {
				s.lost[i], s.lost[j] = s.lost[j], s.lost[i]
			}
		}
	}
}

func (t *txn) before(o *txn) bool { return t.order() < o.order() }

// order tells transactions apart that can be lost at the same time: the same sender's differ in a
// revision.
func (t *txn) order() uint64 {
	o := uint64(t.kind)
	for _, v := range [...]uint8{uint8(t.by), uint8(t.epoch), uint8(t.created ^ t.q), uint8(t.l), uint8(t.prev ^ t.h),
		uint8(t.outcome) ^ uint8(t.next)<<4} {
		o = o<<8 | uint64(v)
	}
	o = o<<4 | uint64(t.lease)<<2 | uint64(t.cancel)
	for i, is := range [...]bool{t.fresh, t.parked, t.trying, t.letter != t.seen} {
		if is {
			o ^= 1 << (60 + i)
		}
	}
	return o
}

// revisions collects every revision in s.
func (m *model) revisions(s *state) {
	add := func(r *revision) {
		if *r != 0 {
			m.places = append(m.places, r)
		}
	}
	for i := 1; i <= int(s.opened); i++ {
		add(&s.sessions[i])
	}
	for i := range m.lockCount {
		add(&s.locks[i].created)
		add(&s.locks[i].modified)
		add(&s.locks[i].token)
		add(&s.known.token[i])
	}
	for e := range m.eventCount {
		add(&s.queue[e].created)
		add(&s.queue[e].modified)
		add(&s.records[e].modified)
	}
	for x := range s.holds {
		add(&s.holds[x].modified)
	}
	for p := range m.processCount {
		add(&s.processes[p].epoch)
	}
	of := func(t *delivery) {
		for _, r := range [...]*revision{&t.prev, &t.token, &t.created, &t.l, &t.q, &t.o, &t.last, &t.overQ} {
			add(r)
		}
	}
	for d := range m.deliveryCount {
		of(&s.deliveries[d])
	}
	for d := range s.holders {
		add(&s.holders[d].token)
		add(&s.holders[d].created)
	}
	if m.parks() {
		for p := range m.processCount {
			of(&s.carriers[p])
		}
	}
	for i := range s.lost {
		t := &s.lost[i]
		if t.kind == 0 {
			continue
		}
		add(&t.epoch)
		add(&t.created)
		add(&t.token)
		add(&t.l)
		add(&t.q)
		add(&t.prev)
		add(&t.h)
		add(&t.o)
		add(&t.last)
		add(&t.overQ)
		add(&t.saw.token)
	}
}
