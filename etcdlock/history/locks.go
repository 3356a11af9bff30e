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

// LockAt returns the lock of that scope; none if it is free. It returns idem.ErrStoreUnavailable, also if the lock cannot be read.
func (s *Reader) LockAt(ctx context.Context, scope idem.Scope) ([]idem.LockView, error) {
	kvs, revision, err := s.o.Pool.Keys(ctx, s.o.Layout.Lock(scope))
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
	return s.described(ctx, []idem.LockView{{Lock: l}}, revision)
}

// Holders returns the locks of the executions that have a slot of a workflow whose route has a lock.limit above one, the oldest first.
func (s *Reader) Holders(ctx context.Context, workflow string) (views []idem.LockView, err error) {
	prefix := s.o.Layout.Lock(idem.Scope{Workflow: workflow}) + "/"
	oldestFirst := clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)
	kvs, revision, err := s.o.Pool.Keys(ctx, prefix, clientv3.WithPrefix(), oldestFirst, clientv3.WithLimit(maxHolders))
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
	return s.described(ctx, views, revision)
}

// ownLimit returns how many executions of the workflow of l may run at a time, by the configuration of this process; 0 = one.
func (s *Reader) ownLimit(l *idem.Lock) int {
	if !l.OwnLimit() {
		return 0
	}
	return s.o.Size(l.Route, idem.Slot{Limit: idem.OwnLimit(l.Scope.Workflow)})
}

// Slots returns a part of the taken slots, limit by limit. It returns idem.ErrCursor or idem.ErrStoreUnavailable.
func (s *Reader) Slots(ctx context.Context, q idem.LockQuery) (idem.SlotPage, error) {
	return s.slotPage(ctx, q, s.o.Layout.All(protocol.KindSlots), true)
}

// Turns returns a part of the slot waiters, limit by limit. Its errors are those of Slots.
func (s *Reader) Turns(ctx context.Context, q idem.LockQuery) (idem.SlotPage, error) {
	return s.slotPage(ctx, q, s.o.Layout.All(protocol.KindTurns), false)
}

func (s *Reader) slotPage(ctx context.Context, q idem.LockQuery, prefix string, taken bool) (page idem.SlotPage, err error) {
	page.NextCursor, _, err = s.page(ctx, strings.TrimPrefix(prefix, s.o.Layout.Root), q.Cursor, q.Limit, func(kv *mvccpb.KeyValue) bool {
		limit, number, ok := protocol.SlotAt(strings.TrimPrefix(string(kv.Key), prefix))
		holder, err := protocol.DecodeSlot(kv.Value)
		n, bad := -1, error(nil)
		if taken {
			n, bad = strconv.Atoi(number)
		}
		if !ok || err != nil || bad != nil || !strings.HasPrefix(limit, q.Prefix) {
			return false // of a newer release
		}
		slot := idem.Slot{Limit: limit, Rule: holder.Rule, N: n}
		page.Slots = append(page.Slots, idem.SlotView{
			Slot: slot, Of: s.o.Size(holder.Route, slot), Execution: holder.Execution, Workflow: holder.Workflow, Route: holder.Route,
		})
		return true
	})
	if err != nil {
		return idem.SlotPage{}, err
	}
	return page, nil
}

// Locks returns a part of the locks, in the order of their keys. It reaps nothing: a lock whose owner is dead says so. It returns
// idem.ErrCursor or idem.ErrStoreUnavailable.
func (s *Reader) Locks(ctx context.Context, q idem.LockQuery) (page idem.LockPage, err error) {
	var revision int64
	page.NextCursor, revision, err = s.page(ctx, protocol.KindLocks, q.Cursor, q.Limit, func(kv *mvccpb.KeyValue) bool {
		l, err := protocol.LockAt(kv)
		if err != nil || l.Scope.PerEvent && !l.OwnLimit() || !strings.HasPrefix(l.Scope.Workflow, q.Prefix) {
			return false // of a newer release, or no lock of a workflow
		}
		page.Locks = append(page.Locks, idem.LockView{Lock: l})
		return true
	})
	if err == nil {
		page.Locks, err = s.described(ctx, page.Locks, revision)
	}
	if err != nil {
		return idem.LockPage{}, err
	}
	return page, nil
}
