package etcdlock

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// executionState is how things stand around one execution, read at one revision.
type executionState struct {
	*protocol.State
	id idem.ExecutionID

	scope      idem.Scope
	keys       protocol.Keys    // with the slots of its lock; with A, where it runs: what proves its owner alive; and with C, where a process runs it
	h          int64            // the mod revision of its hold, 0 = it is not held, or dead
	lease      clientv3.LeaseID // of that hold
	duplicates int64
	// uncarried: it is parked in its lock, and its process is gone, as far as this process knows.
	uncarried bool
}

// stateOf reads how things stand around an execution whose scope is known. The lock says whether it is dead, as far as this process knows, and
// until when it is held. The error is idem.ErrStoreUnavailable.
func (s *Control) stateOf(ctx context.Context, id idem.ExecutionID, scope idem.Scope) (*executionState, error) {
	k := s.layout.Keys(&idem.Lock{Entry: idem.Entry{Execution: id, Scope: scope}})
	answers, revision, err := s.readAt(ctx, append(protocol.LockRecordAndQueue(k), link.Read(clientv3.OpGet(k.H)), link.Read(s.readCounts(id))))
	if err != nil {
		return nil, unavailable(err)
	}
	st, err := protocol.ReadState(answers, revision)
	if err != nil {
		return nil, unavailable(err)
	}
	at := &executionState{State: st, id: id, scope: scope, keys: k}
	at.duplicates = s.duplicates.of(id, answers[readCopies].GetResponseRange().Kvs)
	if st.Lock != nil {
		at.keys.Slots, at.keys.A = s.layout.SlotsOf(st.Lock), s.layout.Alive(st.Lock.Alive)
	}
	if !at.Runs(id) {
		return at, nil
	}
	at.keys.C = s.layout.Cancel(st.Lock.Alive, id)
	gone := false
	switch hold := protocol.First(answers[readHold]); {
	case !protocol.IsHold(st.Lock.Alive):
		gone = !s.live.has(st.Lock.Alive)
	case hold == nil:
		gone = true
	default:
		at.h, at.lease = hold.ModRevision, clientv3.LeaseID(hold.Lease)
		st.Lock.HoldUntil, _ = protocol.DecodeHold(hold.Value) // for people only
	}
	if gone && (st.Lock.Alive == "" || !s.holds(id)) { // what was put down is nobody's, also where this process is about to hear of it
		at.uncarried, st.Lock.Dead = parked(st.Lock), !parked(st.Lock)
	}
	return at, nil
}

// Where stateOf finds more than lockRecordAndQueue reads.
const (
	readHold   = protocol.ReadLine + 1
	readCopies = protocol.ReadLine + 2
)

// found is what people see of it. The error is idem.ErrNoExecution, or idem.ErrStoreUnavailable where a value cannot be read.
func (at *executionState) found() (*idem.Found, error) {
	f := &idem.Found{Revision: at.Revision, Duplicates: at.duplicates}
	switch {
	case at.Runs(at.id):
		f.Lock = at.Lock
	case at.Waits(at.id):
		f.Lock, f.Place = at.Copied, true
	case at.Ended(at.id) != nil:
		f.Record = at.Record
	default:
		if f.Short, f.Later = at.earlier(); f.Short == nil && at.Unread != nil {
			return nil, unavailable(at.Unread)
		}
		if f.Short == nil {
			return nil, idem.ErrNoExecution
		}
		f.ShortOf = at.scope
	}
	return f, nil
}

// earlier is the execution in short, where its event has run again since, and what knows of it.
func (at *executionState) earlier() (*idem.Attempt, *idem.Entry) {
	for _, l := range []*idem.Lock{at.Lock, at.Copied, at.Other} {
		if l != nil {
			if a := short(l.Earlier, at.id); a != nil {
				return a, &l.Entry
			}
		}
	}
	if at.Record != nil {
		if a := short(at.Record.Earlier, at.id); a != nil {
			return a, &at.Record.Entry
		}
	}
	return nil, nil
}

// read asks etcd for several things at one revision. It repeats until there is an answer; the error is the context's, or that the revision asked
// for is compacted.
func (s *core) read(ctx context.Context, ops ...clientv3.Op) (answers []*pb.ResponseOp, revision int64, err error) {
	reads := make(protocol.Writes, len(ops))
	for i, op := range ops {
		reads[i] = link.Read(op)
	}
	return s.readAt(ctx, reads)
}

// readAt is a read of what the table reads.
func (s *core) readAt(ctx context.Context, reads protocol.Writes) (answers []*pb.ResponseOp, revision int64, err error) {
	for pause := link.NewBackoff(); ; {
		response, err := s.pool.Commit(ctx, link.AttemptTimeout, nil, reads)
		if err == nil {
			return response.Responses, response.Header.Revision, nil
		}
		if !errors.Is(err, rpctypes.ErrCompacted) && !errors.Is(err, rpctypes.ErrTooManyOps) {
			err = pause.Wait(ctx)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read: %w", err)
		}
	}
}

// stateIn reads the state from the answers of a transaction that was not applied.
func stateIn(refused commit.Reply) (*protocol.State, error) {
	return protocol.ReadState(refused.Responses, refused.Revision)
}

// look reads how things stand now. It repeats until there is an answer; the error is the context's or about an unreadable value.
func (s *core) look(ctx context.Context, k protocol.Keys) (*protocol.State, error) {
	answers, revision, err := s.readAt(ctx, protocol.LockRecordQueueAndMark(k))
	if err != nil {
		return nil, fmt.Errorf("lock and record: %w", err)
	}
	st, err := protocol.ReadState(answers, revision)
	if err == nil && k.M != "" {
		st.Mark = protocol.First(answers[len(answers)-1])
	}
	return st, err
}
