package model

import (
	"bytes"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"hooklock/etcdlock/protocol"
)

// The part of etcd that the protocol needs: a transaction reads all its compares before its first
// write, and every write of a request has the same revision. TestTheStoreIsLikeEtcd holds it
// against a real one.

// compiled is a transaction whose keys have been looked up.
type compiled struct {
	compares []compare
	writes   []write
}

// compare is one condition.
type compare struct {
	name   string // by which a mutation leaves it out
	refs   []ref  // one, or those below a prefix; it must hold for each that exists
	target pb.Compare_CompareTarget
	result pb.Compare_CompareResult
	than   int
	value  []byte
	// returns: it may hold again after it did not. Revisions do not come back; what is absent may
	// be deleted again.
	returns bool
}

// write is a put, a deletion or a nested transaction.
type write struct {
	ref             ref
	put             bool
	value           value
	lease           int64
	nested, refused *compiled
}

// value is what a key has, with zeros behind it.
type value [6]byte

// compile looks up the keys of what t sends.
func (m *model) compile(t *txn) *compiled {
	if c := m.compiled[*t]; c != nil {
		return c
	}
	request := m.op(t).GetRequestTxn()
	c := m.compileTxn(t, request.Compare, request.Success)
	for i := range c.compares {
		m.compares[t.kind][c.compares[i].name] = true
	}
	c.compares = slices.DeleteFunc(
		c.compares,
		func(is compare) bool { return slices.Contains(m.drops, compareOf{t.kind, is.name}) },
	)
	m.compiled[*t] = c
	return c
}

func (m *model) compileTxn(t *txn, compares []*pb.Compare, ops []*pb.RequestOp) *compiled {
	c := &compiled{}
	for _, is := range compares {
		c.compares = append(c.compares, m.compileCompare(t, is))
	}
	for _, op := range ops {
		switch w := op.Request.(type) {
		case *pb.RequestOp_RequestPut:
			put := write{ref: m.spelled.ref(string(w.RequestPut.Key)), put: true, lease: w.RequestPut.Lease}
			if copy(put.value[:], w.RequestPut.Value) != len(w.RequestPut.Value) {
				panic("a value of the model has up to six bytes")
			}
			c.writes = append(c.writes, put)
		case *pb.RequestOp_RequestDeleteRange:
			c.writes = append(c.writes, write{ref: m.spelled.ref(string(w.RequestDeleteRange.Key))})
		case *pb.RequestOp_RequestTxn:
			n := w.RequestTxn
			nested, refused := m.compileTxn(t, n.Compare, n.Success), m.compileTxn(t, nil, n.Failure)
			c.writes = append(c.writes, write{nested: nested, refused: refused})
		case *pb.RequestOp_RequestRange: // a process of the model sees the store as it is after the transaction
		}
	}
	return c
}

func (m *model) compileCompare(t *txn, is *pb.Compare) compare {
	c := compare{
		target: is.Target,
		result: is.Result,
		value:  is.GetValue(),
		than:   int(is.GetModRevision() + is.GetCreateRevision()),
	}
	if is.RangeEnd == nil {
		c.refs = []ref{m.spelled.ref(string(is.Key))}
	} else {
		for key, r := range m.spelled.refs {
			if key >= string(is.Key) && key < string(is.RangeEnd) {
				c.refs = append(c.refs, r)
			}
		}
	}
	c.returns = is.RangeEnd != nil || is.Result == pb.Compare_EQUAL && c.than == 0
	c.name = m.nameOf(&c, string(is.Key), m.spelled.of[t.by].OtherLock)
	return c
}

// nameOf says what a compare looks at, and what it is held against.
func (m *model) nameOf(c *compare, key, other string) string {
	if strings.HasSuffix(key, "/") || len(c.refs) != 1 {
		what := "queue"
		if strings.HasPrefix(key, m.spelled.layout.All(protocol.KindSlotWaiters)) {
			what = "waiters"
		}
		switch c.result {
		case pb.Compare_GREATER:
			return what + ".first"
		case pb.Compare_LESS:
			return what + ".last"
		}
		return what + ".empty"
	}
	what := [...]string{
		sessionKey: "session", lockKey: "lock", queueKey: "entry", recordKey: "record", holdKey: "hold",
		ageKey: "age", slotKey: "slot", markKey: "mark", unreadKey: "lock",
	}[c.refs[0].class]
	if key == other {
		what = "other"
	}
	switch {
	case c.target == pb.Compare_VALUE:
		return what + ".value"
	case c.target == pb.Compare_MOD:
		return what + ".mod"
	case c.than != 0:
		return what + ".create"
	}
	if c.refs[0].class == sessionKey || c.refs[0].class == holdKey {
		what = "alive"
	}
	if c.result == pb.Compare_GREATER {
		return what + ".present"
	}
	return what + ".absent"
}

// holds reports whether it does, for each key that exists. Where none does, etcd compares with
// revisions of 0, and no value is like another.
func (c *compare) holds(s *store) bool {
	found := false
	for _, r := range c.refs {
		created, modified := s.revisionsOf(r)
		if created == 0 {
			continue
		}
		if found = true; !c.is(s, created, modified) {
			return false
		}
	}
	return found || c.target != pb.Compare_VALUE && c.is(s, 0, 0)
}

