package model

// promise is a sentence that holds in every reachable state, or after every step.
type promise string

const (
	oneLiveHolder promise = "one live holder per workflow: two ran at once, and neither had lost its " +
		"session, been reaped, forced or closed"
	oneAlivePerEvent    promise = "one live execution per event: two of them ran at once"
	settledNeverRuns    promise = "a settled event never runs again, but as the one execution that a person asks for"
	unknownIsBlocked    promise = "under on_unknown: block an event of unknown outcome does not run again"
	exhaustedWaits      promise = "an event whose attempts are used up does not run again unless a person lets it"
	finalIsFinal        promise = "after a final cancel the event never runs again"
	onePlace            promise = "an execution is in exactly one place: queue, lock or record"
	neverComesBack      promise = "an execution that has ended does not come back"
	firstEndWins        promise = "the first terminal status wins"
	settledDoesNotWait  promise = "a duplicate of a settled event is answered and does not wait"
	settledStays        promise = "the record of a settled event is not written over"
	knownOutcomeKept    promise = "a known outcome is lost only where somebody else had ended the execution"
	ownLockOnly         promise = "an end never touches the lock or the place of another execution"
	refusedBurnsNothing promise = "a refused delivery burns nothing: its sender was told that it did not run, and " +
		"it did"
	noGhost              promise = "no lock and no place in the queue without somebody who owns it"
	placeKept            promise = "a waiter loses its place only with its session, or by a cancel"
	nobodyWaitsForEver   promise = "nobody waits for ever"
	firstComeFirst       promise = "first come, first served: a claim passed somebody who waited"
	cancelNotLost        promise = "a cancel that was asked is never lost"
	epochKnown           promise = "a process knows the epoch of its session, except while it resolves a lost answer"
	stepsKept            promise = "the record has the steps that the guard wrote"
	guardProves          promise = "guard says proceed only to who has the lock"
	forgetsWhatWasMeant  promise = "a forget deletes only the record that it was asked for"
	correctsWhatWasAsked promise = "an answer of the service corrects only the record that it was asked about"
	tokensGrow           promise = "tokens grow with each holder of a workflow"
	aliveNotReaped       promise = "a lock is not reaped while its owner is alive"
	heldAsLongAsTold     promise = "a held lock lives as long as its holder was told"
	holdWithLock         promise = "a hold is there only while its lock names it"
	clientHoldsBack      promise = "a client's lock of a workflow holds back what has a lock for each event under a " +
		"lock.limit"
	delayKept       promise = "after an unknown outcome nobody gets the lock for the release_delay"
	copyGetsTheSame promise = "an attached copy gets the end of the execution that it attached to"
	answerStays     promise = "the kept answer of a settled event is there until its time is over"
	markIsNewest    promise = "the mark is the newest of its scope that went through: nothing else raises it, " +
		"and nothing lowers it"
	oneWaits      promise = "under latest one waits while another one runs"
	hasSuccessor  promise = "who is replaced has a successor in the queue"
	replacedAfter promise = "a sender is told that a newer event waits only when it does, or has"
	judgedByAll   promise = "an event is held against everything of its scope that went through before its turn"
)

const (
	neverMoreThanN promise = "never more have a slot than the limit says, or the larger one of two"
	slotWithLock   promise = "a slot is taken and freed with its lock"
	restsWithout   promise = "what waits for a person has no slot"
	triedWithSlot  promise = "what is parked is tried with a slot"
	firstAtLimit   promise = "who comes later gets no slot while somebody waits for one"
	noTurnLeft     promise = "no turn is left behind: nobody gets a slot any more"
)

