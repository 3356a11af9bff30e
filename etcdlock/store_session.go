package etcdlock

import (
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// sessionListener tells the parts of a Store what becomes of sessions.
type sessionListener struct{ *core }

func (s sessionListener) OnFailed(why error) {
	s.options.Logger.Warn("session.unavailable", "error", why)
}

// OnOpened hands the running locks of the session before over to the new one.
func (s sessionListener) OnOpened(session *session.Session) {
	s.view.OnMissed(session.Epoch()) // between two sessions, none was followed
	adopted := s.own.Adopt(session)
	s.sweeper.Everything()
	s.release.Look()
	s.reportEvent(SessionEvent{Opened: true, Session: session.Name, Adopted: adopted})
}

func (s sessionListener) OnEnded(session *session.Session) {
	s.reportReset()
	s.reportEvent(SessionEvent{Session: session.Name, Reason: session.Err()})
}

func (s sessionListener) OnExpired(session *session.Session) { s.own.Unheard(session) }

func (s sessionListener) OnDied(names []string) {
	s.sweeper.Died(names)
	s.view.OnDied(names)
	s.duplicates.FollowOrphans()
}

func (s sessionListener) OnForgot(execution string) {
	if s.options.OnForget != nil {
		s.options.OnForget(idem.ExecutionID(execution))
	}
}

func (s sessionListener) OnAsked(execution string) { s.own.Reread(idem.ExecutionID(execution)) }

func (s sessionListener) OnUnheld(execution string, revision int64) {
	s.sweeper.LookAtHold(idem.ExecutionID(execution))
	s.view.OnUnheld(idem.ExecutionID(execution), revision)
}

// OnMissed makes this process look again at all that it may have missed.
func (s sessionListener) OnMissed(upTo int64) {
	s.reportReset()
	s.sweeper.Everything()
	s.view.OnMissed(upTo)
}

func (s sessionListener) reportEvent(e SessionEvent) {
	if s.options.OnSession != nil {
		s.options.OnSession(e)
	}
}
