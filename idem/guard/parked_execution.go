package guard

import (
	"context"
	"time"

	"hooklock/idem"
)

// Worker is what a Guard asks of the park worker of its process.
type Worker interface {
	// TakeOver runs an execution from now on that was parked while its delivery ran. t is how that
	// try ended. It does not block.
	TakeOver(x *ParkedExecution, t Tried)
	// OnReached is called when the upstream has answered any delivery: it is not away.
	OnReached()
}

// SetWorker sets the park worker, before the Guard admits anything. Without one nothing may be
// parked.
func (g *Guard) SetWorker(w Worker) { g.worker = w }

// ParkedExecution is a parked execution that this process runs, as the RunningLock of it. The park
// worker owns it, and ends it with Leave.
type ParkedExecution struct {
	idem.RunningLock
	guard *Guard
	spot  *spot
}

// Resume returns the parked execution that holds a lock, as one that this process runs from now on.
func (g *Guard) Resume(held idem.RunningLock) *ParkedExecution {
	return &ParkedExecution{held, g, g.live.noteWonLock(held.Lock().Scope, held.Lock())}
}

// RecordTry implements RunningLock.
func (p *ParkedExecution) RecordTry(ctx context.Context, as idem.Parked) error {
	err := p.RunningLock.RecordTry(ctx, as)
	if err == nil {
		p.guard.live.replaceLock(p.spot, p.Lock())
	}
	return err
}

// Try makes one try: send gets the execution with a new fencing token and a new callback key, and
// ends it. ctx bounds the request to the ledger before it. If that fails nothing is sent, and its
// error is Tried.Stopped.
func (p *ParkedExecution) Try(ctx context.Context, policy *idem.Policy, send func(*Execution)) Tried {
	as := *p.Lock().Parked
	as.Tries, as.Trying, as.NextAttempt, as.Pause = as.Tries+1, true, time.Time{}, 0
	var random [10]byte
	p.guard.readRandom(random[:])
	callbackKey, hash := idem.NewCallbackKey(random)
	if err := p.BeginTry(ctx, as, hash); err != nil {
		return Tried{Stopped: err, Failure: idem.Failure{Code: string(idem.DecisionStoreUnavailable),
			Detail: err.Error()}}
	}
	p.guard.live.replaceLock(p.spot, p.Lock())
	x := newExecution(p.guard, policy, nil, p.RunningLock, p.spot, callbackKey)
	x.parked = true
	send(x)
	x.End(Tried{Sent: true, Failure: idem.Failure{Code: string(idem.DecisionInternalError),
		Detail: "the try did not say how it ended"}})
	return x.result
}

// End ends the execution with the answer of a try, or lets go of it if the upstream goes on. The
// policy decides what is stored of the answer.
func (p *ParkedExecution) End(policy *idem.Policy, t *Tried) Ending {
	x := newExecution(p.guard, policy, nil, p.RunningLock, nil, "")
	if t.Hold > 0 {
		return x.holdLock(t.Hold)
	}
	j := idem.Judge(policy, t.Try())
	return x.writeRecord(x.endOf(&j, t))
}

// Leave says that this process does not run the execution any more. The next delivery of its
// workflow asks the ledger.
func (p *ParkedExecution) Leave() { p.guard.live.leaveSpot(p.spot) }
