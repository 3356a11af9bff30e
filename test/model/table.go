package model

import "slices"

// kind is a transaction of the protocol.
type kind uint8

const (
	claim kind = iota + 1
	enqueue
	claimAsHead
	leave
	settle
	handOver
	release
	adopt
	reap
	reapCooling
	fence
	acquire
	putHold
	heartbeat
	guard
	cancel
	cancelWaiting
	forget
	forceRelease
	forceReleaseCooling
	enqueueParked
	parkWaiting
	parkRunning
	attempt
	rest
	carry
	settleParked
	settleTooOld
	endUncarried
	endParkedPlace
	forceReleaseParked
	runNow
	rerun
	sweepLetter
	takeTurn
	dropTurn
	kinds
)

// txn is one transaction as it was sent, with what its sender knew.
type txn struct {
	kind                kind
	by                  execution
	session             session
	epoch               revision // S.mod
	created, l, q, prev revision // L.create, L.mod, Q.create, I.mod
	h                   revision // H.mod
	o                   revision // O.mod
	alive               alive    // what L named at l
	outcome             outcome  // to write into I
	lease               uint8    // of the H to write
	cancel              uint8    // that L carried at l

	token          revision  // to spell in L; 0 = L.create is the token, or fresh
	fresh          bool      // the token is the revision of this put
	parked, trying bool      // to write into L
	letter         bool      // the request is kept with I
	next           execution // that is handed the lock
	heir           session   // of next
	old            execution // whose request it takes over
	seen           bool      // to write into S: its process has heard of the pause
	slot           uint8     // to take, from 1; 0 = none
	turn           bool      // to take with a place
	last           revision  // Q.create of the last place in the queue, as its sender saw it
	over           execution // that it replaces in the queue; 0 = nobody
	overQ          revision  // Q.mod of that
}

// compare is one condition of a transaction, spelled as in etcdlock/protocol/table.go.
type compare struct {
	spelling string
	holds    func(m *model, s *state, t *txn) bool
	// returns: it may hold again after it did not. Revisions do not come back; what is absent may be deleted again.
	returns func(t *txn) bool
}

func always(*txn) bool { return true }

var (
	epochIs  = compare{"epochIs(k, at)", func(m *model, s *state, t *txn) bool { return s.sessions[t.session] == t.epoch && t.epoch != 0 }, nil}
	lAbsent  = compare{"absent(k.L)", func(m *model, s *state, t *txn) bool { return s.locks[m.lock(t.by)].created == 0 }, always}
	lCreated = compare{"created(k.L, at.created)", func(m *model, s *state, t *txn) bool { return s.locks[m.lock(t.by)].created == t.created },
		func(t *txn) bool { return t.created == 0 }}
	lIs = compare{"modified(k.L, at.l)", func(m *model, s *state, t *txn) bool { return s.locks[m.lock(t.by)].modified == t.l },
		func(t *txn) bool { return t.l == 0 }}
	recIs = compare{"modified(k.I, at.prev)", func(m *model, s *state, t *txn) bool { return s.records[m.event(t.by)].modified == t.prev },
		func(t *txn) bool { return t.prev == 0 }}
	otherIs = compare{"modified(k.O, at.o)", func(m *model, s *state, t *txn) bool { return m.otherIs(s, t.by) == t.o },
		func(t *txn) bool { return t.o == 0 }}
	slotsFree     = compare{"slotsFree(k)", func(_ *model, s *state, t *txn) bool { return t.slot == 0 || s.slots[t.slot-1] == 0 }, always}
	noSlotWaiters = compare{"noSlotWaiters(k)", func(_ *model, s *state, t *txn) bool { return t.slot == 0 || s.turns == [maxExecutions]session{} }, always}
	queueEmpty    = compare{"queueEmpty(k)", func(m *model, s *state, t *txn) bool { return m.ahead(s, m.lock(t.by), everybody) == 0 }, always}
	noNewEntry    = compare{"noNewEntry(k)", func(m *model, s *state, t *txn) bool {
		return !m.latest[t.by.delivery()] || m.ahead(s, m.lock(t.by), everybody) == m.ahead(s, m.lock(t.by), t.last+1)
	}, always}
	stillWaits = compare{"stillWaits(k)", func(m *model, s *state, t *txn) bool {
		return t.over == 0 || s.queue[m.event(t.over)].modified == t.overQ
	}, nil}
	isHead     = compare{"isHead(k, at.q)", func(m *model, s *state, t *txn) bool { return m.ahead(s, m.lock(t.by), t.q) == 0 }, always}
	qAbsent    = compare{"absent(k.Q)", func(m *model, s *state, t *txn) bool { return s.queue[m.event(t.by)].created == 0 }, always}
	qMine      = compare{"created(k.Q, at.q)", func(m *model, s *state, t *txn) bool { return s.queue[m.event(t.by)].created == t.q }, nil}
	qUntouched = compare{"modified(k.Q, at.q)", func(m *model, s *state, t *txn) bool { return s.queue[m.event(t.by)].modified == t.q }, nil}
	headIs     = compare{"modified(next.q, first.q)", func(m *model, s *state, t *txn) bool { return s.queue[m.event(t.next)].modified == t.q }, nil}
	headRecIs  = compare{"modified(next.i, first.prev)", func(m *model, s *state, t *txn) bool { return s.records[m.event(t.next)].modified == t.prev },
		func(t *txn) bool { return t.prev == 0 }}
	headAlive  = compare{"present(next.s)", func(m *model, s *state, t *txn) bool { return s.sessions[t.heir] != 0 }, nil}
	holdIs     = compare{"modified(k.H, at.h)", func(m *model, s *state, t *txn) bool { return s.holds[t.by].modified == t.h }, nil}
	ownerAlive = compare{"present(k.A)", func(m *model, s *state, t *txn) bool { return s.isAlive(t.alive, t.by) }, nil}
	ageOver    = compare{"absent(k.G)", func(_ *model, s *state, t *txn) bool { return s.ages[t.by] == aged }, always}
	ownerDead  = compare{"absent(k.A)", func(m *model, s *state, t *txn) bool { return !s.isAlive(t.alive, t.by) }, always}
)

