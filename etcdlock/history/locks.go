package history

import (
	"context"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// LockBatch is how many locks are read at a time: each is 64 KiB at most, and usually half a KiB.
const LockBatch = 100

// maxHolders bounds the executions of one workflow that are shown together.
const maxHolders = 1000

// LockAt returns the lock of that scope; none if it is free. It returns idem.ErrStoreUnavailable,
// also if the lock cannot be read.
func (s *Reader) LockAt(ctx context.Context, scope idem.Scope) ([]idem.LockView, error) {
	kvs, revision, err := s.options.Pool.Keys(ctx, s.options.Layout.Lock(scope))
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	if len(kvs) == 0 {
		return nil, nil
	}
	l, err := protocol.LockAt(kvs[0])
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	return s.describeLocks(ctx, []idem.LockView{{Lock: l}}, revision)
}

// Holders returns the locks of the executions that have a slot of a workflow whose route has a
// lock.limit above one, the oldest first.
func (s *Reader) Holders(ctx context.Context, workflow string) (views []idem.LockView, err error) {
	prefix := s.options.Layout.Lock(idem.Scope{Workflow: workflow}) + "/"
	oldestFirst := clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)
	kvs, revision, err := s.options.Pool.Keys(ctx, prefix, clientv3.WithPrefix(), oldestFirst,
		clientv3.WithLimit(maxHolders))
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	for _, kv := range kvs {
		l, err := protocol.LockAt(kv)
		if err != nil || !l.OwnLimit() || !l.HasSlot() && !l.Cooling {
			continue // of a newer release, of strategy none, or it rests
		}
		views = append(views, idem.LockView{Lock: l})
	}
	return s.describeLocks(ctx, views, revision)
}

// ownLimit returns how many executions of the workflow of l may run at a time, by the configuration
// of this process; 0 = one.
func (s *Reader) ownLimit(l *idem.Lock) int {
	if !l.OwnLimit() {
		return 0
	}
	return s.options.Size(l.Route, idem.Slot{LimitName: idem.OwnLimit(l.Scope.Workflow)})
}

// Slots returns a part of the taken slots, limit by limit. It returns idem.ErrCursor or
// idem.ErrStoreUnavailable.
func (s *Reader) Slots(ctx context.Context, q idem.LockQuery) (idem.SlotPage, error) {
	return s.slotPage(ctx, q, protocol.KindSlots)
}

// Turns returns a part of the slot waiters, limit by limit. Its errors are those of Slots.
func (s *Reader) Turns(ctx context.Context, q idem.LockQuery) (idem.SlotPage, error) {
	return s.slotPage(ctx, q, protocol.KindSlotWaiters)
}

func (s *Reader) slotPage(ctx context.Context, q idem.LockQuery, kind string) (page idem.SlotPage, err error) {
	page.NextCursor, _, err = s.readPage(ctx, kind, q.Cursor, q.PageSize, func(kv *mvccpb.KeyValue) bool {
		limit, number, ok := protocol.SlotAt(strings.TrimPrefix(string(kv.Key), s.options.Layout.All(kind)))
		holder, err := protocol.DecodeSlot(kv.Value)
		n, bad := -1, error(nil)
		if kind == protocol.KindSlots {
			n, bad = strconv.Atoi(number)
		}
		if !ok || err != nil || bad != nil || !strings.HasPrefix(limit, q.Prefix) {
			return false // of a newer release
		}
		slot := idem.Slot{LimitName: limit, Rule: holder.Rule, Index: n}
		page.Slots = append(page.Slots, idem.SlotView{
			Slot: slot, Of: s.options.Size(holder.Route, slot), Execution: holder.Execution, Workflow: holder.Workflow,
			Route: holder.Route,
		})
		return true
	})
	return page, err
}

// Locks returns a part of the locks, in the order of their keys. It reaps nothing: a lock whose
// owner is dead says so. It returns idem.ErrCursor or idem.ErrStoreUnavailable.
func (s *Reader) Locks(ctx context.Context, q idem.LockQuery) (page idem.LockPage, err error) {
	var revision int64
	page.NextCursor, revision, err = s.readPage(ctx, protocol.KindLocks, q.Cursor, q.PageSize,
		func(kv *mvccpb.KeyValue) bool {
			l, err := protocol.LockAt(kv)
			if err != nil || l.Scope.PerEvent && !l.OwnLimit() || !strings.HasPrefix(l.Scope.Workflow, q.Prefix) {
				return false // of a newer release, or no lock of a workflow
			}
			page.Locks = append(page.Locks, idem.LockView{Lock: l})
			return true
		})
	if err == nil {
		page.Locks, err = s.describeLocks(ctx, page.Locks, revision)
	}
	return page, err
}

// setLiveness sets, of locks that were read at revision, whether they are dead, and until when they
// are held. A session that this process knows is taken for alive; of the others it asks etcd.
func (s *Reader) setLiveness(ctx context.Context, locks []*idem.Lock, revision int64) error {
	var asked []*idem.Lock
	var ops []clientv3.Op
	for _, l := range locks {
		if protocol.IsHold(l.Alive) || !s.options.Sessions.Has(l.Alive) {
			asked = append(asked, l)
			ops = append(ops, clientv3.OpGet(s.options.Layout.Alive(l.Alive), clientv3.WithRev(revision)))
		}
	}
	answers, _, err := s.options.Pool.ReadEach(ctx, ops)
	if err != nil {
		return err
	}
	for i, l := range asked {
		switch alive := protocol.First(answers[i]); {
		case alive == nil:
			l.Dead = !s.options.Holds(l.Execution) && !l.IsParked()
		case protocol.IsHold(l.Alive):
			l.HoldUntil, _ = protocol.DecodeHold(alive.Value) // for operators only
		}
	}
	return nil
}

// describeLocks returns locks that were read at revision with what operators see of them beside
// their values. It returns idem.ErrStoreUnavailable.
func (s *Reader) describeLocks(ctx context.Context, views []idem.LockView, revision int64) ([]idem.LockView, error) {
	locks := make([]*idem.Lock, len(views))
	var ops []clientv3.Op
	queues := map[string]int{} // which of ops is about a workflow: with a lock.limit it has many locks
	for i, v := range views {
		locks[i], views[i].Of = v.Lock, s.ownLimit(v.Lock)
		workflow := v.Lock.Scope.Workflow
		if _, asked := queues[workflow]; !asked {
			queues[workflow] = len(ops)
			ops = append(ops, clientv3.OpGet(s.options.Layout.Queue(idem.Scope{Workflow: workflow}),
				clientv3.WithPrefix(),
				clientv3.WithCountOnly(), clientv3.WithRev(revision)))
		}
	}
	answers, _, err := s.options.Pool.ReadEach(ctx, ops)
	if err == nil {
		err = s.setLiveness(ctx, locks, revision)
	}
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	for i := range views {
		views[i].Waiting = int(answers[queues[views[i].Lock.Scope.Workflow]].GetResponseRange().Count)
	}
	return views, nil
}
