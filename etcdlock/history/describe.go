package history

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// vouch sets, of locks that were read at revision, whether they are dead, and until when they are held. A session that this process knows is
// taken for alive; of the others it asks etcd.
func (s *Reader) vouch(ctx context.Context, locks []*idem.Lock, revision int64) error {
	var asked []*idem.Lock
	var ops []clientv3.Op
	for _, l := range locks {
		if protocol.IsHold(l.Alive) || !s.o.Alive(l.Alive) {
			asked = append(asked, l)
			ops = append(ops, clientv3.OpGet(s.o.Layout.Alive(l.Alive), clientv3.WithRev(revision)))
		}
	}
	answers, _, err := s.o.Pool.ReadEach(ctx, ops)
	if err != nil {
		return err
	}
	for i, l := range asked {
		switch alive := protocol.First(answers[i]); {
		case alive == nil:
			l.Dead = !s.o.Holds(l.Execution) && !l.IsParked()
		case protocol.IsHold(l.Alive):
			l.HoldUntil, _ = protocol.DecodeHold(alive.Value) // for operators only
		}
	}
	return nil
}

// described returns locks that were read at revision with what operators see of them beside their values. It returns idem.ErrStoreUnavailable.
func (s *Reader) described(ctx context.Context, views []idem.LockView, revision int64) ([]idem.LockView, error) {
	locks := make([]*idem.Lock, len(views))
	var ops []clientv3.Op
	queues := map[string]int{} // which of ops is about a workflow: with a lock.limit it has many locks
	for i, v := range views {
		locks[i], views[i].Of = v.Lock, s.ownLimit(v.Lock)
		workflow := v.Lock.Scope.Workflow
		if _, asked := queues[workflow]; !asked {
			queues[workflow] = len(ops)
			ops = append(ops, clientv3.OpGet(s.o.Layout.Queue(idem.Scope{Workflow: workflow}), clientv3.WithPrefix(), clientv3.WithCountOnly(), clientv3.WithRev(revision)))
		}
	}
	answers, _, err := s.o.Pool.ReadEach(ctx, ops)
	if err == nil {
		err = s.vouch(ctx, locks, revision)
	}
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	for i := range views {
		views[i].Waiting = int(answers[queues[views[i].Lock.Scope.Workflow]].GetResponseRange().Count)
	}
	return views, nil
}
