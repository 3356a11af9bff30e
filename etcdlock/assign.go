package etcdlock

import (
	"fmt"
	"unicode/utf8"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// prepare makes l the lock of the live session, and its value.
func (s *core) prepare(l *idem.Lock) (*session.Session, []byte, error) {
	session, err := s.assign(l)
	if err != nil {
		return nil, nil, err
	}
	value, err := protocol.EncodeLock(l)
	if err != nil {
		return nil, nil, commit.Unavailable(err)
	}
	return session, value, nil
}

// assign makes l the lock of the live session.
func (s *core) assign(l *idem.Lock) (*session.Session, error) {
	session, _, err := s.keeper.Current()
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	if len(l.Scope.Workflow) > protocol.MaxWorkflowBytes {
		return nil, commit.Unavailable(fmt.Errorf("workflow of %d bytes, at most %d: %w", len(l.Scope.Workflow), protocol.MaxWorkflowBytes, protocol.ErrTooLarge))
	}
	if !utf8.ValidString(l.Scope.Workflow) { // its value could not spell it
		return nil, commit.Unavailable(fmt.Errorf("workflow %q: give UTF-8", l.Scope.Workflow))
	}
	l.Alive = protocol.SessionAlive(session.Name)
	if l.Holder == "" {
		l.Holder = session.Holder()
	}
	return session, nil
}
