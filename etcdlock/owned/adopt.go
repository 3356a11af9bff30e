package owned

import (
	"context"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// adopting is a lock on its way to a new session, for as long as its call runs and the session lives. Another process may have reaped it since the old session
// went.
type adopting struct {
	h  *Lock
	to *session.Session
}

func (a *adopting) run(life context.Context) {
	h, to := a.h, a.to
	for pause := link.NewBackoff(); ; {
		h.mu.Lock()
		l, over := *h.lock, h.ending || h.stopped != nil && !h.unheardLocked() || h.session == to
		h.mu.Unlock()
		if over || to.Err() != nil {
			return
		}
		k := h.keys
		k.S = to.Key
		at := protocol.Seen{Epoch: to.Epoch(), Created: l.Created, L: l.Revision}
		l.Alive, l.Holder = protocol.SessionAlive(to.Name), to.Holder()
		value, err := protocol.EncodeLock(&l)
		if err != nil {
			h.taken()
			return
		}
		answer := h.o.Sender.Do(life, commit.NewRequest(k.L, protocol.Adopt(k, at, protocol.Leased{Value: value}), len(value)))
		switch {
		case answer.Err == nil && answer.Succeeded:
			l.Revision = answer.Revision
			a.done(&l)
			return
		case answer.Err == nil:
			if st, err := history.Look(life, h.o.Pool, h.keys); err == nil && a.refused(st) {
				return
			}
		}
		if pause.Wait(life) != nil {
			return
		}
	}
}

func (a *adopting) done(l *idem.Lock) {
	h := a.h
	h.mu.Lock()
	h.session = a.to
	if h.unheardLocked() {
		h.stopped = nil
	}
	h.mu.Unlock()
	h.See(l)
}

// refused reports whether nothing is left to adopt: an earlier attempt has done it, or another process has the lock.
func (a *adopting) refused(st *protocol.State) bool {
	switch {
	case !a.h.mine(st):
		a.h.taken()
		return true
	case st.Lock.Alive == protocol.SessionAlive(a.to.Name):
		a.done(st.Lock)
		return true
	}
	a.h.See(st.Lock)
	return false
}