const (
	acceptedEnds promise = "an accepted event ends in something: queue, lock or record has it"
	requestStays promise = "the request of an accepted event is there as long as it has not ended, and with a " +
		"dead letter"
	noRequestLeft  promise = "no request is left behind"
	forgottenWhole promise = "a forget of a dead letter deletes its request"
	acceptedAfter  promise = "a sender is told that its event is accepted only when it is"
	oneCarrier     promise = "one carrier: two tries of a parked execution at once, and the first one's process " +
		"had not lost it"
	parkedNotReaped promise = "what is parked is not reaped"
	triesAlive      promise = "a try is announced only by a process that lives"
	hasItsTime      promise = "what somebody lets run has its time again, and does not end for the age that was over"
	parkedGoesOn    promise = "what is parked goes on, or waits for a person"
	pausedRests     promise = "nothing of a paused workflow begins once every process has acknowledged the pause"
)

const goalReached promise = "none: the state that was looked for is reached"

// broke notes the first promise that a step broke.
func (m *model) broke(p promise) {
	if m.broken == "" {
		m.broken = p
	}
}

// witness is what only the checker knows.
type witness struct {
	where     [maxExecutions]uint8
	upstream  [maxExecutions]uint8
	ended     [maxExecutions]outcome // as first recorded
	excuse    [maxExecutions]uint8
	cancelled [maxExecutions]bool
	token     [maxLocks]revision  // the highest that the upstream has seen
	closed    [maxLocks]execution // whose release_delay runs
	settled   [maxEvents]bool
	forgotten [maxEvents]bool
	final     [maxEvents]execution     // of which the final cancel was asked
	accepted  [maxExecutions]bool      // it is, or was, parked
	newest    uint8                    // of the scope, that went through
	again     [maxExecutions]bool      // a person lets it run although its event is settled
	successor [maxExecutions]execution // who replaced it in the queue
	// noted is how it ends as a process has written down in its file before it tells etcd, and
	// proven the same once that process is dead, or knows that it has lost the lock
	noted  [maxExecutions]noted
	proven [maxExecutions]proof
	// a try of the parked execution ended so, and nobody has said since that it may go on
	unsure [maxExecutions]bool
}

// noted is an end in the file of a process, which is 1 + its number.
type noted struct {
	by      uint8
	outcome outcome
	session session // of the lock then
}

// proof is an end in the file of a dead process, with the sessions that it had; without them, of
// one that has lost its lock.
type proof struct {
	outcome  outcome
	sessions [2]session
}

// wakes is when the process that ran x learns that it has lost the lock: it knows how x ended.
func (w *witness) wakes(x execution) {
	if end := w.noted[x]; end.outcome != 0 {
		w.proven[x], w.noted[x] = proof{outcome: end.outcome}, noted{}
	}
}

const ( // witness.where
	nowhere uint8 = iota
	somewhere
	wasSomewhere
)

const ( // witness.upstream
	notCalled uint8 = iota
	atWork
	finished
)

// Why an execution may overlap with the next one.
const (
	sessionLost uint8 = 1 << iota // its alive key is gone, or it was reaped; adopting takes this back
	callClosed                    // for good: the upstream may still be at work
	carriedOver                   // until the next try of a parked one begins
)

// checkHolds: an end that finds no hold named in its lock deletes none.
func (m *model) checkHolds(s *state) {
	for x := range s.holds {
		if s.holds[x].modified == 0 {
			continue
		}
		if l := &s.locks[m.lock(execution(x))]; l.created == 0 || l.by != execution(x) || l.alive != byHold {
			m.broke(holdWithLock)
		}
	}
}

// checkAnswers: an answer is written with its record.
func (m *model) checkAnswers(s *state) {
	for _, r := range s.records {
		if m.apart && r.outcome == success && s.answers[r.by] == noKeptAnswer {
			m.broke(answerStays)
		}
	}
}

