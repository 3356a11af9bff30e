package etcdlock

import (
	"context"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/idem"
)

// sighting is how things stand around one execution, read at one revision.
type sighting struct {
	*state
	id idem.ExecutionID

	scope      idem.Scope
	keys       keys             // with A, where it runs: what proves its owner alive; and with C, where a process runs it
	h          int64            // the mod revision of its hold, 0 = it is not held, or dead
	lease      clientv3.LeaseID // of that hold
	duplicates int64
}

// sight reads how things stand around an execution whose scope is known. The lock says whether it is dead, as far as this process knows, and
// until when it is held. The error is idem.ErrStoreUnavailable.
func (s *Store) sight(ctx context.Context, id idem.ExecutionID, scope idem.Scope) (*sighting, error) {
	k := s.keysOf(&idem.Lock{Execution: id, Scope: scope})
	answers, revision, err := s.read(ctx, append(lockRecordAndQueue(k), clientv3.OpGet(k.H), s.readCounts(id))...)
	if err != nil {
		return nil, unavailable(err)
	}
	st, err := readState(answers, revision)
	if err != nil {
		return nil, unavailable(err)
	}
	at := &sighting{state: st, id: id, scope: scope, keys: k}
	at.duplicates = s.duplicates.of(id, answers[readCopies].GetResponseRange().Kvs)
	if !at.runs(id) {
		return at, nil
	}
	at.keys.A, at.keys.C = s.layout.alive(st.lock.Alive), s.layout.cancel(st.lock.Alive, id)
	switch hold := first(answers[readHold]); {
	case !isHold(st.lock.Alive):
		st.lock.Dead = !s.holds(id) && !s.live.has(st.lock.Alive)
	case hold == nil:
		st.lock.Dead = !s.holds(id)
	default:
		at.h, at.lease = hold.ModRevision, clientv3.LeaseID(hold.Lease)
		st.lock.HoldUntil, _ = decodeHold(hold.Value) // for people only
	}
	return at, nil
}

// Where sight finds more than lockRecordAndQueue reads.
const (
	readHold   = readOther + 1
	readCopies = readOther + 2
)

// found is what people see of it. The error is idem.ErrNoExecution, or idem.ErrStoreUnavailable where a value cannot be read.
func (at *sighting) found() (*idem.Found, error) {
	f := &idem.Found{Revision: at.revision, Duplicates: at.duplicates}
	switch {
	case at.runs(at.id):
		f.Lock = at.lock
	case at.waits(at.id):
		f.Lock, f.Place = at.copied, true
	case at.ended(at.id) != nil:
		f.Record = at.record
	default:
		if f.Short = at.earlier(); f.Short == nil && at.unread != nil {
			return nil, unavailable(at.unread)
		}
		if f.Short == nil {
			return nil, idem.ErrNoExecution
		}
		f.ShortOf = at.scope
	}
	return f, nil
}

// earlier is the execution in short, where its event has run again since.
func (at *sighting) earlier() *idem.Attempt {
	for _, l := range []*idem.Lock{at.lock, at.copied, at.other} {
		if l != nil {
			if a := short(l.Earlier, at.id); a != nil {
				return a
			}
		}
	}
	if at.record != nil {
		return short(at.record.Earlier, at.id)
	}
	return nil
}

// read asks etcd for several things at one revision. It repeats until there is an answer; the error is the context's, or that the revision asked
// for is compacted.
func (s *Store) read(ctx context.Context, ops ...clientv3.Op) (answers []*pb.ResponseOp, revision int64, err error) {
	for pause := newBackoff(); ; {
		var response *clientv3.TxnResponse
		err := s.pool.try(ctx, attemptTimeout, func(ctx context.Context, c *clientv3.Client) (err error) {
			response, err = c.Txn(ctx).Then(ops...).Commit()
			return err
		})
		if err == nil {
			return response.Responses, response.Header.Revision, nil
		}
		if !errors.Is(err, rpctypes.ErrCompacted) {
			err = pause.wait(ctx)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read: %w", err)
		}
	}
}