func (c *compare) is(s *store, created, modified revision) bool {
	n := int(created) - c.than
	switch c.target {
	case pb.Compare_MOD:
		n = int(modified) - c.than
	case pb.Compare_VALUE:
		n = bytes.Compare([]byte{s.mark}, c.value)
	}
	switch c.result {
	case pb.Compare_LESS:
		return n < 0
	case pb.Compare_GREATER:
		return n > 0
	}
	return n == 0
}

// passes reports whether every compare holds. One put on a lease that is gone fails the whole
// request.
func (c *compiled) passes(s *store) bool {
	for i := range c.compares {
		if !c.compares[i].holds(s) {
			return false
		}
	}
	return c.leased(s)
}

func (c *compiled) leased(s *store) bool {
	for i := range c.writes {
		if w := &c.writes[i]; w.put && !s.isLeased(w.lease) {
			return false
		}
	}
	return true
}

// hopeless reports whether a transaction that does not pass never will.
func (c *compiled) hopeless(s *store) bool {
	for i := range c.compares {
		if is := &c.compares[i]; !is.returns && !is.holds(s) {
			return true
		}
	}
	return !c.leased(s)
}

// run makes the writes, at that revision.
func (c *compiled) run(s *store, at revision) {
	for i := range c.writes {
		switch w := &c.writes[i]; {
		case w.put:
			s.put(w.ref, &w.value, at)
		case w.nested == nil:
			s.delete(w.ref)
		case w.nested.passes(s):
			w.nested.run(s, at)
		default:
			w.refused.run(s, at)
		}
	}
}

// revisionsOf are those of a key; 0 = it is absent. Of a key whose revisions nothing compares they
// are 1.
func (s *store) revisionsOf(r ref) (created, modified revision) {
	exists := false
	switch r.class {
	case sessionKey:
		return s.sessions[r.index], s.sessions[r.index]
	case lockKey:
		return s.locks[r.index].created, s.locks[r.index].modified
	case queueKey:
		return s.queue[r.index].created, s.queue[r.index].modified
	case recordKey:
		return s.records[r.index].modified, s.records[r.index].modified
	case holdKey:
		return s.holds[r.index].modified, s.holds[r.index].modified
	case ageKey:
		exists = s.ages[r.index] == young || s.ages[r.index] == agedAndAnew
	case requestKey:
		exists = s.requests[r.index]&storedRequest != 0
	case parkedKey:
		exists = s.requests[r.index]&^storedRequest != 0
	case answerKey:
		exists = s.answers[r.index] == answerKept
	case slotKey:
		exists = s.slots[r.index] != 0
	case turnKey:
		exists = s.turns[r.index] != 0
	case markKey:
		exists = s.mark != 0
	}
	return revision(bit(exists)), revision(bit(exists))
}

func (s *store) put(r ref, v *value, at revision) {
	switch r.class {
	case sessionKey:
		s.sessions[r.index], s.acked[r.index] = at, v[0] != 0
	case lockKey:
		s.putLock(&s.locks[r.index], v, at)
	case queueKey:
		p := &s.queue[r.index]
		if p.created == 0 {
			p.created = at
		}
		p.modified, p.by, p.session, p.parked = at, execution(v[0]), session(v[1]), v[1] == 0
		p.again = v[2] != 0
	case recordKey:
		s.records[r.index] = record{
			modified: at,
			by:       execution(v[0]),
			outcome:  outcome(v[1]),
			final:    v[2]&1 != 0,
			letter:   v[2]&2 != 0,
			again:    v[2]&4 != 0,
		}
	case holdKey:
		s.holds[r.index] = hold{at, v[0]}
	case requestKey:
		s.requests[r.index] |= storedRequest
	case parkedKey:
		s.requests[r.index] = s.requests[r.index]&storedRequest | v[0]&^storedRequest
	case ageKey:
		switch s.ages[r.index] {
		case noAge:
			s.ages[r.index] = young
		case aged:
			s.ages[r.index] = agedAndAnew
		}
	case answerKey:
		s.answers[r.index] = v[0]
	case slotKey:
		s.slots[r.index] = execution(v[0])
	case turnKey:
		s.turns[r.index] = session(v[0])
	case markKey:
		s.mark = v[0]
	}
}

func (s *store) putLock(l *lock, v *value, at revision) {
	created, is := l.created, v[5]
	if created == 0 {
		created = at
	}
	*l = lock{
		created: created, modified: at,
		by: execution(v[0]), alive: alive(v[1]), token: revision(v[2]), slot: v[3], cancel: v[4],
		cooling: is&lockCools != 0, steps: is&lockHasSteps != 0, parked: is&lockParked != 0,
		trying: is&lockTrying != 0, blocked: is&lockBlocked != 0,
		again: is&lockAgain != 0,
	}
	switch {
	case is&lockFresh != 0:
		l.token = at
	case l.token == 0:
		l.token = created
	}
}

func (s *store) delete(r ref) {
	switch r.class {
	case sessionKey:
		s.sessions[r.index], s.acked[r.index] = 0, false
	case lockKey:
		s.locks[r.index] = lock{}
	case queueKey:
		s.queue[r.index] = place{}
	case recordKey:
		s.records[r.index] = record{}
	case holdKey:
		s.holds[r.index] = hold{}
	case requestKey:
		s.requests[r.index] &^= storedRequest
	case parkedKey:
		s.requests[r.index] &= storedRequest
	case ageKey:
		s.ages[r.index] = noAge
	case answerKey:
		s.answers[r.index] = noKeptAnswer
	case slotKey:
		s.slots[r.index] = 0
	case turnKey:
		s.turns[r.index] = 0
	case markKey:
		s.mark = 0
	}
}
