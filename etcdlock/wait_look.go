package etcdlock

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

// How who waits in a queue reads how things stand. To read the queue itself has etcd look at each place that went since its last compaction, while it serves
// nobody else: docs/adr/0015-the-baton.md has what that costs, so it is read where nothing else tells.

// maxLooks is how many places read at a time. When a watch breaks everybody reads again, and more at once would only time out.
const maxLooks = 32

// queueState is how things stand around a place.
type queueState struct {
	*protocol.State
	before  string // the last place before it, "" = it is first
	vouched bool   // its session lives in etcd
}

// look reads how things stand now. The way to etcd is deep, and each attempt has a context: on a goroutine that ends here they cost nothing
// while the place waits.
func (p *Place) look(ctx context.Context) (*queueState, error) {
	select {
	case p.store.looks <- struct{}{}:
	case <-ctx.Done():
		return nil, leftWaiting(ctx)
	}
	type result struct {
		at  *queueState
		err error
	}
	started := false
	start := func(f func(context.Context)) bool { started = p.store.tasks.Start(f); return started }
	r, err := commit.InTime(ctx, start, func(life context.Context) result {
		defer func() { <-p.store.looks }()
		at, err := p.read(life, func() bool { return ctx.Err() != nil || p.session.Err() != nil })
		return result{at, err}
	}, nil)
	switch {
	case !started:
		<-p.store.looks
		return nil, unavailable(err)
	case err != nil:
		return nil, leftWaiting(ctx)
	}
	return r.at, r.err
}

func leftWaiting(ctx context.Context) error {
	return fmt.Errorf("wait in the queue: %w", context.Cause(ctx))
}

// read repeats until there is an answer, or nobody wants one any more.
func (p *Place) read(life context.Context, unwanted func() bool) (*queueState, error) {
	k := p.keys()
	ops, first := protocol.LockRecordAndLine(k), p.store.isFirst(p)
	if first {
		ops = protocol.LockRecordAndPlace(k)
	}
	around := len(ops)
	ops = append(ops, link.Read(clientv3.OpGet(p.session.Key, clientv3.WithKeysOnly())))
	if gone := p.store.goneAt(p); gone != 0 {
		if at := p.readGone(life, k, gone); at != nil {
			return at, nil
		}
	}
	for pause := link.NewBackoff(); ; {
		response, err := p.store.pool.Commit(life, link.AttemptTimeout, nil, ops)
		if err == nil {
			st, err := protocol.ReadState(response.Responses[:around], response.Header.Revision)
			if err != nil {
				return nil, err
			}
			if st.Lock == nil && p.limits != nil {
				st.Lock = st.HoldsBack(p.waits())
			}
			st.Other = nil // else enqueue has compared it, and nobody claims it past a place
			at := &queueState{State: st, vouched: protocol.First(response.Responses[around]) != nil}
			if first {
				return at, nil
			}
			var known bool
			if at.before, known = protocol.Before(response.Responses[protocol.ReadLine], p.q); known {
				return at, nil
			}
			if at.before, err = p.readBefore(life, k); err == nil {
				return at, nil
			}
		}
		if unwanted() || pause.Wait(life) != nil {
			return nil, unavailable(fmt.Errorf("wait in the queue: %w", err))
		}
	}
}

// readBefore reads which place is the last before p's, where many are.
func (p *Place) readBefore(life context.Context, k protocol.Keys) (string, error) {
	last := link.Read(clientv3.OpGet(k.W, append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(p.q-1), clientv3.WithKeysOnly())...))
	response, err := p.store.pool.Commit(life, link.AttemptTimeout, nil, []protocol.Op{last})
	if err != nil {
		return "", err
	}
	kv := protocol.First(response.Responses[0])
	if kv == nil {
		return "", nil
	}
	return string(kv.Key), nil
}

// readGone reads what has become of a place that has gone at a revision, from whichever member answers: one that knows of that revision knows all that was
// written with it, and what came later is heard of as ever. Asking all of them is to wait for what etcd is writing. Nil: that member is behind, or does not
// answer.
func (p *Place) readGone(life context.Context, k protocol.Keys, revision int64) *queueState {
	ops := protocol.FromAnyMember(append(protocol.LockRecordAndPlace(k), link.Read(clientv3.OpGet(p.session.Key, clientv3.WithKeysOnly()))))
	response, err := p.store.pool.Commit(life, link.AttemptTimeout, nil, ops)
	if err != nil || response.Header.Revision < revision {
		return nil
	}
	last := len(ops) - 1
	st, err := protocol.ReadState(response.Responses[:last], response.Header.Revision)
	if err != nil {
		return nil
	}
	return &queueState{State: st, vouched: protocol.First(response.Responses[last]) != nil}
}