// row is one row of the table: what a transaction compares, and what it then does.
type row struct {
	name     string // of the function in etcdlock/protocol/table.go
	compares []compare
	writes   string                                // as spelled there
	lease    func(m *model, s *state, t *txn) bool // one missing lease fails the whole request
	then     func(m *model, s *state, t *txn)
}

func table() [kinds]row {
	mine := []compare{lCreated, lIs}
	return [kinds]row{
		claim:       {"claim", []compare{epochIs, lAbsent, otherIs, queueEmpty, recIs, slotsFree, noSlotWaiters}, "append(append(writes{put(k.L, lock)}, readMark(k)...), takeSlots(k)...)", nil, (*model).claimed},
		enqueue:     {"enqueue", []compare{epochIs, lIs, otherIs, qAbsent, recIs, noNewEntry, stillWaits}, "append(append(writes{put(k.Q, place)}, takeTurn(k, turn)...), replace(k)...)", sessionLives, (*model).enqueued},
		claimAsHead: {"claimAsHead", []compare{epochIs, lAbsent, otherIs, qMine, isHead, recIs, slotsFree}, "append(append(writes{del(k.Q), put(k.L, lock), getFirst(k.W)}, readMark(k)...), takeSlots(k)...)", nil, (*model).claimed},
		leave:       {"leave", []compare{qUntouched}, "append(writes{del(k.Q)}, leaveLine(k)...)", nil, (*model).left},
		settle:      {"settle", []compare{lIs}, "append(endLock(k, record, cool), raise(k, mark)...)", coolingLeaseLives, (*model).settled},
		handOver:    {"handOver", []compare{epochIs, lIs, headIs, headAlive, headRecIs}, "append(append(append(append(writes{del(next.q), put(k.L, lock), put(k.I, record)}, readLine(next, more)...), raise(k, mark)...), answerOf(record)...), readMark(next)...)", nil, (*model).handedOver},
		release:     {"release", []compare{lIs}, "freeLock(k)", nil, (*model).released},
		adopt:       {"adopt", []compare{epochIs, lCreated, lIs}, "writes{put(k.L, lock)}", nil, (*model).adopted},
		reap:        {"reap", []compare{lIs, ownerDead}, "endLock(k, record, cool)", coolingLeaseLives, (*model).reaped},
		reapCooling: {"reapCooling", []compare{lIs, ownerDead}, "freeLock(k)", nil, (*model).thawed},
		fence:       {"fence", []compare{epochIs}, "writes{put(k.S, session)}", sessionLives, (*model).fenced},

		acquire: {"acquire", []compare{epochIs, lAbsent, queueEmpty}, "writes{put(k.L, lock), put(k.H, alive)}", ownLeaseLives, (*model).acquired},
		putHold: {"hold", mine, "writes{put(k.L, lock), put(k.H, alive)}", ownLeaseLives, (*model).held},
		// What it reads beside its write is for the answer.
		heartbeat:           {"heartbeat", []compare{lCreated, holdIs}, "writes{put(k.H, alive), get(k.L)}", ownLeaseLives, (*model).beaten},
		guard:               {"guard", []compare{lCreated, lIs, ownerAlive}, "writes{put(k.L, lock)}", nil, (*model).guarded},
		cancel:              {"cancel", []compare{lIs}, "append(tell(k, news), put(k.L, lock))", nil, (*model).cancelAsked},
		cancelWaiting:       {"cancelWaiting", []compare{qUntouched, recIs}, "writes{del(k.Q), put(k.I, record)}", nil, (*model).waiterCancelled},
		forget:              {"forget", []compare{recIs}, "append(append(writes{del(k.I), put(k.F, news)}, dropMark(k, mark)...), dropLetter(k, letter)...)", nil, (*model).forgotten},
		forceRelease:        {"forceRelease", []compare{lIs}, "append(tell(k, news), endLock(k, record, nil)...)", nil, (*model).forced},
		forceReleaseCooling: {"forceReleaseCooling", []compare{lIs}, "freeLock(k)", nil, (*model).thawed},

		enqueueParked:      {"enqueueParked", []compare{epochIs, lIs, otherIs, qAbsent, recIs, noNewEntry, stillWaits}, "append(append(writes{put(k.Q, place)}, keep(k, p)...), replace(k)...)", nil, (*model).enqueuedParked},
		parkWaiting:        {"parkWaiting", []compare{qMine}, "append(writes{put(k.Q, place)}, keep(k, p)...)", nil, (*model).parkedWaiting},
		parkRunning:        {"parkRunning", mine, "append(append(writes{put(k.L, lock)}, keep(k, p)...), freeSlots(k)...)", nil, (*model).parkedRunning},
		attempt:            {"attempt", []compare{lCreated, lIs, ownerAlive, slotsFree}, "append(writes{put(k.L, lock)}, takeSlots(k)...)", nil, (*model).attempted},
		rest:               {"rest", mine, "append(append(writes{put(k.L, lock)}, announce(k, index)...), freeSlots(k)...)", nil, (*model).rested},
		carry:              {"carry", []compare{epochIs, lIs, ownerDead}, "append(writes{put(k.L, lock)}, readMark(k)...)", nil, (*model).carried},
		settleParked:       {"settleParked", mine, "append(append(endLock(k, record, cool), unpark(k, letter)...), raise(k, mark)...)", coolingLeaseLives, (*model).settledParked},
		settleTooOld:       {"settleTooOld", append(slices.Clone(mine), ageOver), "append(endLock(k, record, cool), unpark(k, letter)...)", coolingLeaseLives, (*model).settledTooOld},
		endUncarried:       {"endUncarried", []compare{lIs, ownerDead}, "append(endLock(k, record, cool), unpark(k, letter)...)", coolingLeaseLives, (*model).endedUncarried},
		endParkedPlace:     {"endParkedPlace", []compare{qMine, recIs}, "append(writes{del(k.Q), put(k.I, record)}, unpark(k, letter)...)", nil, (*model).endedParkedPlace},
		forceReleaseParked: {"forceReleaseParked", []compare{lIs}, "append(append(tell(k, news), endLock(k, record, nil)...), unpark(k, &letter)...)", nil, (*model).forcedParked},
		runNow:             {"runNow", []compare{lIs}, "writes{put(k.L, lock), put(k.P, index), put(k.G, age)}", nil, (*model).ranNow},
		rerun:              {"rerun", []compare{lIs, otherIs, qAbsent, recIs}, "append(append(writes{put(k.Q, place)}, keep(k, p)...), del(old.r), del(old.p))", nil, (*model).reran},
		sweepLetter:        {"sweepLetter", []compare{recIs}, "writes{del(k.R), del(k.P)}", nil, (*model).swept},

		takeTurn: {"takeTurn", []compare{qMine}, "append(leaveLine(k), put(k.T, turn))", sessionLives, (*model).turnTaken},
		dropTurn: {"dropTurn", nil, "writes{del(k.T)}", nil, (*model).turnDropped},
	}
}

