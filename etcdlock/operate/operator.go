package operate

import (
	"context"
	"errors"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/park"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/reap"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Options are what this package works with.
type Options struct {
	*finish.Finisher
	Tasks      *commit.Tasks       // run in the background; Store.Close waits for them
	Reader     *history.Reader     // reads executions and locks
	Duplicates *history.Duplicates // count the copies of an event
	Audits     *history.Audits     // write the audit trail
	Reaper     *reap.Reaper        // ends executions whose owner is dead
	Parked     *park.Index         // what is parked, over all processes
	Process
}

// Process is what operators ask of their process, and tell it.
type Process interface {
	// Session returns the session of this process, or why it has none.
	Session() (*session.Session, error)
	// OnEnded is called with an end that no delivery reports. It must not block. recorded is true.
	OnEnded(record *idem.Record, recorded bool)
	// Rekeep returns the stored request of one execution as that of another one, or
	// idem.ErrNoRequest.
	Rekeep(ctx context.Context, from, to idem.ExecutionID, kept idem.StoredRequest) (idem.StoredRequest, error)
	// Archived returns the request of the execution of r as that of another one, from where the
	// requests of all events of its route are kept, and how that one runs by the policy of the
	// route: its Scope, Route and Execution are not looked at. It returns idem.ErrNoRequest.
	Archived(ctx context.Context, r *idem.Record, to idem.ExecutionID) (idem.StoredRequest, *idem.ParkedEntry, error)
	// Erase deletes what is stored outside of etcd of the request of an execution, whose value etcd
	// does not have any more.
	Erase(ctx context.Context, id idem.ExecutionID, value []byte) error
}

// Operator changes what is in the ledger, for people: it ends executions and lets them run again,
// pauses, and marks what was looked at. It is safe for concurrent use.
type Operator struct{ options *Options }

// NewOperator returns an operator.
func NewOperator(o *Options) *Operator { return &Operator{o} }

// repeatUntilDone finds an execution, and has try look at it and change it until that is done.
func (op *Operator) repeatUntilDone(ctx context.Context, id idem.ExecutionID,
	try func(context.Context, *history.State) (done bool, err error)) error {
	scope, err := op.options.Reader.Scope(ctx, id)
	if err != nil {
		return err
	}
	return op.repeatIn(ctx, id, scope, try)
}

// repeatIn is repeatUntilDone for an execution whose scope is known.
func (op *Operator) repeatIn(ctx context.Context, id idem.ExecutionID, scope idem.Scope,
	try func(context.Context, *history.State) (bool, error)) error {
	return op.options.Tasks.Repeat(ctx, func(ctx context.Context) (bool, error) {
		at, err := op.options.Reader.State(ctx, id, scope)
		if err != nil {
			return false, err
		}
		done, err := try(ctx, at)
		return done || errors.Is(err, idem.ErrJobMoved), err
	})
}

// rewriteLock changes the lock of an execution to next, by a transaction with a notice that lives
// for life. If things have changed, found is nil and done false.
func (t *trail) rewriteLock(ctx context.Context, at *history.State, next *idem.Lock, life time.Duration,
	txn func(lock, notice protocol.Leased) protocol.Op) (found *idem.Found, done bool, err error) {
	value, err := protocol.EncodeLock(next)
	if err != nil {
		return nil, true, commit.Unavailable(err)
	}
	notice, err := t.options.Leases.Notice(ctx, life)
	if err != nil {
		return nil, false, err
	}
	r := commit.NewRequest(at.Keys.Lock, txn(protocol.Leased{Value: value}, notice), len(value))
	r.SharedLease = notice.Lease
	answer, applied, err := t.sendWithAudit(ctx, r)
	if !applied {
		return nil, false, err
	}
	next.Revision = answer.Revision
	return &idem.Found{Lock: next, Revision: answer.Revision, Duplicates: at.Duplicates}, true, nil
}

// endExecution moves the execution of l, which is in its lock or its queue, to record. A writer of
// its own marks the record of a caller that has to recognise it. If things have changed, found is
// nil, and answer says how, or err why that is not known.
func (t *trail) endExecution(ctx context.Context, at *history.State, l *idem.Lock, record *idem.Record, writer string,
	txn finish.Ending) (found *idem.Found, answer commit.Reply, err error) {
	var request []byte
	if l.Parked != nil && !record.RequestKept {
		if request, err = t.requestOf(ctx, at.Keys); err != nil {
			return nil, answer, err
		}
	}
	r, err := t.options.Request(ctx, &finish.Ended{Lock: l, RestsSince: l.Revision, Record: record, Writer: writer},
		txn,
		at.Keys)
	if err != nil {
		return nil, answer, err
	}
	answer, applied, err := t.sendWithAudit(ctx, r)
	if !applied {
		return nil, answer, err
	}
	_ = t.eraseRequest(ctx, record.Execution, request) // else it is swept
	record.Revision = answer.Revision
	if at.Copied != l || l.Parked != nil { // else a delivery waits to report it
		t.options.OnEnded(record, true)
	}
	return &idem.Found{Record: record, Revision: answer.Revision, Duplicates: at.Duplicates}, answer, nil
}

// requestOf returns what etcd has of the stored request of an execution; nil = nothing. It returns
// the error of ctx.
func (t *trail) requestOf(ctx context.Context, k protocol.Keys) ([]byte, error) {
	kvs, _, err := t.options.Pool.Keys(ctx, k.Request)
	if err != nil || len(kvs) == 0 {
		return nil, err
	}
	return kvs[0].Value, nil
}

// eraseRequest deletes what is stored outside of etcd for a request that is gone from etcd; nil =
// there is none.
func (t *trail) eraseRequest(ctx context.Context, id idem.ExecutionID, request []byte) error {
	if request == nil {
		return nil
	}
	return t.options.Erase(ctx, id, request)
}