// checkPlaces compares where every execution is with where it was before the step.
func (m *model) checkPlaces(s *state) {
	var in [maxExecutions]uint8
	m.checkSlots(s)
	m.checkHolds(s)
	m.checkAnswers(s)
	for i := range m.lockCount {
		if l := &s.locks[i]; l.created != 0 && !l.cooling {
			in[l.by]++
		}
	}
	for e := range m.eventCount {
		if s.queue[e].created != 0 {
			in[s.queue[e].by]++
		}
		if s.records[e].modified != 0 {
			in[s.records[e].by]++
		}
	}
	for x := 1; x < maxExecutions; x++ {
		m.checkRequest(s, execution(x))
		where := &s.known.where[x]
		switch {
		case in[x] > 1:
			m.broke(onePlace)
		case in[x] == 1 && *where == wasSomewhere:
			m.broke(neverComesBack)
		case in[x] == 1:
			*where = somewhere
		case *where == somewhere:
			*where = wasSomewhere
			if s.known.cancelled[x] && s.known.ended[x] == 0 {
				m.broke(cancelNotLost)
			}
			if s.known.accepted[x] && s.known.ended[x] == 0 {
				m.broke(acceptedEnds)
			}
		}
	}
}

// checkMark is for every transaction.
func (m *model) checkMark(s *state) {
	if s.mark != s.known.newest {
		m.broke(markIsNewest)
	}
}

// checkSlots: who has a lock has the slot that it names, and nobody else has one.
func (m *model) checkSlots(s *state) {
	if !m.limited() {
		return
	}
	taken := 0
	for i := range m.lockCount {
		if l := &s.locks[i]; l.created != 0 && l.slot != 0 {
			taken++
			if l.blocked {
				m.broke(restsWithout)
			}
		}
	}
	if taken > int(max(m.limits[0], m.limits[1])) {
		m.broke(neverMoreThanN)
	}
	for n, x := range s.slots {
		if x != 0 && (s.locks[m.lock(x)].by != x || int(s.locks[m.lock(x)].slot) != n+1) {
			m.broke(slotWithLock)
		}
		if x == 0 {
			continue
		}
		taken--
	}
	if taken != 0 {
		m.broke(slotWithLock)
	}
}

// full: process p sees no slot for who comes now.
func (m *model) full(s *state, p uint8, x execution) bool {
	if !m.limited() || s.turns[x] == 0 && s.turns != [maxExecutions]session{} {
		return m.limited()
	}
	for n := range m.limits[p] {
		if s.slots[n] == 0 {
			return false
		}
	}
	return true
}

// checkTurn is for a transaction that takes the lock.
func (m *model) checkTurn(s *state, t *txn) {
	if t.kind == claim && t.slot != 0 && s.turns != [maxExecutions]session{} {
		m.broke(firstAtLimit)
	}
	i := m.lock(t.by)
	older := everybody
	if t.kind == claimAsHead {
		older = t.q
	}
	if m.ahead(s, i, older) > 0 {
		m.broke(firstComeFirst)
	}
	if final := s.known.final[m.event(t.by)]; final != 0 && final != t.by {
		m.broke(finalIsFinal)
	}
	if s.known.closed[i] != 0 {
		m.broke(delayKept)
	}
	if m.client(s, t.by).created != 0 {
		m.broke(clientHoldsBack)
	}
	if o := m.copyInOther(s, t.by); o.created != 0 && o.cooling && s.known.closed[m.lock(o.by)] == o.by {
		m.broke(delayKept)
	}
}

// checkEnd is for a transaction that writes a record.
func (m *model) checkEnd(s *state, t *txn) {
	k, e := &s.known, m.event(t.by)
	if k.ended[t.by] != 0 && k.ended[t.by] != t.outcome {
		m.broke(firstEndWins)
	}
	if s.records[e].settled() && s.records[e].by != t.by && !k.again[t.by] {
		m.broke(settledStays)
	}
	if k.cancelled[t.by] && t.outcome == failedUnsure {
		m.broke(cancelNotLost)
	}
	k.ended[t.by] = t.outcome
	if t.outcome == success {
		k.settled[e] = true
		k.newest = max(k.newest, m.position(t.by))
	}
	if m.cools(t) {
		k.closed[m.lock(t.by)] = t.by
	}
}

func (m *model) noteCancel(s *state, t *txn) {
	s.known.cancelled[t.by] = true
	if t.cancel == cancelledForGood {
		s.known.final[m.event(t.by)] = t.by
	}
}

