package finish

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// The codes of executions that another process or an operator had to end.
const (
	CodeHoldExpired = "hold_expired"                // its hold was not renewed
	CodeLockLost    = string(idem.DecisionLockLost) // its process is dead
)

// Policy is the name under which an execution is aborted at its max_duration, or because a newer
// one replaces it.
const Policy = "policy"

// Finisher makes the transactions that end executions. It is safe for concurrent use.
type Finisher struct {
	Pool   *link.Pool      // reads and watches etcd
	Leases *commit.Leases  // the shared leases of records
	Layout protocol.Layout // spells the keys
	Clock  link.Clock      // measures elapsed time
	Sender *commit.Sender  // sends the transactions
}

// Ending is a transaction that takes an execution out of its lock. cool is nil if the lock is free
// afterwards.
type Ending func(record protocol.Leased, cool *protocol.Cooling) protocol.Op

// Ended is an execution that ends.
type Ended struct {
	Lock *idem.Lock // as its owner saw it last
	// RestsSince is a revision that says of a parked execution that its latest try has ended; 0:
	// none does.
	RestsSince int64
	Record     *idem.Record
	// Writer marks the record: a caller that has to recognise its own record gives a writer of its
	// own.
	Writer string
}

// Request returns a request with the transaction that ends the execution.
func (f *Finisher) Request(ctx context.Context, e *Ended, txn Ending, k protocol.Keys) (*commit.Request, error) {
	l := e.Lock
	record, err := f.recordWithQuestion(ctx, e)
	if err != nil {
		return nil, err
	}
	var cool *protocol.Cooling
	size := len(record.Value)
	if record.Apart != nil {
		size += len(record.Apart.Value)
	}
	if delay := f.releaseDelay(e); delay > 0 {
		if cool, err = f.coolDown(ctx, l, delay); err != nil {
			return nil, err
		}
		size += len(cool.Lock.Value) + len(cool.Hold.Value)
	}
	request := commit.NewRequest(k.Lock, txn(record, cool), size).AddSlots(k)
	if request.SharedLease = record.Lease; record.Apart != nil {
		request.AnswerLease = record.Apart.Lease
	}
	if cool != nil {
		request.OwnLeases, request.Unbatched = []clientv3.LeaseID{cool.Hold.Lease}, true
	}
	request.EndedLease = clientv3.LeaseID(l.DeadlineLease)
	return request, nil
}

// Reduce leaves out of r and of l, with which it is written, what they can do without. refusals is
// how often etcd has refused them for their size: after the first refusal duplicates get the status
// alone of the answer, after the next ones what only tells of the execution is missing too. It
// changes r, and returns l or a copy of it.
func Reduce(refusals int, l *idem.Lock, r *idem.Record) *idem.Lock {
	if refusals > 0 && r.Answer != nil {
		r.Answer = &idem.Answer{Status: r.Answer.Status, Bytes: r.Answer.Bytes}
	}
	if refusals < 2 {
		return l
	}
	small := *l
	small.Steps, small.Plan, small.Labels = nil, nil, nil
	r.Steps, r.Labels, r.Failed = nil, nil, nil
	if r.Error != nil {
		r.Error = &idem.Failure{Code: r.Error.Code}
	}
	return &small
}

// recordWithQuestion returns the record as it is stored, with the leases that it is on.
func (f *Finisher) recordWithQuestion(ctx context.Context, e *Ended) (stored protocol.Leased, err error) {
	l, r := e.Lock, e.Record
	if stored, err = f.PrepareRecord(ctx, r, e.Writer, l.ReplayFor); err != nil || !e.leavesQuestion() {
		return stored, err
	}
	question := idem.OpenQuestion{Route: l.Route, URL: l.Question.URL}
	stored.Apart = &protocol.Apart{Key: f.Layout.Of(protocol.KindQuestions, r.Execution), Leased: protocol.Leased{
		Value: protocol.EncodeQuestion(&question), Lease: stored.Lease,
	}}
	return stored, nil
}

