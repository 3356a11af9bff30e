package claim

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// FirstTwin is that of idem.Ledger. An answer that got lost does no harm: what it wrote is read by
// the next attempt, or by the next delivery.
func (s *Claims) FirstTwin(ctx context.Context, t *idem.Twin) (first idem.FirstTwin, err error) {
	n := &naming{options: s.options, twin: t}
	n.keys, n.first = s.options.Layout.Twin(t)
	err = s.options.Tasks.Repeat(ctx, func(ctx context.Context) (done bool, err error) {
		done, err = n.tryOnce(ctx)
		return done, err
	})
	return n.found, err
}

// naming finds out which event one of several twins is.
type naming struct {
	options *Options
	twin    *idem.Twin
	keys    protocol.TwinKeys
	first   string // what keys.First ends in
	found   idem.FirstTwin
}

// tryOnce names the event the first one, or joins it to the first one. done false: things have
// changed.
func (n *naming) tryOnce(ctx context.Context) (done bool, err error) {
	index, err := n.withSharedLease(ctx, n.twin.Window, protocol.EncodeTwin(n.twin.Scope.Key, n.twin.EventID, ""))
	if err != nil {
		return false, err
	}
	alias, err := n.withSharedLease(ctx, n.twin.Life, protocol.EncodeTwin(n.twin.Scope.Key, "", n.first))
	if err != nil {
		return false, err
	}
	answer := n.sendTransaction(ctx, protocol.NameFirst(n.keys, index, alias), &index, &alias)
	if answer.Err != nil || answer.Succeeded {
		return answer.Err == nil, answer.Err
	}
	known, err := protocol.ReadTwins(answer.Responses)
	switch {
	case err != nil:
		return true, commit.Unavailable(err)
	case known.Alias != nil:
		n.noteFirst(known.Alias, false)
		return true, nil
	case known.Record: // it has run under its own key
		return true, nil
	case known.First == nil: // its window has ended since
		return false, nil
	}
	return n.joinFirst(ctx, &known, alias.Lease)
}

// joinFirst makes the event the first one.
func (n *naming) joinFirst(ctx context.Context, known *protocol.Twins, lease clientv3.LeaseID) (done bool, err error) {
	alias := protocol.Leased{Value: protocol.EncodeTwin(known.First.Key, known.First.EventID, ""), Lease: lease}
	back := protocol.Leased{Value: []byte(`{"v":1}`), Lease: lease}
	joined := n.options.Layout.Joined(known.First.Key) + string(n.twin.Scope.Key)
	answer := n.sendTransaction(ctx, protocol.JoinFirst(n.keys, known.FirstAt, joined, alias, back), &alias, &alias)
	if answer.Err != nil || !answer.Succeeded {
		return false, answer.Err
	}
	n.noteFirst(known.First, true)
	return true, nil
}

// noteFirst notes which event it is.
func (n *naming) noteFirst(first *protocol.Twin, isNew bool) {
	if first.Key != n.twin.Scope.Key {
		n.found = idem.FirstTwin{Key: first.Key, EventID: first.EventID, New: isNew}
	}
}

// withSharedLease returns v on a lease that others share.
func (n *naming) withSharedLease(ctx context.Context, life time.Duration, v []byte) (protocol.Leased, error) {
	id, err := n.options.Leases.Take(ctx, life, "", nil)
	return protocol.Leased{Value: v, Lease: id}, err
}

// sendTransaction sends a transaction with two values. Two about one body, or about one event, do
// not travel together.
func (n *naming) sendTransaction(ctx context.Context, op protocol.Op, one, two *protocol.Leased) commit.Reply {
	r := commit.NewRequest(n.keys.First, op, len(one.Value)+len(two.Value))
	r.Slots = []string{n.keys.Alias}
	r.SharedLease, r.AnswerLease = one.Lease, two.Lease
	answer := n.options.Sender.Do(ctx, r)
	n.options.Leases.DropIfGone(r.SharedLease, answer.Err)
	n.options.Leases.DropIfGone(r.AnswerLease, answer.Err)
	return answer
}
