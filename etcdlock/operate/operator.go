package operate

import (
	"context"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/park"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/reap"
	"hooklock/idem"
)

// Options are what this package works with.
type Options struct {
	*finish.Finisher
	Sender     *commit.Sender
	Tasks      *commit.Tasks
	Reader     *history.Reader
	Duplicates *history.Duplicates
	Reaper     *reap.Reaper
	Parked     *park.Index

	// Ended is called with an end that no delivery reports. It must not block.
	Ended func(*idem.Record)
	// Rekeep returns the stored request of one execution as that of another one, or idem.ErrNoRequest; nil = it is taken as it is.
	Rekeep func(ctx context.Context, from, to idem.ExecutionID, value []byte) (idem.Kept, error)
}

// Operator changes what is in the ledger, for people: it ends executions and lets them run again, pauses, and marks what was looked at. It is safe for
// concurrent use.
type Operator struct{ o *Options }

// NewOperator returns an operator.
func NewOperator(o *Options) *Operator { return &Operator{o} }

// repeat finds an execution, and has try look at it and change it until that is done.
func (op *Operator) repeat(ctx context.Context, id idem.ExecutionID, try func(context.Context, *history.State) (done bool, err error)) error {
	scope, err := op.o.Reader.Scope(ctx, id)
	if err != nil {
		return err
	}
	return op.repeatIn(ctx, id, scope, try)
}

// repeatIn is repeat for an execution whose scope is known.
func (op *Operator) repeatIn(ctx context.Context, id idem.ExecutionID, scope idem.Scope, try func(context.Context, *history.State) (bool, error)) error {
	return op.o.Tasks.Repeat(ctx, func(ctx context.Context) (bool, error) {
		at, err := op.o.Reader.State(ctx, id, scope)
		if err != nil {
			return false, err
		}
		return try(ctx, at)
	})
}

// change sends a transaction that compares what it changes. If it is refused, or its answer is lost, the caller reads again.
func (op *Operator) change(ctx context.Context, r *commit.Request) (answer commit.Reply, applied bool, err error) {
	answer = op.o.Sender.Do(ctx, r)
	op.o.Leases.DropIfGone(r.SharedLease, answer.Err)
	return answer, answer.Err == nil && answer.Succeeded, answer.Err
}

// rewrite changes the lock of an execution to next, by a transaction with a notice that lives for life. If things have changed, found is nil and done false.
func (op *Operator) rewrite(ctx context.Context, at *history.State, next *idem.Lock, life time.Duration, txn func(lock, notice protocol.Leased) protocol.Op) (found *idem.Found, done bool, err error) {
	value, err := protocol.EncodeLock(next)
	if err != nil {
		return nil, true, commit.Unavailable(err)
	}
	notice, err := op.o.Leases.Notice(ctx, life)
	if err != nil {
		return nil, false, err
	}
	r := commit.NewRequest(at.Keys.L, txn(protocol.Leased{Value: value}, notice), len(value))
	r.SharedLease = notice.Lease
	answer, applied, err := op.change(ctx, r)
	if !applied {
		return nil, false, err
	}
	next.Revision = answer.Revision
	return &idem.Found{Lock: next, Revision: answer.Revision, Duplicates: at.Duplicates}, true, nil
}

// end moves the execution of l, which is in its lock or its queue, to record. A writer of its own marks the record of a caller that has to recognise it.
// If things have changed, found is nil, and answer says how, or err why that is not known.
func (op *Operator) end(ctx context.Context, at *history.State, l *idem.Lock, record *idem.Record, writer string, txn finish.Ending) (found *idem.Found, answer commit.Reply, err error) {
	r, err := op.o.Request(ctx, l, record, writer, txn, at.Keys)
	if err != nil {
		return nil, answer, err
	}
	answer, applied, err := op.change(ctx, r)
	if !applied {
		return nil, answer, err
	}
	record.Revision = answer.Revision
	if at.Copied != l || l.Parked != nil { // else a delivery waits to report it
		op.o.Ended(record)
	}
	return &idem.Found{Record: record, Revision: answer.Revision, Duplicates: at.Duplicates}, answer, nil
}
