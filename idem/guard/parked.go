package guard

import (
	"context"
	"strconv"
	"strings"
	"time"

	"hooklock/idem"
)

// Worker is what a Guard asks of the park worker of its process.
type Worker interface {
	// TakeOver runs an execution from now on that was parked while its delivery ran. t is how that try ended. It does not block.
	TakeOver(x *ParkedExecution, t Tried)
	// Reached is called when the upstream has answered any delivery: it is not away.
	Reached()
}

// SetWorker sets the park worker, before the Guard admits anything. Without one nothing may be parked.
func (g *Guard) SetWorker(w Worker) { g.worker = w }

// Tried is how one try of a parked execution ended.
type Tried struct {
	// Answer is the upstream's whole answer; nil: none came. The worker takes over its memory.
	Answer *idem.Answer
	// Challenge: Answer asks the sender for credentials.
	Challenge bool
	// Hold is for how long the upstream asks to go on after its answer; 0 = it is done.
	Hold time.Duration
	// Sent: the upstream may have a byte of the request.
	Sent    bool
	Failure idem.Failure // why no answer came
	// Hopeless: no other try can succeed, whatever the policy says; Failure says why.
	Hopeless bool
	// RetryAfter is the upstream's own delay until the next try; 0 = it gave none.
	RetryAfter time.Duration
	// Stopped is why the try was told to stop: one of the causes of an execution's Context; nil: it was not.
	Stopped error
}

// ParkedExecution is a parked execution that this process runs. It is the Held of its lock, and keeps what the Guard decides from in step with
// it. Its owner is the park worker, which ends with Leave.
type ParkedExecution struct {
	idem.Held
	guard *Guard
	spot  *spot
}

// Resume returns the parked execution that holds a lock, as one that this process runs from now on.
func (g *Guard) Resume(held idem.Held) *ParkedExecution {
	return &ParkedExecution{held, g, g.live.settle(held.Lock().Scope, held.Lock())}
}

// Rest implements Held.
func (p *ParkedExecution) Rest(ctx context.Context, as idem.Parked) error {
	err := p.Held.Rest(ctx, as)
	if err == nil {
		p.guard.live.replace(p.spot, p.Lock())
	}
	return err
}

// Try makes one try: send gets the execution with a new fencing token and a new callback key, and ends it, now or later. Try waits for that. ctx
// bounds the request to the ledger before it. If that fails nothing is sent, and its error is Tried.Stopped.
func (p *ParkedExecution) Try(ctx context.Context, policy *idem.Policy, send func(*Execution)) Tried {
	as := *p.Lock().Parked
	as.Tries, as.Trying, as.NextAttempt, as.Pause = as.Tries+1, true, time.Time{}, 0
	var random [10]byte
	p.guard.read(random[:])
	callbackKey, hash := idem.NewCallbackKey(random)
	if err := p.Attempt(ctx, as, hash); err != nil {
		return Tried{Stopped: err, Failure: idem.Failure{Code: string(idem.DecisionStoreUnavailable), Detail: err.Error()}}
	}
	p.guard.live.replace(p.spot, p.Lock())
	tried := make(chan Tried, 1)
	x := newExecution(p.guard, policy, p.Held, p.spot, callbackKey)
	x.parked.Store(true)
	x.tried = tried
	send(x)
	return <-tried
}

// End ends the execution with the answer of a try, or lets go of it if the upstream goes on. The policy decides what is stored of the answer.
func (p *ParkedExecution) End(policy *idem.Policy, t *Tried) Ending {
	x := newExecution(p.guard, policy, p.Held, nil, "")
	if t.Hold > 0 {
		return x.hold(t.Hold)
	}
	return x.complete(*t.Answer)
}

// Leave is called when this process does not run the execution any more. The next delivery of its workflow asks the ledger.
func (p *ParkedExecution) Leave() { p.guard.live.leave(p.spot) }

// retryAfter returns for how long an upstream wants no request; 0 = it does not say. A date is compared with now, the clock of this process.
func retryAfter(a *idem.Answer, now time.Time) time.Duration {
	for _, f := range a.Header {
		if !strings.EqualFold(f.Name, "Retry-After") {
			continue
		}
		text := strings.TrimSpace(f.Value)
		if n, err := strconv.ParseUint(text, 10, 31); err == nil {
			return time.Duration(n) * time.Second
		}
		for _, layout := range httpDates {
			if at, err := time.Parse(layout, text); err == nil {
				return max(at.Sub(now), 0)
			}
		}
	}
	return 0
}

// httpDates are the three ways to write a date in HTTP (RFC 9110, section 5.6.7). Each is in UTC.
var httpDates = []string{"Mon, 02 Jan 2006 15:04:05 GMT", "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC}
