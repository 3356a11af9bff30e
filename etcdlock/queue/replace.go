package queue

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// How an execution replaces the one that waits, under strategy latest. It reads the queue, and the
// transaction that takes its place compares what it saw. An execution whose turn it is, because the
// lock is free, is not replaced: in a flood of events none would run.

// newestRead bounds how many places of a queue are read, the newest first. Under strategy latest
// alone there are two at most.
const newestRead = 8

// replacing is one execution on its way into a queue in which it may replace another one.
type replacing struct {
	options *Options
	lock    *idem.Lock // what takes the place
	quiet   idem.Series
	seen    protocol.Latest
	over    *idem.Lock // what it replaces; nil = nothing
	record  *idem.Record
	lease   clientv3.LeaseID // of the record
	// forgets is how often a lease was missing.
	forgets int
}

// newReplacing is nil where l has another strategy.
func newReplacing(o *Options, l *idem.Lock) *replacing {
	if l.Latest == nil {
		return nil
	}
	own := *l // a lock of another strategy stays where it is
	return &replacing{options: o, lock: &own, quiet: *l.Latest}
}

// readQueue reads the queue. behind is the token of the lock that stands in the way, 0 = it is
// free. It returns the waiter that is newer than this execution, by its order: then this one does
// not wait.
func (r *replacing) readQueue(ctx context.Context, k protocol.Keys, behind int64) (newer *idem.Lock, err error) {
	newest := append(clientv3.WithLastCreate(), clientv3.WithLimit(newestRead))
	answers, _, err := r.options.Pool.Read(ctx, clientv3.OpGet(k.Queue, newest...))
	if err != nil {
		return nil, err
	}
	queue := answers[0].GetResponseRange()
	r.over, r.seen = nil, protocol.Latest{}
	for i, kv := range queue.Kvs {
		r.seen.Last = max(r.seen.Last, kv.CreateRevision)
		l, err := protocol.LockAt(kv)
		if err != nil {
			return nil, err
		}
		switch same, older := r.compareOrder(l); {
		case !same || r.over != nil:
		case older:
			return l, nil
		case behind == 0 && int64(i) == queue.Count-1 && !r.isResting(l): // it is its turn
		default:
			r.over, r.seen.Entry = l, l.Revision
		}
	}
	return nil, nil
}

// compareOrder reports whether one of the two is to replace the other, and whether the execution is
// the older one. Where their order does not tell, the later one is newer.
func (r *replacing) compareOrder(waits *idem.Lock) (same, older bool) {
	mine, theirs := r.lock.Order, waits.Order
	switch {
	case waits.Latest == nil || waits.Scope.Key == r.lock.Scope.Key:
		return false, false
	case mine == nil || theirs == nil:
		return true, false
	case mine.ScopeKey != theirs.ScopeKey: // they are about different things
		return false, false
	}
	at, known := idem.ParsePosition(mine.At)
	than, known2 := idem.ParsePosition(theirs.At)
	return true, known && known2 && at.Before(than)
}

// isResting reports whether the first waiter does not take the lock yet, although it is free.
func (r *replacing) isResting(l *idem.Lock) bool {
	return l.Latest.Rests(r.options.Clock.Now()) > 0 || r.options.View.Pauses.Of(l.Route, l.Scope.Workflow) != nil
}

// prepareWrite makes what the transaction needs, as far as the look found it, and the place's
// value.
func (r *replacing) prepareWrite(ctx context.Context) (value []byte, err error) {
	now := r.options.Clock.Now()
	series := idem.Series{Since: now.UTC().Round(time.Millisecond)}
	r.seen.Over, r.lease, r.record = nil, 0, nil
	if r.over != nil {
		series.Since, series.Replaced = r.over.Latest.Since, r.over.Latest.Replaced+1
		if err := r.endReplaced(ctx, now); err != nil {
			return nil, err
		}
	}
	if r.quiet.Quiet > 0 {
		series.NotBefore = now.Add(r.quiet.Quiet).UTC().Round(time.Millisecond)
		if most := series.Since.Add(r.quiet.MaxWait); most.Before(series.NotBefore) {
			series.NotBefore = most
		}
	}
	r.lock.Latest = &series
	return protocol.EncodeLock(r.lock)
}

