package protocol

import (
	"fmt"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

// State is the state around an execution, as a refused transaction or a read found it at one
// revision.
type State struct {
	Lock   *idem.Lock   // nil = free
	Other  *idem.Lock   // the lock that a duplicate under another strategy would have; nil = free, or not read
	Record *idem.Record // nil = none, or one that cannot be read
	Writer string       // which Store wrote the record
	Prev   int64        // the record's mod revision, 0 = none
	// why the record cannot be read; it does not matter to a caller that only needs the lock
	Unread        error
	Head          int64            // create revision of the head of the queue; 0 = the queue is empty, or not read
	Candidates    Candidates       // entries that may be handed the lock, from the head on, as far as was read
	Place         int64            // create revision of the event's own entry; 0 = none
	Copied        *idem.Lock       // the execution in that entry
	HighWaterMark *mvccpb.KeyValue // the high-water mark of its scope; nil = none, or not read

	Revision int64 // of the store
}

// ReadState decodes the answers of one of the reads in compares.go; the head of the queue, and the
// other lock, are known after LockRecordAndQueue only.
func ReadState(answers []*pb.ResponseOp, revision int64) (st *State, err error) {
	st = &State{Revision: revision}
	if kv := First(answers[ReadLock]); kv != nil {
		if st.Lock, err = LockAt(kv); err != nil {
			return nil, err
		}
	}
	if kv := First(answers[readRecord]); kv != nil {
		st.Prev = kv.ModRevision
		r, writer, err := DecodeRecord(kv)
		if err != nil {
			st.Unread = fmt.Errorf("%q: %w", kv.Key, err)
		} else {
			r.Revision = kv.ModRevision
			st.Record, st.Writer = r, writer
		}
	}
	if len(answers) > readOther {
		if kv := First(answers[readOther]); kv != nil {
			if st.Other, err = LockAt(kv); err != nil {
				return nil, err
			}
		}
	}
	if len(answers) > ReadCandidates {
		if kv := First(answers[ReadCandidates]); kv != nil {
			st.Head = kv.CreateRevision
		}
		st.Candidates = CandidatesAt(answers[ReadCandidates], revision)
	}
	if kv := First(answers[readPlace]); kv != nil {
		l, err := DecodeLock(kv.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
		st.Place, st.Copied = kv.CreateRevision, l
	}
	return st, nil
}

// First returns the first key of an answer; nil if there is none.
func First(answer *pb.ResponseOp) *mvccpb.KeyValue {
	if kvs := answer.GetResponseRange().Kvs; len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

// HighWaterMarkIn returns the mark in the answers of a transaction that took a lock; nil = there is
// none.
func HighWaterMarkIn(k Keys, won []*pb.ResponseOp) *mvccpb.KeyValue {
	if k.HighWaterMark == "" {
		return nil
	}
	// its writes are before and behind, and the first waiter is read before
	for _, answer := range slices.Backward(won) {
		if answer.GetResponseRange() != nil {
			return First(answer)
		}
	}
	return nil
}

// Runs reports whether id has the lock. A cooling lock has no owner: its execution has ended.
func (st *State) Runs(id idem.ExecutionID) bool {
	return st.Lock != nil && st.Lock.Execution == id && !st.Lock.Cooling
}

// LockRevision returns the lock's revision, 0 = it is free.
func (st *State) LockRevision() int64 {
	if st.Lock == nil {
		return 0
	}
	return st.Lock.Revision
}

// OtherRevision returns the other lock's revision, 0 = it is free.
func (st *State) OtherRevision() int64 {
	if st.Other == nil {
		return 0
	}
	return st.Other.Revision
}

// CopyInOther reports whether the other lock is that of this event, also while it cools. Otherwise
// it is not in the way.
func (st *State) CopyInOther(event idem.Key) bool {
	return st.Other != nil && st.Other.Scope.Key == event
}

// HoldsBack returns a client's lock of the workflow, which is taken over the lock API or with a
// Locker, if l is to have a lock of its event alone because its route has a lock.limit; nil = none
// exists. A lock of another event, which exists while an update takes a route to such a limit,
// holds back nothing.
func (st *State) HoldsBack(l *idem.Lock) *idem.Lock {
	if st.Other == nil || st.Other.Route != "" || !l.OwnLimit() {
		return nil
	}
	return st.Other
}

// CopyRuns returns the lock that an execution of this event has, alive or dead; nil = none.
func (st *State) CopyRuns(event idem.Key) *idem.Lock {
	for _, l := range []*idem.Lock{st.Lock, st.Other} {
		if l != nil && l.Scope.Key == event && !l.Cooling {
			return l
		}
	}
	return nil
}

// Waits reports whether id has the event's queue entry.
func (st *State) Waits(id idem.ExecutionID) bool {
	return st.Copied != nil && st.Copied.Execution == id
}

// Obstacle returns what the Guard decides on about this event. The lock of a duplicate has
// precedence over its workflow's lock.
func (st *State) Obstacle(event idem.Key) *idem.Obstacle {
	lock := st.Lock
	if st.CopyInOther(event) {
		lock = st.Other
	}
	return &idem.Obstacle{Lock: lock, Record: st.Record, RecordRevision: st.Prev, Queue: st.Head != 0 || st.Place != 0,
		Waiting: st.Copied}
}

// Ended returns the record of how id ended, if it still exists.
func (st *State) Ended(id idem.ExecutionID) *idem.Record {
	if st.Record != nil && st.Record.Execution == id {
		return st.Record
	}
	return nil
}