// PrepareRecord returns a record as it is stored by a writer, with the leases that it is on: its
// answer leaves after replayFor, 0 = with the record. An answer that does not settle its event
// stays in the record, which the next attempt replaces: apart, those of a hundred attempts would be
// there at a time.
func (f *Finisher) PrepareRecord(ctx context.Context, r *idem.Record, writer string,
	replayFor time.Duration) (stored protocol.Leased, err error) {
	var answer []byte
	if replayFor == 0 || !r.Remembered {
		stored.Value, err = protocol.EncodeRecord(r, writer)
	} else {
		stored.Value, answer, err = protocol.SplitRecord(r, writer)
	}
	if err != nil {
		return stored, err
	}
	row := protocol.RowOf(r)
	if stored.Lease, err = f.Leases.Take(ctx, r.Retention, protocol.KindRecords, &row); err != nil || answer == nil {
		return stored, err
	}
	stored.Apart = &protocol.Apart{Key: f.Layout.Of(protocol.KindAnswers, r.Execution),
		Leased: protocol.Leased{Value: answer}}
	stored.Apart.Lease, err = f.Leases.Take(ctx, replayFor, "", nil)
	return stored, err
}

// leavesQuestion reports whether the service is to be asked what became of the execution. What is
// parked is asked about by the worker that runs it, and an end by a person is not corrected.
func (e *Ended) leavesQuestion() bool {
	by := e.Record.Abort
	return e.Lock.Question != nil && e.Lock.Parked == nil && e.Record.Outcome == idem.Unknown &&
		(by == nil || by.By == Policy)
}

// releaseDelay returns for how long the lock stays closed after the end; 0 = it is free at once.
func (f *Finisher) releaseDelay(e *Ended) time.Duration {
	switch {
	case e.leavesQuestion():
		return max(e.Lock.ReleaseDelay, e.Lock.Question.Window)
	case f.mayStillRun(e):
		return e.Lock.ReleaseDelay
	}
	return 0
}

// mayStillRun reports whether the upstream may still work on an execution that ends. For a parked
// one its latest try says so: the record has the outcome of all of them. If it rests between tries,
// the age of what etcd says of that counts, and not Last.At: a clock that is an hour ahead would
// open the lock while the upstream is at work.
func (f *Finisher) mayStillRun(e *Ended) bool {
	l, r, p := e.Lock, e.Record, e.Lock.Parked
	switch {
	case l.ReleaseDelay == 0:
		return false
	case r.Tried != nil:
		return r.Tried.Outcome == idem.Unknown
	case p == nil || p.Trying:
		return r.Outcome == idem.Unknown
	}
	return p.Last != nil && p.Last.Outcome == idem.Unknown && f.Pool.Age(e.RestsSince) < l.ReleaseDelay
}

// coolDown makes the cooling lock on a new lease. If its transaction gets no answer, the lease is
// left to run out: the transaction may yet use it.
func (f *Finisher) coolDown(ctx context.Context, l *idem.Lock, delay time.Duration) (*protocol.Cooling, error) {
	lease, err := f.Pool.NewLease(ctx, delay)
	if err != nil {
		return nil, err
	}
	cold := *l
	cold.Cooling, cold.CoolUntil, cold.Alive = true, f.Clock.Now().Add(delay).Round(time.Millisecond),
		protocol.HoldAlive(l.Execution)
	cold.Cancel, cold.Parked, cold.DeadlineLease = nil, nil, 0
	value, err := protocol.EncodeLock(&cold)
	if err != nil {
		return nil, err
	}
	return &protocol.Cooling{Lock: protocol.Leased{Value: value},
		Hold: protocol.Leased{Value: protocol.EncodeHold(l.Holder, cold.CoolUntil), Lease: lease}}, nil
}

// DeadLetter returns the index entry that stays of a parked execution that ended with r; nil =
// none.
func DeadLetter(l *idem.Lock, r *idem.Record) *protocol.Leased {
	if !r.RequestKept {
		return nil
	}
	p := protocol.IndexOf(l)
	p.State, p.Question = idem.ParkDeadLetter, l.Question
	return &protocol.Leased{Value: protocol.EncodeIndex(p)}
}