// begin is the first byte to the upstream: of a delivery, or of a client of the lock API.
func (m *model) begin(s *state, d int) {
	t, k := &s.deliveries[d], &s.known
	x := executionOf(d, t.ids)
	e, i := m.event(x), m.lock(x)
	for o := execution(1); o < maxExecutions; o++ {
		if o != x && k.upstream[o] == atWork && (m.lock(o) == i || m.event(o) == e) && k.excuse[o] == 0 &&
			k.excuse[x] == 0 {
			if m.event(o) == e {
				m.broke(oneAlivePerEvent)
			}
			m.broke(oneLiveHolder)
		}
	}
	if t.token <= k.token[i] || m.newerCopyBegan(s, d) {
		if k.excuse[x] == 0 {
			m.broke(tokensGrow)
		}
	} else { // the upstream turns older tokens away
		k.token[i] = t.token
		m.checkMayRun(s, x)
	}
	m.checkJudged(s, x, t.newest)
	k.upstream[x] = atWork
}

// checkJudged is for the first byte: what went through before an event had the lock was known then.
func (m *model) checkJudged(s *state, x execution, newest uint8) {
	// what the service said, or a file proved, may be known after a later event has begun
	late := m.budget.ask > s.left.ask || m.budget.proof > s.left.proof
	if p := m.position(x); p != 0 && !late && m.lockCount == 1 && newest <= p && s.known.newest > p &&
		s.known.excuse[x] == 0 {
		m.broke(judgedByAll)
	}
}

// newerCopyBegan: a copy of the event has begun under the other strategy, with a newer token.
func (m *model) newerCopyBegan(s *state, d int) bool {
	for o := range m.deliveryCount {
		c := &s.deliveries[o]
		if m.events[o] == m.events[d] && m.none[o] != m.none[d] && c.token > s.deliveries[d].token &&
			s.known.upstream[executionOf(o, c.ids)] != notCalled {
			return true
		}
	}
	return false
}

func (m *model) checkMayRun(s *state, x execution) {
	k, e := &s.known, m.event(x)
	if k.settled[e] && !k.forgotten[e] && !k.again[x] {
		m.broke(settledNeverRuns)
	}
	if k.forgotten[e] || k.again[x] || k.excuse[x] != 0 {
		return
	}
	for o := execution(1); o < maxExecutions; o++ {
		if o == x || k.upstream[o] == notCalled || m.event(o) != e {
			continue
		}
		if m.block && k.ended[o] != failed {
			m.broke(unknownIsBlocked)
		}
		if m.once {
			m.broke(exhaustedWaits)
		}
	}
}

// check is for every state.
func (m *model) check(s *state) {
	for d := range m.deliveryCount {
		t := &s.deliveries[d]
		if t.at != done {
			continue
		}
		m.answers[t.answer]++
		if t.answer == replacedByNewer && s.known.successor[executionOf(d, 0)] == 0 &&
			s.known.successor[executionOf(d, 1)] == 0 {
			m.broke(replacedAfter)
		}
		if t.answer == accepted && !s.known.accepted[executionOf(d, 0)] && !s.known.accepted[executionOf(d, 1)] {
			m.broke(acceptedAfter)
		}
		if !t.answer.notExecuted() {
			continue
		}
		for n := range uint8(idsPerArrival) {
			if x := executionOf(d, n); s.known.upstream[x] != notCalled && !s.known.again[x] {
				m.broke(refusedBurnsNothing)
			}
		}
	}
	m.checkKnowledge(s)
	m.checkLatest(s)
	if m.goal != nil && m.goal(s) {
		m.broke(goalReached)
	}
	if m.quiet(s) {
		m.checkQuiet(s)
	}
}

