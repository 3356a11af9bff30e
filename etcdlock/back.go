package etcdlock

import "hooklock/etcdlock/session"

// wentBack is told that etcd was put back to an earlier state under this process, with its revisions. What is known here by a revision is worth nothing
// then, and what has become of the rest only etcd can say: so the session ends, and all begins anew with the next one. That what runs still has its lock
// shows when that is adopted. The session's key may have come back with locks that were given up long ago; its lease runs out, because no process renews it.
func (s *core) wentBack(before, now int64) {
	s.o.Logger.Error("etcd.went_back", "revision", now, "before", before, "advice", backAdvice)
	s.keeper.Lose(session.ErrWentBack)
	s.queues.Forget()
	s.own.Rewind()
}

// backAdvice: nothing here can do it.
const backAdvice = "etcd was restored to an earlier state without --bump-revision: events that ran since run again when they are repeated, what was parked " +
	"since is lost, and fencing tokens are given a second time; stop every Hooklock and etcd, and restore it as docs/etcd.md says"
