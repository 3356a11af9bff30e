package operate

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// SeenMarks returns what people have looked at, the newest mark first. It returns idem.ErrStoreUnavailable if etcd cannot be read.
func (op *Operator) SeenMarks(ctx context.Context) (all []idem.SeenMark, err error) {
	newestFirst := clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend)
	kvs, _, err := op.o.Pool.Keys(ctx, op.o.Layout.All(protocol.KindSeen), clientv3.WithPrefix(), newestFirst)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	for _, kv := range kvs {
		if one, err := op.o.Layout.SeenAt(kv); err == nil { // else of a newer release: it hides nothing here
			all = append(all, *one)
		}
	}
	return all, nil
}

// MarkSeen keeps that a person has looked at a concern, for idem.SeenKept. before is the mark that it replaced, or nil; the later Until stays. Of more
// than idem.MaxSeen marks the oldest go. It returns idem.ErrStoreUnavailable if etcd does not take it.
func (op *Operator) MarkSeen(ctx context.Context, mark idem.SeenMark) (kept, before *idem.SeenMark, err error) {
	all, err := op.SeenMarks(ctx)
	if err != nil {
		return nil, nil, err
	}
	if i := slices.IndexFunc(all, func(one idem.SeenMark) bool { return one.Concern == mark.Concern }); i >= 0 {
		before = &all[i]
		if before.Until.After(mark.Until) {
			mark.Until = before.Until
		}
	}
	value := protocol.EncodeSeen(&mark)
	lease, err := op.o.Leases.Take(ctx, idem.SeenKept, "", nil)
	if err != nil {
		return nil, nil, commit.Unavailable(err)
	}
	key := op.o.Layout.SeenOf(mark.Concern)
	r := commit.NewRequest(key, protocol.Note(key, protocol.Leased{Value: value, Lease: lease}), len(value))
	r.SharedLease = lease
	if _, applied, err := op.change(ctx, r); err != nil || !applied {
		return nil, nil, commit.Unavailable(err)
	}
	for _, old := range all[min(idem.MaxSeen-1, len(all)):] {
		if old.Concern != mark.Concern {
			_ = op.removeMark(ctx, old.Concern) // else the next mark does
		}
	}
	return &mark, before, nil
}

// UnmarkSeen removes a mark, and returns it. It returns idem.ErrNoMark if there is none, and idem.ErrStoreUnavailable if etcd does not take it.
func (op *Operator) UnmarkSeen(ctx context.Context, c idem.Concern) (*idem.SeenMark, error) {
	all, err := op.SeenMarks(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(one idem.SeenMark) bool { return one.Concern == c })
	if i < 0 {
		return nil, idem.ErrNoMark
	}
	return &all[i], op.removeMark(ctx, c)
}

func (op *Operator) removeMark(ctx context.Context, c idem.Concern) error {
	key := op.o.Layout.SeenOf(c)
	if _, applied, err := op.change(ctx, commit.NewRequest(key, protocol.Unmark(key), 0)); err != nil || !applied {
		return commit.Unavailable(err)
	}
	return nil
}
