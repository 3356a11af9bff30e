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
	other  *idem.Lock   // the one that a copy under another strategy would have; nil = free, or not read
	record *idem.Record // nil = none, or one that cannot be read
	writer string       // which Store wrote the record
	prev   int64        // the record's mod revision, 0 = none
	unread error        // why the record cannot be read; whoever only asks for the lock need not care
	head   int64        // create revision of the first place in the queue; 0 = nobody waits
	place  int64        // create revision of the event's own place; 0 = none
	copied *idem.Lock   // who is in that place

	revision int64 // of the store
}

// readState takes the answers of one of the reads in table.go; who is first in the queue, and the other lock, are known after
// lockRecordAndQueue only.
func readState(answers []*pb.ResponseOp, revision int64) (st *state, err error) {
	st = &state{revision: revision}
	if kv := first(answers[readLock]); kv != nil {
		if st.lock, err = lockAt(kv); err != nil {
			return nil, err
		}
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
	if len(answers) > readOther {
		if kv := first(answers[readHead]); kv != nil {
			st.head = kv.CreateRevision
		}
		if kv := first(answers[readOther]); kv != nil {
			if st.other, err = lockAt(kv); err != nil {
				return nil, err
			}
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

// otherRevision is the other lock's, 0 = it is free.
func (st *state) otherRevision() int64 {
	if st.other == nil {
		return 0
	}
	return st.other.Revision
}

// copyInOther reports whether the other lock is that of this event, also where it cools. Otherwise nobody need care for it.
func (st *state) copyInOther(event idem.Key) bool {
	return st.other != nil && st.other.Scope.Key == event
}

// copyRuns is the lock that an execution of this event has, alive or dead; nil = none.
func (st *state) copyRuns(event idem.Key) *idem.Lock {
	for _, l := range []*idem.Lock{st.lock, st.other} {
		if l != nil && l.Scope.Key == event && !l.Cooling {
			return l
		}
	}
	return nil
}

// waits reports whether id is in the event's place in the queue.
func (st *state) waits(id idem.ExecutionID) bool {
	return st.copied != nil && st.copied.Execution == id
}

// seen is what the Guard decides on about this event. What a copy of it has comes before its workflow's lock.
func (st *state) seen(event idem.Key) *idem.Seen {
	lock := st.lock
	if st.copyInOther(event) {
		lock = st.other
	}
	return &idem.Seen{Lock: lock, Record: st.record, RecordRevision: st.prev, Queue: st.head != 0 || st.place != 0, Waiting: st.copied}
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
