package model

import (
	"fmt"
	"strings"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// class is what a key is for; with an index it is one key, and one field of the store.
type class uint8

const (
	sessionKey class = iota
	lockKey
	queueKey
	recordKey
	holdKey
	requestKey
	parkedKey
	ageKey
	answerKey
	slotKey
	turnKey
	markKey
	unreadKey // no transaction of a delivery compares it, and no process depends on it
)

// ref is one key.
type ref struct {
	class class
	index uint8
}

const limitName = "limit"

// spelled are the keys as the protocol spells them.
type spelled struct {
	layout protocol.Layout
	of     [maxExecutions]protocol.Keys // of each execution, without what depends on its session and its lock
	lock   [maxExecutions]*idem.Lock
	refs   map[string]ref
}

func (m *model) spell() {
	k := spelled{layout: protocol.NewLayout("m"), refs: map[string]ref{}}
	for i := range uint8(maxSessions + 1) {
		k.refs[k.layout.Alive(sessionName(session(i)))] = ref{sessionKey, i}
	}
	for n := range uint8(maxSlots) {
		k.refs[k.layout.Slot(limitName, int(n))] = ref{slotKey, n}
	}
	for x := execution(1); x < maxExecutions; x++ {
		if x.delivery() >= max(m.deliveryCount, 1) {
			break
		}
		e := m.event(x)
		id := idem.ExecutionID(fmt.Sprintf("execution%d", x))
		l := &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: id, Scope: idem.Scope{
			Workflow: fmt.Sprintf(
				"workflow%d",
				m.lockOf[e],
			), Key: idem.Key(fmt.Sprintf("event%d", e)), PerEvent: m.none[x.delivery()],
		}}}
		if m.position(x) != 0 {
			l.Order = &idem.Order{ScopeKey: "scope"}
		}
		own := k.layout.Keys(l)
		k.of[x], k.lock[x] = own, l
		k.refs[own.Lock] = ref{lockKey, uint8(m.lock(x))}
		k.refs[own.Entry], k.refs[own.Record] = ref{queueKey, uint8(e)}, ref{recordKey, uint8(e)}
		k.refs[own.Hold], k.refs[own.Request], k.refs[own.Index], k.refs[own.Age] = ref{
			holdKey,
			uint8(x),
		}, ref{
			requestKey,
			uint8(x),
		}, ref{
			parkedKey,
			uint8(x),
		}, ref{
			ageKey,
			uint8(x),
		}
		k.refs[answerOf(&k, x)], k.refs[k.layout.SlotWaiter(limitName, id)] = ref{answerKey, uint8(x)},
			ref{turnKey, uint8(x)}
		if own.HighWaterMark != "" {
			k.refs[own.HighWaterMark] = ref{markKey, 0}
		}
	}
	m.spelled = k
}

func answerOf(k *spelled, x execution) string {
	return k.layout.Of(protocol.KindAnswers, k.lock[x].Execution)
}

func questionOf(k *spelled, x execution) string {
	return k.layout.Of(protocol.KindQuestions, k.lock[x].Execution)
}

func sessionName(i session) string { return protocol.SessionAlive(fmt.Sprintf("session%d", i)) }

// ref finds a key that a transaction names. The lock of an execution under the other strategy is
// there only if a delivery comes to such a replica.
func (k *spelled) ref(key string) ref {
	r, ok := k.refs[key]
	switch {
	case ok:
		return r
	case strings.HasPrefix(key, k.layout.All(protocol.KindForgets)),
		strings.HasPrefix(key, k.layout.All(protocol.KindQuestions)),
		strings.HasPrefix(key, k.layout.All(protocol.KindLocks)):
		return ref{unreadKey, 0}
	}
	panic("the model has no key " + key)
}

// keys are those of t's transaction.
func (m *model) keys(t *txn) protocol.Keys {
	if t.by == 0 {
		return protocol.Keys{Session: m.aliveKey(alive(t.session), 0)}
	}
	k := m.spelled.of[t.by]
	k.Session, k.Alive, k.Cancel = m.aliveKey(alive(t.session), 0), m.aliveKey(t.alive, t.by), ""
	if t.slot != 0 {
		k.Slots = m.slotKeys(t.by, t.slot)
	}
	if m.limited() {
		turn := m.spelled.layout.SlotWaiter(limitName, m.spelled.lock[t.by].Execution)
		switch t.kind {
		case enqueue:
			if t.turn {
				k.SlotWaiter = turn
			}
		case claim, claimAsHead, enterSlotWaiters, dropSlotWaiter:
			k.SlotWaiter = turn
		case leave:
			k.OldSlotWaiter = turn
		}
	}
	return k
}

// ended are the keys of t's transaction where it ends the lock that t saw, or lets it rest.
func (m *model) ended(t *txn) protocol.Keys {
	k := m.keys(t)
	k.Slots = nil
	if t.saw.slot != 0 && m.breaks != slotIsKept {
		k.Slots = m.slotKeys(t.by, t.saw.slot)
	}
	if t.kind != reap && t.kind != reapCooling && t.kind != endUncarried {
		k.Alive = m.aliveKey(t.saw.alive, t.by)
		if m.breaks == holdIsKept {
			k.Alive = ""
		}
	}
	return k
}

func (m *model) slotKeys(x execution, slot uint8) []protocol.SlotKey {
	keys := m.spelled.layout.SlotsOf(
		&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Slots: []idem.Slot{{LimitName: limitName,
			Index: int(slot) - 1}}}},
	)
	keys[0].Value = []byte{byte(x)}
	return keys
}

func (m *model) aliveKey(a alive, x execution) string {
	if a == byHold {
		return m.spelled.of[x].Hold
	}
	return m.spelled.layout.Alive(sessionName(session(a)))
}
