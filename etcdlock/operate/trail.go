package operate

import (
	"context"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// trail is the audit of one action. The transaction that makes the change writes it, under one name
// however often that is repeated: so there is one audit if the change was made, and none if it was
// not.
type trail struct {
	options *Options
	audit   idem.Audit  // as the last transaction has it
	wanted  *idem.Audit // the caller's, see done; nil = the caller wants none
	applied bool        // a transaction with the audit was applied
	unsure  bool        // one of them got no answer, or nothing in etcd had to change
	nothing bool        // the action had nothing to change, so no transaction has the audit
	run     idem.JobRun // what the step of a job lets run
}

// newTrail returns the trail of an action. The caller's audit changes when the action is done.
func (op *Operator) newTrail(wanted *idem.Audit) *trail {
	t := &trail{options: op.options, wanted: wanted}
	if wanted != nil {
		op.options.Audits.Name(wanted)
		t.audit = *wanted
	}
	return t
}

// setSubject sets what the action is about; e may be nil.
func (t *trail) setSubject(e *idem.ExecutionFacts) {
	if e != nil {
		t.audit.Workflow, t.audit.Execution = e.Workflow, e.Execution
	}
}

// setChange sets what the next transaction changes.
func (t *trail) setChange(before, after string) {
	t.audit.Result, t.audit.Before, t.audit.After = idem.AuditDone, before, after
}

// sendWithAudit sends a transaction that compares what it changes, with the audit. If it is
// refused, or its answer is lost, the caller reads again. A note that r has besides was taken from
// Duplicates.
func (t *trail) sendWithAudit(ctx context.Context, r *commit.Request) (answer commit.Reply, applied bool, err error) {
	if t.wanted == nil {
		return t.sendRequest(ctx, r)
	}
	n, err := t.options.Audits.Note(ctx, &t.audit)
	if err != nil {
		return answer, false, err
	}
	addNote(r, n)
	t.addJobStep(r)
	answer, applied, err = t.sendRequest(ctx, r)
	t.options.Audits.EndNote(n, err)
	if s := t.audit.Step; s != nil && err == nil {
		switch {
		case applied:
			s.Applied = answer.Revision
		case protocol.SteppedAside(answer.Responses, s.Job.Revision):
			s.Moved = true
			return answer, false, idem.ErrJobMoved
		}
	}
	t.applied, t.unsure = t.applied || applied, t.unsure || err != nil
	return answer, applied, err
}

// addJobStep makes the transaction of r a step of a job, if it is one.
func (t *trail) addJobStep(r *commit.Request) {
	s := t.audit.Step
	if s == nil {
		return
	}
	key, job := t.options.Layout.Job(s.Job.ID, idem.JobRunning), protocol.Leased{Value: protocol.EncodeJob(s.Job)}
	var run string
	var v protocol.Leased
	if s.Follow {
		run, v = t.options.Layout.JobRun(s.Job.ID, &t.run)
	}
	r.Txn = protocol.Stepped(r.Txn, key, s.Job.Revision, job, run, v)
	r.Slots = append(r.Slots, key)
	r.Size += len(key) + len(job.Value) + len(run) + len(v.Value)
}

func (t *trail) sendRequest(ctx context.Context, r *commit.Request) (answer commit.Reply, applied bool, err error) {
	answer = t.options.Sender.Do(ctx, r)
	t.options.Leases.DropIfGone(r.SharedLease, answer.Err)
	return answer, answer.Err == nil && answer.Succeeded, answer.Err
}

// addNote lets the transaction of r write n, too.
func addNote(r *commit.Request, n history.Note) {
	r.Txn = protocol.Noted(r.Txn, n.Key, n.Leased)
	r.Size += len(n.Key) + len(n.Value)
}

// finishAction ends the action with its error. After a success the caller's audit is as it was
// written. It is written now if there was nothing to change, and again if it is not known to be
// written.
func (t *trail) finishAction(ctx context.Context, err error) error {
	if t.wanted == nil || err != nil {
		return err
	}
	if t.nothing {
		t.audit.Result, t.audit.Name = idem.AuditNothing, ""
		t.options.Audits.Name(&t.audit)
	}
	if t.nothing || t.unsure && !t.applied {
		if err := t.writeAlone(ctx); err != nil {
			return err
		}
	}
	if s := t.audit.Step; s != nil {
		s.Run = t.run
	}
	*t.wanted = t.audit
	return nil
}

// writeAlone writes the audit of what no transaction of etcd changes. It returns
// idem.ErrStoreUnavailable.
func (t *trail) writeAlone(ctx context.Context) error {
	return t.options.Tasks.Repeat(ctx, func(ctx context.Context) (bool, error) {
		n, err := t.options.Audits.Note(ctx, &t.audit)
		if err != nil {
			return false, err
		}
		_, applied, err := t.sendRequest(ctx, commit.NewRequest(n.Key, protocol.Note(n.Key, n.Leased), len(n.Value)))
		t.options.Audits.EndNote(n, err)
		return applied, err
	})
}

// Audit writes an audit of what is no change in etcd, with its result, before it returns. It
// returns idem.ErrStoreUnavailable.
func (op *Operator) Audit(ctx context.Context, a *idem.Audit) error {
	return op.newTrail(a).writeAlone(ctx)
}
