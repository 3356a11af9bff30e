package idem

import "time"

const (
	// quickEnd is the length of an attempt from which on its end says nothing of a service that
	// dies of it.
	quickEnd = time.Second
	// quickAttempts is how many attempts in a row have to end within quickEnd before the next one
	// is paced.
	quickAttempts = 4
	// firstPace and mostPace bound the pause between two such attempts.
	firstPace = time.Second
	mostPace  = 5 * time.Minute
)

// failedAttempts returns how many attempts a counts for against Policy.Attempts: none if it
// provably did not run or went through, the failed tries of a parked one, else 1.
func (a *Attempt) failedAttempts() int {
	switch {
	case a.Outcome == NotExecuted, a.Status == Success:
		return 0
	case a.Tries > 0: // those that did not reach the service do not count
		return max(a.FailedTries, 1)
	}
	return 1
}

// FailedAttemptsBefore returns how many attempts of its event failed, or may have, before e. Those
// that are too old to be in Earlier all count.
func (e *ExecutionFacts) FailedAttemptsBefore() int {
	n := max(e.Attempt-1-len(e.Earlier), 0)
	for i := range e.Earlier {
		n += e.Earlier[i].failedAttempts()
	}
	return n
}

// FailedAttempts returns how many attempts of its event failed, or may have, r included.
func (r *Record) FailedAttempts() int {
	last := r.AsAttempt()
	return r.FailedAttemptsBefore() + last.failedAttempts()
}

// Exhausted reports whether a record is of an event that waits for a person, because as many of its
// attempts failed, or may have, as the policy allows.
func (p *Policy) Exhausted(rec *Record) bool {
	return p.Attempts > 0 && !rec.Final && !rec.Settled() && rec.Outcome != NotExecuted &&
		rec.FailedAttempts() >= p.Attempts
}

// IsLastTry reports whether a parked execution may not be tried again if its next try fails.
// failures are its tries that failed. The smaller of ParkPolicy.Attempts and Attempts ends it.
func (p *Policy) IsLastTry(e *ExecutionFacts, failures int) bool {
	if p.Park != nil && failures+1 >= p.Park.Attempts {
		return true
	}
	return p.Attempts > 0 && e.FailedAttemptsBefore()+failures+1 >= p.Attempts
}

// paceDelay returns how long the event of r must not run yet; 0 = it may. Each attempt in a row of
// which the service seems to have died doubles the pause after it. The clock of the process that
// wrote r may differ from now by d: then the pause may be too long by d, and by no more than
// itself.
func (r *Record) paceDelay(now time.Time) time.Duration {
	last := r.AsAttempt()
	if !last.seemsFatal() {
		return 0
	}
	n := 1
	for i := len(r.Earlier) - 1; i >= 0 && r.Earlier[i].seemsFatal(); i-- {
		n++
	}
	if n < quickAttempts {
		return 0
	}
	pause := min(firstPace<<(n-quickAttempts), mostPace)
	return max(pause-now.Sub(r.FinishedAt).Abs(), 0)
}

// seemsFatal reports whether the service seems to have died of a: it ended within quickEnd without
// an answer, or with that of a gateway before the service. Another answer shows that the service is
// there, and one that was cancelled ended when a person wanted it to.
func (a *Attempt) seemsFatal() bool {
	if a.Status != Failed || a.FinishedAt.Sub(a.StartedAt) >= quickEnd {
		return false
	}
	switch a.AnswerStatus {
	case 502, 503, 504:
		return true
	}
	return a.Outcome == Unknown
}
