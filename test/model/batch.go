package model

import "slices"

// Group commit: etcd reads all compares of a request before its first write. In every state, each
// pair of transactions that could be sent there is put into one request, and that is held against
// both serial orders.

// pairs is what was found of transactions in one request.
type pairs struct {
	checked, together int // all of them; those that both pass
	// kinds of pairs in one workflow that no serial order lets through, and in how many states
	skewed map[string]int
	across []string // the same with two workflows: there must be none
	// the same with one who comes and one who ends, which the sender lets share a lock: there must
	// be none
	shared []string
}

func (p *pairs) explore(m *model, limit int) {
	var at *state
	var sent []txn
	m.sent = func(_ *state, t *txn) { sent = append(sent, *t) }
	defer func() { m.sent = nil }()
	known := newSet()
	first := m.initial()
	known.add(first)
	for front := []state{*first}; len(front) > 0 && known.count < limit; {
		var next []state
		for i := range front {
			at, sent = &front[i], sent[:0]
			m.successors(at, func(n *state, _ step) {
				m.canonical(n)
				m.broken = ""
				if known.add(n) {
					next = append(next, *n)
				}
			})
			for x := range sent {
				for y := range sent[:x] {
					p.check(m, at, &sent[x], &sent[y])
				}
			}
		}
		front = next
	}
}

func (p *pairs) check(m *model, s *state, x, y *txn) {
	p.checked++
	if !m.compile(x).passes(&s.store) || !m.compile(y).passes(&s.store) {
		return
	}
	p.together++
	if m.follows(s, x, y) || m.follows(s, y, x) {
		return
	}
	names := []string{x.kind.String(), y.kind.String()}
	slices.Sort(names)
	pair := names[0] + " + " + names[1]
	p.skewed[pair]++
	if enqueues(x) && ends(y) || enqueues(y) && ends(x) {
		p.shared = append(p.shared, pair)
	}
	if m.lock(x.by) != m.lock(y.by) && !m.neverInOneProcess(x, y) && !m.aboutOneSlot(s, x, y) {
		p.across = append(p.across, pair)
	}
}

// enqueues and ends are the sides of a lock that may share it, as in etcdlock/commit: an entry
// queues behind a lock, or a holder settles or hands off.
func enqueues(t *txn) bool { return t.kind == enqueue && t.l != 0 }
func ends(t *txn) bool     { return t.kind == settle || t.kind == handOver }

// neverInOneProcess: copies of one event under two strategies, both on their way to a lock. A
// process has one strategy for a route.
func (m *model) neverInOneProcess(x, y *txn) bool {
	takes := func(t *txn) bool { return t.kind == claim || t.kind == enqueue || t.kind == claimAsHead }
	return m.event(x.by) == m.event(y.by) && takes(x) && takes(y)
}

// aboutOneSlot: both take or free it, which the sender keeps apart.
func (m *model) aboutOneSlot(s *state, x, y *txn) bool {
	slot := func(t *txn) uint8 {
		if l := s.locks[m.lock(t.by)]; t.slot == 0 && l.by == t.by {
			return l.slot
		}
		return t.slot
	}
	return slot(x) != 0 && slot(x) == slot(y)
}

// follows reports whether y is still let through after x.
func (m *model) follows(s *state, x, y *txn) bool {
	n := *s
	m.compile(x).run(&n.store, n.next())
	return m.compile(y).passes(&n.store)
}