func sessionLives(m *model, s *state, t *txn) bool  { return s.sessions[t.session] != 0 }
func ownLeaseLives(m *model, s *state, t *txn) bool { return s.leaseLives(t.by, t.lease) }
func coolingLeaseLives(m *model, s *state, t *txn) bool {
	return !m.cools(t) || s.leaseLives(t.by, coolingLease)
}

// cools: the lock stays closed after an unknown outcome, where the route has a release_delay.
func (m *model) cools(t *txn) bool {
	return m.releaseDelay && t.outcome.unknown() && t.kind != forceRelease && t.kind != forceReleaseParked
}

// passes reports whether every compare holds, but for those that a mutation leaves out.
func (m *model) passes(s *state, t *txn) bool {
	r := &m.table[t.kind]
	for i := range r.compares {
		if !m.leavesOut(t.kind, i) && !r.compares[i].holds(m, s, t) {
			return false
		}
	}
	return r.lease == nil || r.lease(m, s, t)
}

// hopeless reports whether a transaction that does not pass never will.
func (m *model) hopeless(s *state, t *txn) bool {
	r := &m.table[t.kind]
	for i := range r.compares {
		c := &r.compares[i]
		if !m.leavesOut(t.kind, i) && (c.returns == nil || !c.returns(t)) && !c.holds(m, s, t) {
			return true
		}
	}
	return r.lease != nil && !r.lease(m, s, t)
}

// apply runs one transaction in etcd; false: refused, nothing changed.
func (m *model) apply(s *state, t *txn) bool {
	if !m.passes(s, t) {
		m.seen[t.kind].refused++
		return false
	}
	m.seen[t.kind].applied++
	m.table[t.kind].then(m, s, t)
	m.checkPlaces(s)
	m.checkMark(s)
	return true
}