// endReplaced makes the record of the replaced execution.
func (r *replacing) endReplaced(ctx context.Context, now time.Time) (err error) {
	k := r.options.Layout.Keys(r.over)
	r.over.Token = 0 // it never had the lock
	r.seen.Over, r.seen.Parked = &k, r.over.Parked != nil
	r.record = protocol.RecordOf(r.over, idem.End{Status: idem.Aborted, Outcome: idem.NotExecuted, FinishedAt: now,
		Abort: &idem.Cancel{
			By: finish.Policy, Reason: "superseded: " + string(r.lock.Execution) + " came while it waited", At: now,
			Final: true, Successor: r.lock.Execution,
		}})
	if r.seen.Record.Value, err = protocol.EncodeRecord(r.record, r.options.Writer); err != nil {
		return err
	}
	row := protocol.RowOf(r.record)
	r.lease, err = r.options.Leases.Take(ctx, r.over.Retention, protocol.KindRecords, &row)
	r.seen.Record.Lease = r.lease
	return err
}

// reportEnd is after the transaction was applied. Of one that waited with its sender, that delivery
// tells.
func (r *replacing) reportEnd() {
	if r != nil && r.seen.Parked {
		r.options.Own.OnEnded(r.record, true)
	}
}

// dropMissingLease reports whether the lease of the record was missing, and lets the next attempt
// take another one.
func (r *replacing) dropMissingLease(err error) bool {
	if r == nil || r.lease == 0 || !errors.Is(err, rpctypes.ErrLeaseNotFound) || r.forgets == maxForgets {
		return false
	}
	r.forgets++ // it may be the session's, too, which does not come back
	r.options.Leases.DropIfGone(r.lease, err)
	return true
}

const maxForgets = 3

// lookAround is before the first attempt, and when the lock has changed hands. What it returns is
// why the execution may not wait.
func (e *enqueuing) lookAround(life context.Context, behind int64) (*idem.Obstacle, error) {
	if e.replacing == nil {
		return nil, nil
	}
	newer, err := e.replacing.readQueue(life, e.entry.etcdKeys(), behind)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	return e.olderThan(life, newer)
}

// queueMoved looks again after a refusal that nothing else explains: true where it was about the
// queue.
func (e *enqueuing) queueMoved(life context.Context, behind int64) (moved bool, _ *idem.Obstacle, _ error) {
	if e.replacing == nil {
		return false, nil, nil
	}
	last, q := e.replacing.seen.Last, e.replacing.seen.Entry
	seen, err := e.lookAround(life, behind)
	return last != e.replacing.seen.Last || q != e.replacing.seen.Entry, seen, err
}

// olderThan is how things stand for an execution that is older than one that waits.
func (e *enqueuing) olderThan(life context.Context, newer *idem.Lock) (*idem.Obstacle, error) {
	if newer == nil {
		return nil, nil
	}
	st, err := history.Look(life, e.entry.options.Pool, e.entry.etcdKeys())
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	seen, err := e.inTheWay(life, st)
	if seen != nil {
		seen.Newer = newer
	}
	return seen, err
}

// addReplacement adds to the transaction that takes a place what it does under strategy latest.
// value is the place's without that.
func (e *enqueuing) addReplacement(life context.Context, k protocol.Keys, value []byte) (protocol.Keys, []byte, error) {
	r := e.replacing
	if r == nil {
		return k, value, nil
	}
	value, err := r.prepareWrite(life)
	if err != nil {
		return k, nil, err
	}
	e.entry.series = nil
	if s := r.lock.Latest; !s.NotBefore.IsZero() {
		e.entry.series = s
	}
	seen := r.seen // a request that is on its way keeps what it was made of
	k.Latest = &seen
	return k, value, nil
}

// restLeft is how long the place leaves the lock alone, although that is free: something newer may
// come. 0 = it may take it.
func (p *Entry) restLeft() time.Duration {
	if p.series == nil {
		return 0
	}
	return p.series.Rests(p.options.Clock.Now())
}
