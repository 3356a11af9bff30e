package operate

import (
	"context"
	"errors"
	"slices"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Prove ends an execution as its process, which is dead, had written down: its service had answered
// whole, and the record did not come to etcd. The lock of one of these sessions is settled, and a
// record that another process wrote because that one was gone is corrected. It returns nil without
// an error if the proof changes nothing: etcd has a known end, a person has ended it, another
// process carries it on, or its event has run again. It returns idem.ErrStoreUnavailable.
func (op *Operator) Prove(ctx context.Context, id idem.ExecutionID, end idem.End, counts []idem.Counted,
	sessions []string) (*idem.Record, error) {
	p := op.proofOf(id, end)
	for _, name := range sessions {
		p.alive = append(p.alive, protocol.SessionAlive(name))
	}
	for i := range counts {
		p.counts = append(p.counts, &commit.Count{Counted: counts[i]})
	}
	record, err := p.run(ctx)
	if record != nil {
		op.options.OnEnded(record, true)
	}
	return record, err
}

// Correct ends the execution of a lock that this process has lost, for instance because it was
// frozen, and whose service had answered it whole. A record that another process wrote because this
// one seemed to be dead is corrected, as Prove does. It returns nil without an error if nothing was
// to be corrected, or idem.ErrStoreUnavailable.
func (op *Operator) Correct(ctx context.Context, l *idem.Lock, end idem.End) (*idem.Record, error) {
	p := op.proofOf(l.Execution, end)
	p.replayFor = l.ReplayFor
	return p.run(ctx)
}

// proof is the end of an execution whose process is dead, or has lost its lock, on its way into the
// record.
type proof struct {
	correction
	id    idem.ExecutionID
	end   idem.End
	alive []string // of the dead process
}

func (op *Operator) proofOf(id idem.ExecutionID, end idem.End) *proof {
	end.ProvenAt = op.options.Clock.Now().UTC()
	p := &proof{id: id, end: end}
	p.correction = correction{op: op, question: op.options.Layout.Of(protocol.KindQuestions, id),
		writer: session.NewName(), correct: p.correctedRecord}
	return p
}

func (p *proof) run(ctx context.Context) (*idem.Record, error) {
	err := p.op.repeatUntilDone(ctx, p.id, p.tryOnce)
	if errors.Is(err, idem.ErrNoExecution) { // no lock, no record: it is forgotten, or was erased
		err = nil
	}
	return p.record, err
}

func (p *proof) tryOnce(ctx context.Context, at *history.State) (done bool, err error) {
	r := at.Ended(at.ID)
	var request *commit.Request
	var stored []byte
	switch {
	case r != nil && at.Writer == p.writer: // an attempt whose answer got lost
		p.record = r
		return true, nil
	case at.Unread != nil:
		return true, commit.Unavailable(at.Unread)
	case at.Runs(at.ID):
		if !slices.Contains(p.alive, at.Lock.Alive) || at.Lock.Parked != nil && p.end.Status != idem.Success {
			return true, nil
		}
		t := p.op.newTrail(nil)
		if stored, err = t.requestOf(ctx, at.Keys); err != nil {
			return false, err
		}
		request, err = p.settleRequest(ctx, at)
	case r == nil || !isOfTheDead(r) || at.CopyRuns(at.Scope.Key) != nil || at.Copied != nil:
		return true, nil
	default:
		request, err = p.correctRequest(ctx, at, r)
	}
	if err != nil {
		return false, err
	}
	if done, err = p.writeRecord(ctx, request); done {
		_ = p.op.newTrail(nil).eraseRequest(ctx, at.ID, stored) // else it is swept
	}
	return done, err
}

// isOfTheDead reports whether r was written because the process was gone that ran the execution.
func isOfTheDead(r *idem.Record) bool {
	return r.Outcome == idem.Unknown && !r.Final && r.Abort == nil && r.ParkedOn == "" && r.Error != nil &&
		r.Error.Code == finish.CodeLockLost
}

func (p *proof) correctedRecord(r *idem.Record) *idem.Record {
	next := *r
	next.End = p.end
	next.InheritAnswer()
	return &next
}

// settleRequest returns the transaction that the dead process did not come to.
func (p *proof) settleRequest(ctx context.Context, at *history.State) (*commit.Request, error) {
	o, l, k := p.op.options, at.Lock, at.Keys
	p.record = protocol.RecordOf(l, p.end)
	value := protocol.EncodeHighWaterMark(&p.record.ExecutionFacts)
	if k.HighWaterMark = o.Layout.HighWaterMark(at.Scope.Workflow, l.Order); p.record.Status != idem.Success {
		value = nil
	}
	seen := protocol.Revisions{LockCreated: l.Created, Lock: l.Revision}
	request, err := o.Request(ctx, &finish.Ended{Lock: l, RestsSince: l.Revision, Record: p.record, Writer: p.writer},
		func(record protocol.Leased, cool *protocol.Cooling) protocol.Op {
			var mark *protocol.Leased
			if value != nil {
				mark = &protocol.Leased{Value: value, Lease: record.Lease}
			}
			if l.Parked != nil {
				return protocol.SettleParked(k, seen, record, cool, nil, mark)
			}
			return protocol.Settle(k, seen, record, cool, mark)
		}, k)
	if err != nil {
		return nil, err
	}
	request.Counts = p.counts
	if value != nil {
		request.Size += len(value)
		request.Slots = append(request.Slots, k.HighWaterMark)
	}
	return request, nil
}