// checkKnowledge: what is there is known to whom it belongs.
func (m *model) checkKnowledge(s *state) {
	for i := range m.lockCount {
		l := &s.locks[i]
		if l.created == 0 || l.alive != byHold || l.cooling {
			continue
		}
		if t := &s.deliveries[l.by.delivery()]; t.at == done && t.answer == storeUnavailable {
			m.broke(noGhost)
		}
	}
	for p := range m.processCount {
		own := &s.processes[p]
		if own.up && s.sessions[own.session] != 0 && s.sessions[own.session] != own.epoch && !m.resolves(s, p) {
			m.broke(epochKnown)
		}
	}
}

// resolves: a delivery of that process finds out what became of an answer that got lost.
func (m *model) resolves(s *state, p int) bool {
	for d := range m.deliveryCount {
		if t := &s.deliveries[d]; t.at == fencing && int(t.process) == p {
			return true
		}
	}
	return s.processes[p].acking || m.parks() && s.carriers[p].at == fencing
}

// quiet: nothing moves any more but new deliveries and people. A transaction that is still lost is
// one that never arrives.
func (m *model) quiet(s *state) bool {
	for i := session(1); i <= session(s.opened); i++ {
		if m.kept(s, i) == (s.sessions[i] == 0) {
			return false
		}
	}
	for p := range m.processCount {
		if own := s.processes[p]; own.up && own.paused != s.paused {
			return false
		}
	}
	for x := range s.holds {
		if s.holds[x].modified != 0 {
			return false
		}
	}
	for d := range m.deliveryCount {
		switch t := &s.deliveries[d]; t.at {
		case done, idle:
			if t.turn && m.breaks != turnIsKept {
				return false
			}
		case waiting:
			if m.canGoOn(s, d) {
				return false
			}
		default:
			return false
		}
	}
	return !m.parks() || m.carriersRest(s)
}

// canGoOn: a waiter has something to do.
func (m *model) canGoOn(s *state, d int) bool {
	t, e := &s.deliveries[d], m.events[d]
	i := m.lock(executionOf(d, t.ids))
	l := s.locks[i]
	if s.queue[e].created != t.q {
		return true
	}
	return m.ahead(s, i, t.q) == 0 && (l.created == 0 && m.someSlotFree(s, t.process) || s.isDead(l))
}

// someSlotFree: who waits for a slot, and whose turn it is, gets one.
func (m *model) someSlotFree(s *state, p uint8) bool {
	for n := range m.limits[p] {
		if s.slots[n] == 0 {
			return true
		}
	}
	for i := range m.lockCount { // a dead owner of one is reaped, after its session has ended
		if l := s.locks[i]; l.slot != 0 && (s.isDead(l) || s.uncarried(l)) {
			return true
		}
	}
	return !m.limited()
}

func (m *model) checkQuiet(s *state) {
	for x, turn := range s.turns {
		if turn != 0 && s.deliveries[execution(x).delivery()].at != waiting {
			m.broke(noTurnLeft)
		}
	}
	for i := range m.lockCount {
		switch l := s.locks[i]; {
		case l.created != 0 && !l.parked && !s.isDead(l):
			m.broke(noGhost)
		case l.created != 0 && l.parked && !s.uncarried(l) && !m.carries(s, l.by) &&
			!m.unrouted[m.processOf(s, l.alive)]:
			m.broke(parkedGoesOn)
		}
	}
	for e := range m.eventCount {
		if q := &s.queue[e]; q.created != 0 && !q.parked && s.deliveries[q.by.delivery()].at == done {
			m.broke(noGhost)
		}
	}
	for d := range m.deliveryCount {
		t := &s.deliveries[d]
		if t.at == waiting && !m.behindParked(s, d) {
			m.broke(nobodyWaitsForEver)
		}
		for n := range uint8(idsPerArrival) {
			x := executionOf(d, n)
			end := s.known.ended[x]
			if t.at == done && t.answer.notExecuted() && !s.known.again[x] &&
				(end == success || end == failed && s.known.upstream[x] != notCalled) {
				m.broke(refusedBurnsNothing)
			}
		}
	}
}
