package reap

import (
	"context"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Options are what this package works with.
type Options struct {
	*finish.Finisher
	Tasks    *commit.Tasks // run in the background; Store.Close waits for them
	Sessions *session.Set  // which sessions live
	// Writer marks the records that this process writes.
	Writer string
	Process
}

// Process is what a Reaper asks of its process, and tells it. None of its methods blocks.
type Process interface {
	// Holds reports whether this process has the lock of an execution, and so ends it itself.
	Holds(idem.ExecutionID) bool
	// OnReaped is called when this process has ended the execution of a dead lock.
	OnReaped(*idem.Lock)
	// OnNotReaped is called with a dead lock that the sweeper could not reap.
	OnNotReaped(*idem.Lock, error)
}

// Reaper ends the executions of dead locks. It is safe for concurrent use.
type Reaper struct{ options *Options }

// NewReaper returns a reaper.
func NewReaper(o *Options) *Reaper { return &Reaper{o} }

// IsDead reports whether the owner of l is gone, as far as this process knows. It asks etcd about
// holds, which are few, and notes in l until when it is held. It returns the error of ctx.
func (r *Reaper) IsDead(ctx context.Context, l *idem.Lock) (bool, error) {
	if r.options.Holds(l.Execution) {
		return false, nil // it is of this process, and on its way to the next session
	}
	if l.IsParked() {
		return false, nil // it is taken over, not reaped
	}
	if !protocol.IsHold(l.Alive) {
		return !r.options.Sessions.Has(l.Alive), nil
	}
	kvs, _, err := r.options.Pool.Keys(ctx, r.options.Layout.Alive(l.Alive))
	if err == nil && len(kvs) > 0 && l.Held {
		l.HoldUntil, _ = protocol.DecodeHold(kvs[0].Value) // it stays unknown if the value does not say it
	}
	return err == nil && len(kvs) == 0, err
}

// Reap ends the execution of a dead lock, for as long as ctx and the tasks live. It returns nil if
// the lock turns out to be alive. It repeats until the answer is definite, which is safe: the
// lock's revision changes when it is applied.
func (r *Reaper) Reap(ctx context.Context, dead *idem.Lock) error {
	if r.options.Holds(dead.Execution) || dead.IsParked() {
		return nil
	}
	k, refusals := r.options.Layout.Keys(dead), 0
	return r.options.Tasks.Repeat(ctx, func(ctx context.Context) (bool, error) {
		request, err := r.reapRequest(ctx, dead, k, refusals)
		if err != nil {
			return false, err
		}
		answer := r.options.Sender.Do(ctx, request)
		switch {
		case answer.Err != nil:
			if r.options.Leases.DropIfGone(request.SharedLease, answer.Err); link.TooLarge(answer.Err) {
				refusals = 2 // it has no answer
			}
		case !answer.Succeeded:
			r.NoteAlive(dead.Alive, answer)
		case !dead.Cooling:
			r.options.OnReaped(dead)
		}
		return answer.Err == nil, answer.Err
	})
}

// reapRequest ends the execution of dead. refusals is how often etcd has refused that for its size,
// see finish.Reduce.
func (r *Reaper) reapRequest(ctx context.Context, dead *idem.Lock, k protocol.Keys, refusals int) (*commit.Request,
	error) {
	at := protocol.Revisions{Lock: dead.Revision}
	if dead.Cooling {
		return commit.NewRequest(k.Lock, protocol.ReapCooling(k, at), 0).AddSlots(k), nil
	}
	end, err := r.endOf(ctx, dead)
	if err != nil {
		return nil, err
	}
	record := protocol.RecordOf(dead, end)
	ended := &finish.Ended{
		Lock: finish.Reduce(refusals, dead, record), RestsSince: dead.Revision, Record: record,
		Writer: r.options.Writer,
	}
	return r.options.Request(ctx, ended, func(record protocol.Leased, cool *protocol.Cooling) protocol.Op {
		return protocol.Reap(k, at, record, cool)
	}, k)
}

// endOf returns the end of an execution whose owner is dead, or whose hold ran out.
func (r *Reaper) endOf(ctx context.Context, dead *idem.Lock) (idem.End, error) {
	now := r.options.Clock.Now()
	end := idem.End{Status: idem.Failed, Outcome: idem.Unknown, FinishedAt: now}
	if !protocol.IsHold(dead.Alive) {
		end.Error = &idem.Failure{Code: finish.CodeLockLost,
			Detail: "the process that ran it lost its session; how far it came is unknown"}
		return end, nil
	}
	left, err := r.options.TimeLeft(ctx, dead)
	if left <= time.Second {
		end.Status, end.Abort = idem.Aborted,
			&idem.Cancel{By: finish.Policy, Reason: "max_duration of " + dead.MaxDuration.String() + " reached",
				At: now}
	} else {
		end.Error = &idem.Failure{Code: finish.CodeHoldExpired,
			Detail: "the hold was not renewed in time; how far the work came is unknown"}
	}
	return end, err
}

// NoteAlive takes note of a session that a refused transaction has found alive, so that its locks
// are not taken for dead again.
func (r *Reaper) NoteAlive(alive string, refused commit.Reply) {
	if protocol.First(refused.Responses[protocol.ReadAlive]) != nil && !protocol.IsHold(alive) {
		r.options.Sessions.AddFound(alive[len(protocol.KindSessions):], refused.Revision)
	}
}
