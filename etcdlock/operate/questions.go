package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Questions are what the service is to be asked about events of unknown outcome. It is safe for
// concurrent use.
type Questions struct{ op *Operator }

// NewQuestions returns the questions that op's ledger keeps.
func NewQuestions(op *Operator) *Questions { return &Questions{op} }

// Open returns open questions of all processes, and at most that many. It returns
// idem.ErrStoreUnavailable if etcd cannot be read.
func (q *Questions) Open(ctx context.Context, most int) (all []idem.OpenQuestion, err error) {
	o := q.op.options
	kvs, _, err := o.Pool.Keys(ctx, o.Layout.All(protocol.KindQuestions), clientv3.WithPrefix(),
		clientv3.WithLimit(int64(most)))
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	for _, kv := range kvs {
		if one, err := o.Layout.QuestionAt(kv); err == nil { // else it is of a newer release, which asks it
			all = append(all, *one)
		}
	}
	return all, nil
}

// Begin notes that this process asks a question now. It returns false if another process was
// faster. The question changes to what is stored.
func (q *Questions) Begin(ctx context.Context, of *idem.OpenQuestion) (mine bool, err error) {
	next := *of
	next.Asked++
	key := q.op.options.Layout.Of(protocol.KindQuestions, of.Execution)
	value := protocol.EncodeQuestion(&next)
	put := protocol.Leased{Value: value, Lease: clientv3.LeaseID(of.Lease)}
	answer := q.op.options.Sender.Do(ctx, commit.NewRequest(key, protocol.Declare(key, of.Revision, put), len(value)))
	if answer.Err != nil || !answer.Succeeded {
		return false, answer.Err
	}
	next.Revision = answer.Revision
	*of = next
	return true, nil
}

// Answer writes down what the service said of an execution whose record says unknown, and frees the
// lock that waits for it. It returns nil without an error if nothing was to be corrected: the event
// was forgotten, was ended or let run by a person, or has run again; then only the question goes.
// It returns idem.ErrStoreUnavailable. status is what duplicates get of an event that was executed.
func (q *Questions) Answer(ctx context.Context, id idem.ExecutionID, said idem.Asked,
	status int) (corrected *idem.Record, err error) {
	said.At = said.At.UTC().Round(time.Millisecond)
	a := &answered{said: said, status: status}
	a.correction = correction{op: q.op, question: q.op.options.Layout.Of(protocol.KindQuestions, id),
		writer: session.NewName(), correct: a.correctedRecord}
	err = q.op.repeatUntilDone(ctx, id, a.tryOnce)
	if errors.Is(err, idem.ErrNoExecution) {
		err = q.op.dropQuestion(ctx, a.question)
	}
	return a.record, err
}

// dropQuestion deletes a question that needs no answer.
func (op *Operator) dropQuestion(ctx context.Context, question string) error {
	if answer := op.options.Sender.Do(ctx,
		commit.NewRequest(question, protocol.DropNote(question), 0)); answer.Err != nil {
		return commit.Unavailable(answer.Err)
	}
	return nil
}

// correction is a known end on its way into a record that says unknown.
type correction struct {
	op       *Operator
	question string // the key of the question about the record
	writer   string // marks the record that it writes
	correct  func(*idem.Record) *idem.Record
	counts   []*commit.Count // committed with it
	// replayFor is for how long its answer is kept; 0 = as long as the record.
	replayFor time.Duration

	record *idem.Record
}

// answered is the answer to a question.
type answered struct {
	correction
	said   idem.Asked
	status int // for duplicates
}

func (a *answered) tryOnce(ctx context.Context, at *history.State) (done bool, err error) {
	r := at.Ended(at.ID)
	switch {
	case r != nil && at.Writer == a.writer: // an attempt whose answer got lost
		a.record = r
		return true, nil
	case at.Unread != nil:
		return true, commit.Unavailable(at.Unread)
	case r == nil || !isOpen(r), at.CopyRuns(at.Scope.Key) != nil, at.Copied != nil:
		return true, a.op.dropQuestion(ctx, a.question)
	}
	request, err := a.correctRequest(ctx, at, r)
	if err != nil {
		return false, err
	}
	return a.writeRecord(ctx, request)
}

// writeRecord sends a transaction that writes c.record. If it is not applied, the caller reads
// again.
func (c *correction) writeRecord(ctx context.Context, request *commit.Request) (done bool, err error) {
	o := c.op.options
	answer := o.Sender.Do(ctx, request)
	o.Leases.DropIfGone(request.SharedLease, answer.Err)
	o.Leases.DropIfGone(request.AnswerLease, answer.Err)
	if answer.Err == nil && answer.Succeeded {
		c.record.Revision = answer.Revision
		return true, nil
	}
	c.record = nil
	return false, answer.Err
}

// isOpen reports whether the service may decide what became of the execution of r: no person has.
func isOpen(r *idem.Record) bool {
	return r.Outcome == idem.Unknown && !r.Final && (r.Abort == nil || r.Abort.By == finish.Policy)
}

// correctedRecord returns r as the answer leaves it.
func (a *answered) correctedRecord(r *idem.Record) *idem.Record {
	next := *r
	next.Asked, next.Outcome = &a.said, a.said.Outcome
	if next.Outcome == idem.Executed {
		next.Status, next.Error, next.Abort, next.Remembered = idem.Success, nil, nil, true
		next.Answer = &idem.Answer{Status: a.status, Whole: true}
	}
	return &next
}

func (c *correction) correctRequest(ctx context.Context, at *history.State, r *idem.Record) (*commit.Request, error) {
	o, k := c.op.options, at.Keys
	c.record = c.correct(r)
	stored, err := o.PrepareRecord(ctx, c.record, c.writer, c.replayFor)
	if err != nil {
		return nil, fmt.Errorf("correct %s: %w", at.ID, err)
	}
	news, err := o.Leases.Notice(ctx, commit.NoticeLife)
	if err != nil {
		return nil, err
	}
	var mark *protocol.Leased
	if value := protocol.EncodeHighWaterMark(&r.ExecutionFacts); value != nil && c.record.Status == idem.Success {
		k.HighWaterMark, mark = o.Layout.HighWaterMark(at.Scope.Workflow, r.Order),
			&protocol.Leased{Value: value, Lease: stored.Lease}
	}
	cools := at.Lock != nil && at.Lock.Cooling && at.Lock.Execution == at.ID
	seen := protocol.Revisions{Record: at.Prev, Lock: at.LockRevision(), OtherLock: at.OtherRevision()}
	txn := protocol.Correct(k, seen, stored, news, c.question, cools, mark)
	request := commit.NewRequest(k.Lock, txn, len(stored.Value)+len(news.Value))
	request.Counts, request.SharedLease = c.counts, stored.Lease
	if stored.Apart != nil {
		request.Size += len(stored.Apart.Value)
		request.AnswerLease = stored.Apart.Lease
	}
	if c.record.Size = len(stored.Value); cools {
		request = request.AddSlots(k)
	}
	if mark != nil {
		request.Slots = append(request.Slots, k.HighWaterMark)
	}
	return request, nil
}
