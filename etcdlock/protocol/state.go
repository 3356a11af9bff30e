package protocol

import (
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

// State is how things stand around an execution, as a refused transaction or a read found them at one revision.
type State struct {
	Lock   *idem.Lock       // nil = free
	Other  *idem.Lock       // the one that a copy under another strategy would have; nil = free, or not read
	Record *idem.Record     // nil = none, or one that cannot be read
	Writer string           // which Store wrote the record
	Prev   int64            // the record's mod revision, 0 = none
	Unread error            // why the record cannot be read; whoever only asks for the lock need not care
	Head   int64            // create revision of the first place in the queue; 0 = nobody waits, or not read
	Line   Line             // who may be handed the lock, from that place on, as far as was read
	Place  int64            // create revision of the event's own place; 0 = none
	Copied *idem.Lock       // who is in that place
	Mark   *mvccpb.KeyValue // the newest of its scope that went through; nil = none, or not read

	Revision int64 // of the store
}

// ReadState takes the answers of one of the reads in table.go; who is first in the queue, and the other lock, are known after
// lockRecordAndQueue only.
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
	if len(answers) > ReadLine {
		if kv := First(answers[ReadLine]); kv != nil {
			st.Head = kv.CreateRevision
		}
		st.Line = LineAt(answers[ReadLine], revision)
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

// First is the first key of an answer; nil where there is none.
func First(answer *pb.ResponseOp) *mvccpb.KeyValue {
	if kvs := answer.GetResponseRange().Kvs; len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

// Runs reports whether id has the lock. A cooling lock is nobody's: its execution has ended.
func (st *State) Runs(id idem.ExecutionID) bool {
	return st.Lock != nil && st.Lock.Execution == id && !st.Lock.Cooling
}

// LockRevision is the lock's, 0 = it is free.
func (st *State) LockRevision() int64 {
	if st.Lock == nil {
		return 0
	}
	return st.Lock.Revision
}

// OtherRevision is the other lock's, 0 = it is free.
func (st *State) OtherRevision() int64 {
	if st.Other == nil {
		return 0
	}
	return st.Other.Revision
}

// CopyInOther reports whether the other lock is that of this event, also where it cools. Otherwise nobody need care for it.
func (st *State) CopyInOther(event idem.Key) bool {
	return st.Other != nil && st.Other.Scope.Key == event
}

// HoldsBack is a client's lock of the workflow, which is taken over the lock API or with a Locker, where l is to have a lock of its event alone because its
// route has a lock.limit; nil = none is there. A lock of another event, which is there while an update takes a route to such a limit, holds nobody back.
func (st *State) HoldsBack(l *idem.Lock) *idem.Lock {
	if st.Other == nil || st.Other.Route != "" || !l.OwnLimit() {
		return nil
	}
	return st.Other
}

// CopyRuns is the lock that an execution of this event has, alive or dead; nil = none.
func (st *State) CopyRuns(event idem.Key) *idem.Lock {
	for _, l := range []*idem.Lock{st.Lock, st.Other} {
		if l != nil && l.Scope.Key == event && !l.Cooling {
			return l
		}
	}
	return nil
}

// Waits reports whether id is in the event's place in the queue.
func (st *State) Waits(id idem.ExecutionID) bool {
	return st.Copied != nil && st.Copied.Execution == id
}

// Seen is what the Guard decides on about this event. What a copy of it has comes before its workflow's lock.
func (st *State) Seen(event idem.Key) *idem.Seen {
	lock := st.Lock
	if st.CopyInOther(event) {
		lock = st.Other
	}
	return &idem.Seen{Lock: lock, Record: st.Record, RecordRevision: st.Prev, Queue: st.Head != 0 || st.Place != 0, Waiting: st.Copied}
}

// Ended is the record of how id ended, if it is still there.
func (st *State) Ended(id idem.ExecutionID) *idem.Record {
	if st.Record != nil && st.Record.Execution == id {
		return st.Record
	}
	return nil
}
