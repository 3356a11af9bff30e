package owned

import (
	"context"
	"errors"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// adopting is a lock on its way to a new session, for as long as its call runs and the session
// lives. Another process may have reaped it since the old session went.
type adopting struct {
	untilKnown
	lock *Lock
	to   *session.Session
}

// errNotWanted ends a write that is not wanted any more.
var errNotWanted = errors.New("not wanted any more")

func (a *adopting) run(life context.Context) {
	put, _, err := (&writing{lock: a.lock, write: a}).run(life)
	switch {
	case put != nil:
		a.noteAdoption(put)
	case err == nil:
		a.lock.stopAsLost()
	}
}

func (a *adopting) sendOnce(ctx context.Context, l *idem.Lock, _ *writing) (*idem.Lock, commit.Reply, error) {
	h, to := a.lock, a.to
	h.mu.Lock()
	over := h.ending || h.stopped != nil && !h.unheardLocked() || h.session == to
	h.mu.Unlock()
	if over || to.Err() != nil {
		return nil, commit.Reply{}, errNotWanted
	}
	next, k := *l, h.keys
	k.Session, next.Alive, next.Holder = to.Key, protocol.SessionAlive(to.Name), to.Holder()
	value, err := protocol.EncodeLock(&next)
	if err != nil {
		h.stopAsLost()
		return nil, commit.Reply{}, errNotWanted
	}
	at := protocol.Revisions{Epoch: to.Epoch(), LockCreated: l.Created, Lock: l.Revision}
	return &next, h.options.Sender.Do(ctx,
		commit.NewRequest(k.Lock, protocol.Adopt(k, at, protocol.Leased{Value: value}),
			len(value))), nil
}

func (a *adopting) isDone(l *idem.Lock, _ *writing) bool {
	return l.Alive == protocol.SessionAlive(a.to.Name)
}

func (a *adopting) noteAdoption(l *idem.Lock) {
	h := a.lock
	h.mu.Lock()
	h.session = a.to
	if h.unheardLocked() {
		h.stopped = nil
	}
	h.mu.Unlock()
	h.See(l)
}
