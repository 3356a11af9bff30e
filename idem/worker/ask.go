package worker

import (
	"errors"

	"hooklock/idem"
)

// askService asks the service what became of the latest try. If it was executed, the execution ends
// with it.
func (r *run) askService() (over bool) {
	lock := r.running.Lock()
	policy := r.worker.options.Policy(lock.Route)
	if policy == nil || policy.Ask == nil { // the route has changed just now
		return false
	}
	said := r.worker.options.Ask(r.worker.life, lock)
	if r.worker.life.Err() != nil {
		return false
	}
	said.Times, said.At = lock.Parked.Asked+1, r.worker.options.Now()
	ctx, done := r.requestContext()
	defer done()
	if said.Outcome != idem.Executed {
		err := r.running.RecordTry(ctx, lock.Parked.AfterQuestion(&said, policy.Ask, r.worker.options.Now()))
		switch now := r.running.Lock().Parked; {
		case err != nil: // Begin says what stops it
			_ = sleep(r.worker.life, firstPause)
		case now.Blocked != "":
			r.reportEvent(EventBlocked, idem.DecisionUnknown.Row().Code, now.Blocked, nil)
		}
		r.planNextTry()
		return false
	}
	rec, err := r.running.Settle(ctx, idem.End{
		Status: idem.Success, Outcome: idem.Executed, Remembered: policy.Idempotency, Asked: &said, FinishedAt: said.At,
		Answer: &idem.Answer{Status: policy.Ask.Answer, Whole: true},
	})
	if errors.Is(err, idem.ErrCancelled) {
		return false
	}
	r.reportEvent(EventDone, "", "", err)
	if err == nil {
		r.markUnneeded(rec)
	}
	return true
}
