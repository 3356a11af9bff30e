package etcdlock

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

// state is how things stand around an execution, as a refused transaction or a read found them at one revision.
type state struct {
	lock   *idem.Lock   // nil = free
	record *idem.Record // nil = none, or one that cannot be read
	writer string       // which Store wrote the record
	prev   int64        // the record's mod revision, 0 = none
	unread error        // why the record cannot be read; whoever only asks for the lock need not care
	head   int64        // create revision of the first place in the queue; 0 = nobody waits
	place  int64        // create revision of the event's own place; 0 = none
	copied *idem.Lock   // who is in that place

	revision int64 // of the store
}

// readState takes the answers of one of the reads in table.go; who is first in the queue is known after lockRecordAndQueue only.
func readState(answers []*pb.ResponseOp, revision int64) (*state, error) {
	st := &state{revision: revision}
	if kv := first(answers[readLock]); kv != nil {
		l, err := decodeLock(kv.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
		l.Token, l.Revision = kv.CreateRevision, kv.ModRevision
		st.lock = l
	}
	if kv := first(answers[readRecord]); kv != nil {
		st.prev = kv.ModRevision
		r, writer, err := decodeRecord(kv.Value)
		if err != nil {
			st.unread = fmt.Errorf("%s: %w", kv.Key, err)
		} else {
			r.Revision = kv.ModRevision
			st.record, st.writer = r, writer
		}
	}
	if len(answers) > readHead {
		if kv := first(answers[readHead]); kv != nil {
			st.head = kv.CreateRevision
		}
	}
	if kv := first(answers[readPlace]); kv != nil {
		l, err := decodeLock(kv.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
		st.place, st.copied = kv.CreateRevision, l
	}
	return st, nil
}

func first(answer *pb.ResponseOp) *mvccpb.KeyValue {
	if kvs := answer.GetResponseRange().Kvs; len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

// refused reads the answers of a transaction that was not applied.
func (r reply) refused() (*state, error) { return readState(r.Responses, r.revision) }

// runs reports whether id has the lock. A cooling lock is nobody's: its execution has ended.
func (st *state) runs(id idem.ExecutionID) bool {
	return st.lock != nil && st.lock.Execution == id && !st.lock.Cooling
}

// token is the lock's, 0 = it is free.
func (st *state) token() int64 {
	if st.lock == nil {
		return 0
	}
	return st.lock.Token
}

// copyRuns reports whether an execution of this event has the lock, alive or dead.
func (st *state) copyRuns(event idem.Key) bool {
	return st.lock != nil && st.lock.Scope.Key == event && !st.lock.Cooling
}

// waits reports whether id is in the event's place in the queue.
func (st *state) waits(id idem.ExecutionID) bool {
	return st.copied != nil && st.copied.Execution == id
}

// seen is what the Guard decides on.
func (st *state) seen() *idem.Seen {
	return &idem.Seen{Lock: st.lock, Record: st.record, RecordRevision: st.prev, Queue: st.head != 0 || st.place != 0, Waiting: st.copied}
}

// ended is the record of how id ended, if it is still there.
func (st *state) ended(id idem.ExecutionID) *idem.Record {
	if st.record != nil && st.record.Execution == id {
		return st.record
	}
	return nil
}

// look reads how things stand now. It repeats until there is an answer; the error is the context's or about an unreadable value.
func (s *Store) look(ctx context.Context, k keys) (*state, error) {
	answers, revision, err := s.read(ctx, lockRecordAndQueue(k)...)
	if err != nil {
		return nil, fmt.Errorf("lock and record: %w", err)
	}
	return readState(answers, revision)
}
