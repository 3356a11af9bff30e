package etcdlock

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/idem"
)

// state is how things stand around an execution, as a refused transaction or a read found them at one revision.
type state struct {
	lock   *idem.Lock   // nil = free
	record *idem.Record // nil = none
	writer string       // which Store wrote the record
	queue  bool         // somebody waits
	place  int64        // create revision of the own place in the queue; 0 = none
	alive  bool         // the alive key that was asked for is there

	revision int64 // of the store
}

// readState takes the answers of lockAndRecord or lockRecordAndAlive.
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
		r, writer, err := decodeRecord(kv.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kv.Key, err)
		}
		r.Revision = kv.ModRevision
		st.record, st.writer = r, writer
	}
	st.queue = first(answers[readQueue]) != nil
	if kv := first(answers[readPlace]); kv != nil {
		st.place = kv.CreateRevision
	}
	st.alive = len(answers) > readAlive && first(answers[readAlive]) != nil
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

func (st *state) recordRevision() int64 {
	if st.record == nil {
		return 0
	}
	return st.record.Revision
}

// runs reports whether id has the lock. A cooling lock is nobody's: its execution has ended.
func (st *state) runs(id idem.ExecutionID) bool {
	return st.lock != nil && st.lock.Execution == id && !st.lock.Cooling
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
	for pause := newBackoff(); ; {
		var response *clientv3.TxnResponse
		err := s.pool.try(ctx, attemptTimeout, func(ctx context.Context, c *clientv3.Client) (err error) {
			response, err = c.Txn(ctx).Then(lockAndRecord(k)...).Commit()
			return err
		})
		if err == nil {
			return readState(response.Responses, response.Header.Revision)
		}
		if err := pause.wait(ctx); err != nil {
			return nil, fmt.Errorf("read lock and record: %w", err)
		}
	}
}
