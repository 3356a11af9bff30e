package queue

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

// How a place reads how things stand. To read the queue itself has etcd look at each entry that
// went since its last compaction, while it serves nothing else: docs/adr/0015-hand-off.md has what
// that costs, so it is read where nothing else tells.

// maxLooks is how many places read at a time. When a watch breaks, all read again, and more at once
// would only time out.
const maxLooks = 32

// queueState is how things stand around a place.
type queueState struct {
	*protocol.State
	before  string // the last place before it, "" = it is first
	vouched bool   // its session lives in etcd
}

// readQueueState reads how things stand now. The way to etcd is deep, and each attempt has a
// context: on a goroutine that ends here they cost nothing while the place waits.
func (p *Entry) readQueueState(ctx context.Context) (*queueState, error) {
	select {
	case p.options.looks <- struct{}{}:
	case <-ctx.Done():
		return nil, waitError(ctx)
	}
	type result struct {
		at  *queueState
		err error
	}
	started := false
	start := func(f func(context.Context)) bool { started = p.options.Tasks.Start(f); return started }
	r, err := commit.InTime(ctx, start, func(life context.Context) result {
		defer func() { <-p.options.looks }()
		at, err := (&reading{p}).run(life, func() bool { return ctx.Err() != nil || p.entry.Session.Err() != nil })
		return result{at, err}
	}, nil)
	switch {
	case !started:
		<-p.options.looks
		return nil, commit.Unavailable(err)
	case err != nil:
		return nil, waitError(ctx)
	}
	return r.at, r.err
}

func waitError(ctx context.Context) error {
	return fmt.Errorf("wait in the queue: %w", context.Cause(ctx))
}

// reading is one look of a place.
type reading struct{ entry *Entry }

// run repeats until there is an answer, or none is wanted any more.
func (r *reading) run(life context.Context, unwanted func() bool) (*queueState, error) {
	if gone := r.entry.options.View.Queues.GoneAt(&r.entry.entry); gone != 0 {
		if at := r.readAfterGone(life, gone); at != nil {
			return at, nil
		}
	}
	first := r.entry.options.View.Queues.IsHead(&r.entry.entry)
	for pause := link.NewBackoff(); ; {
		response, err := r.entry.options.Pool.Commit(life, r.entry.options.Pool.Attempt, nil, r.readOps(!first))
		if err == nil {
			var at *queueState
			if at, err = r.stateIn(response); err != nil {
				return nil, err
			}
			if first {
				return at, nil
			}
			if at.before, err = r.entryBefore(life, response.Responses[protocol.ReadCandidates]); err == nil {
				return at, nil
			}
		}
		if unwanted() || pause.Wait(life) != nil {
			return nil, commit.Unavailable(fmt.Errorf("wait in the queue: %w", err))
		}
	}
}

// readOps asks for what stateIn reads, with the queue or without.
func (r *reading) readOps(line bool) []protocol.Op {
	k := r.entry.etcdKeys()
	ops := protocol.LockRecordAndPlace(k)
	if line {
		ops = protocol.LockRecordAndCandidates(k)
	}
	return append(ops, link.Read(clientv3.OpGet(r.entry.entry.Session.Key, clientv3.WithKeysOnly())))
}

// stateIn reads the answers to readOps.
func (r *reading) stateIn(response *pb.TxnResponse) (*queueState, error) {
	last := len(response.Responses) - 1
	st, err := protocol.ReadState(response.Responses[:last], response.Header.Revision)
	if err != nil {
		return nil, err
	}
	if st.Lock == nil && r.entry.turn != nil {
		st.Lock = st.HoldsBack(r.entry.turn.asLock())
	}
	st.Other = nil // else the Enqueue has compared it, and no claim passes a place
	return &queueState{State: st, vouched: protocol.First(response.Responses[last]) != nil}, nil
}

// entryBefore is the last place before the own one; "" = it is first. Where many wait, line does
// not have it, and it is read.
func (r *reading) entryBefore(life context.Context, line *pb.ResponseOp) (string, error) {
	if before, known := protocol.Before(line, r.entry.entry.Revision); known {
		return before, nil
	}
	last := link.Read(clientv3.OpGet(r.entry.etcdKeys().Queue,
		append(clientv3.WithLastCreate(), clientv3.WithMaxCreateRev(r.entry.entry.Revision-1),
			clientv3.WithKeysOnly())...))
	response, err := r.entry.options.Pool.Commit(life, r.entry.options.Pool.Attempt, nil, []protocol.Op{last})
	if err != nil {
		return "", err
	}
	kv := protocol.First(response.Responses[0])
	if kv == nil {
		return "", nil
	}
	return string(kv.Key), nil
}

// readAfterGone reads what has become of a place that has gone at a revision, from whichever member
// answers: one that knows of that revision knows all that was written with it, and what came later
// is heard of as ever. Asking all of them is to wait for what etcd is writing. Nil: that member is
// behind, or does not answer.
func (r *reading) readAfterGone(life context.Context, revision int64) *queueState {
	response, err := r.entry.options.Pool.Commit(life, r.entry.options.Pool.Attempt, nil,
		protocol.FromAnyMember(r.readOps(false)))
	if err != nil || response.Header.Revision < revision {
		return nil
	}
	at, err := r.stateIn(response)
	if err != nil {
		return nil
	}
	return at
}
