package operate

import (
	"context"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Acknowledgements returns what people have looked at, the newest mark first. It returns
// idem.ErrStoreUnavailable if etcd cannot be read.
func (op *Operator) Acknowledgements(ctx context.Context) (all []idem.Acknowledgement, err error) {
	newestFirst := clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend)
	kvs, _, err := op.options.Pool.Keys(ctx, op.options.Layout.All(protocol.KindAcknowledgements),
		clientv3.WithPrefix(), newestFirst)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	for _, kv := range kvs {
		// else of a newer release: it hides nothing here
		if one, err := op.options.Layout.DecodeAcknowledgement(kv); err == nil {
			all = append(all, *one)
		}
	}
	return all, nil
}

// maxAcknowledgements is how many acknowledgements etcd keeps: the oldest go first.
const maxAcknowledgements = 500

// Acknowledge keeps that a person has looked at a concern, for idem.AuditRetention. before is the
// mark that it replaced, or nil; the later Until stays. It returns idem.ErrStoreUnavailable if etcd
// does not take it.
func (op *Operator) Acknowledge(ctx context.Context, mark idem.Acknowledgement, audit *idem.Audit,
) (kept, before *idem.Acknowledgement, err error) {
	all, err := op.Acknowledgements(ctx)
	if err != nil {
		return nil, nil, err
	}
	lease, err := op.options.Leases.Take(ctx, idem.AuditRetention, "", nil)
	if err != nil {
		return nil, nil, commit.Unavailable(err)
	}
	t := op.newTrail(audit)
	t.audit.Workflow = mark.Concern.String()
	key := op.options.Layout.Acknowledgement(mark.Concern)
	err = t.changeKey(ctx, key, func(kv *mvccpb.KeyValue) (*commit.Request, error) {
		before, t.audit.Before = nil, "not looked at"
		if old, err := op.decodeAcknowledgement(kv); err == nil { // else there is none, or one of a newer release
			before, t.audit.Before = old, old.Text()
			if old.Until.After(mark.Until) {
				mark.Until = old.Until
			}
		}
		t.audit.After = "looked at until " + mark.Until.Format(time.RFC3339)
		value := protocol.EncodeAcknowledgement(&mark)
		r := commit.NewRequest(key, protocol.Declare(key, kv.GetModRevision(),
			protocol.Leased{Value: value, Lease: lease}), len(value))
		r.SharedLease = lease
		return r, nil
	})
	if err != nil {
		return nil, nil, err
	}
	for _, old := range all[min(maxAcknowledgements-1, len(all)):] {
		if old.Concern != mark.Concern {
			_, _ = op.DropAcknowledgement(ctx, old.Concern, nil) // else the next mark does
		}
	}
	return &mark, before, nil
}

// decodeAcknowledgement reads a mark; kv may be nil. It returns idem.ErrNotAcknowledged, or that kv
// cannot be read.
func (op *Operator) decodeAcknowledgement(kv *mvccpb.KeyValue) (*idem.Acknowledgement, error) {
	if kv == nil {
		return nil, idem.ErrNotAcknowledged
	}
	return op.options.Layout.DecodeAcknowledgement(kv)
}

// DropAcknowledgement removes a mark, and returns it. It returns idem.ErrNotAcknowledged if there
// is none, and idem.ErrStoreUnavailable if etcd does not take it.
func (op *Operator) DropAcknowledgement(ctx context.Context, c idem.Concern, audit *idem.Audit,
) (mark *idem.Acknowledgement, err error) {
	t := op.newTrail(audit)
	t.audit.Workflow = c.String()
	key := op.options.Layout.Acknowledgement(c)
	err = t.changeKey(ctx, key, func(kv *mvccpb.KeyValue) (*commit.Request, error) {
		if mark, err = op.decodeAcknowledgement(kv); err != nil {
			return nil, err
		}
		t.audit.Before, t.audit.After = mark.Text(), "not looked at"
		return commit.NewRequest(key, protocol.DropAcknowledgement(key, kv.ModRevision), 0), nil
	})
	if err != nil {
		return nil, err
	}
	return mark, nil
}
