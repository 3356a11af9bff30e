package admin

import (
	"encoding/hex"
	"time"

	"hooklock/idem"
)

// stamp is a time as the API shows it: RFC 3339 with milliseconds, UTC.
type stamp time.Time

// MarshalText writes it.
func (s stamp) MarshalText() ([]byte, error) {
	return time.Time(s).UTC().AppendFormat(nil, "2006-01-02T15:04:05.000Z07:00"), nil
}

// known is t, or nil where it is not known.
func known(t time.Time) *stamp {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

// lockView is a lock as the API shows it.
type lockView struct {
	Workflow  string `json:"workflow"`
	Execution string `json:"executionId"`
	Holder    string `json:"holder"`
	Token     int64  `json:"token"`
	LockedAt  stamp  `json:"lockedAt"`
	ExpiresAt *stamp `json:"expiresAt,omitempty"` // when it ends if nobody does anything; absent where it has no such end
	HeldFor   int64  `json:"heldFor"`             // seconds
	ExpiresIn *int64 `json:"expiresIn,omitempty"` // seconds
	Held      bool   `json:"held"`
	Waiting   int    `json:"waiting"`
	IsStale   bool   `json:"isStale"`
	Cooling   bool   `json:"cooling,omitempty"`
}

func viewOfLock(v *idem.LockView, now time.Time) lockView {
	l := v.Lock
	view := lockView{
		Workflow: l.Scope.Workflow, Execution: string(l.Execution), Holder: l.Holder, Token: l.Token, LockedAt: stamp(l.StartedAt),
		HeldFor: whole(now.Sub(l.StartedAt)), Held: l.Held, Waiting: v.Waiting, IsStale: l.Dead, Cooling: l.Cooling,
	}
	view.ExpiresAt, view.ExpiresIn = remaining(l, now)
	return view
}

// remaining says when the lock ends if nobody does anything.
func remaining(l *idem.Lock, now time.Time) (*stamp, *int64) {
	end := expiry(l)
	if end.IsZero() {
		return nil, nil
	}
	in := whole(end.Sub(now) + time.Second - 1)
	return known(end), &in
}

func expiry(l *idem.Lock) time.Time {
	switch {
	case l.Cooling:
		return l.CoolUntil
	case l.Held:
		return l.HoldUntil
	case l.MaxDuration > 0:
		return l.StartedAt.Add(l.MaxDuration)
	}
	return time.Time{}
}

// whole is d in seconds, and never less than 0: clocks of two machines differ.
func whole(d time.Duration) int64 { return int64(max(d, 0) / time.Second) }

// executionView is an execution as the API shows it. What does not apply is absent: an outcome before the end, an error of what is not
// FAILED, an abort of what is neither ABORTED nor asked to be.
type executionView struct {
	Execution   string        `json:"executionId"`
	Workflow    string        `json:"workflow"`
	Route       string        `json:"route"` // "" for a lock of the lock API
	Key         string        `json:"idempotencyKey"`
	EventID     string        `json:"eventId,omitempty"`
	Fingerprint string        `json:"fingerprint,omitempty"`
	Status      idem.Status   `json:"status"`
	Outcome     idem.Outcome  `json:"outcome,omitempty"`
	Token       int64         `json:"token,omitempty"` // none while it waits
	Holder      string        `json:"holder,omitempty"`
	Attempt     int           `json:"attempt,omitempty"`
	StartedAt   stamp         `json:"startedAt"`
	FinishedAt  *stamp        `json:"finishedAt,omitempty"`
	Error       *idem.Failure `json:"error,omitempty"`
	AbortedAt   *stamp        `json:"abortedAt,omitempty"`
	AbortedBy   string        `json:"abortedBy,omitempty"`
	AbortReason string        `json:"abortReason,omitempty"`
	Steps       []stepView    `json:"steps"`
	Response    *answerView   `json:"response,omitempty"`
	Duplicates  int64         `json:"duplicates"`
	TraceID     string        `json:"traceId,omitempty"`

	// Of an answer to cancel.
	Success bool   `json:"success,omitempty"`
	Message string `json:"message,omitempty"`
}

type stepView struct {
	Name       string          `json:"name"`
	Status     idem.StepStatus `json:"status"`
	StartedAt  *stamp          `json:"startedAt,omitempty"`
	FinishedAt *stamp          `json:"finishedAt,omitempty"`
}

// answerView says of an upstream's answer what is no secret.
type answerView struct {
	Status int   `json:"status"`
	Bytes  int64 `json:"bytes"`
	Kept   bool  `json:"kept"` // duplicates get it whole
}

func viewOfExecution(f *idem.Found) executionView {
	v := executionView{Status: f.Status(), Workflow: f.Workflow(), Duplicates: f.Duplicates, Steps: []stepView{}}
	for _, s := range f.AllSteps() {
		v.Steps = append(v.Steps, stepView{s.Name, s.Status, known(s.StartedAt), known(s.FinishedAt)})
	}
	switch {
	case f.Record != nil:
		v.fromRecord(f.Record)
	case f.Short != nil:
		v.Execution, v.Key, v.Outcome = string(f.Short.Execution), string(f.ShortOf.Key), f.Short.Outcome
		v.StartedAt, v.FinishedAt = stamp(f.Short.StartedAt), known(f.Short.FinishedAt)
	default:
		v.fromLock(f.Lock)
	}
	return v
}

func (v *executionView) fromLock(l *idem.Lock) {
	v.Execution, v.Route, v.Key, v.EventID = string(l.Execution), l.Route, string(l.Scope.Key), l.EventID
	v.Fingerprint, v.Token, v.Holder, v.Attempt = hexOf(l.Fingerprint), l.Token, l.Holder, l.Attempt
	v.StartedAt, v.TraceID = stamp(l.StartedAt), idem.ParseTrace(l.TraceParent).TraceID()
	v.aborted(l.Cancel)
}

// aborted says who asked for the end, why and when; nil: nobody has.
func (v *executionView) aborted(by *idem.Cancel) {
	if by != nil {
		v.AbortedAt, v.AbortedBy, v.AbortReason = known(by.At), by.By, by.Reason
	}
}

func (v *executionView) fromRecord(r *idem.Record) {
	v.Execution, v.Route, v.Key, v.EventID = string(r.Execution), r.Route, string(r.Scope.Key), r.EventID
	v.Fingerprint, v.Token, v.Holder, v.Attempt = hexOf(r.Fingerprint), r.Token, r.Holder, r.Attempt
	v.StartedAt, v.FinishedAt, v.TraceID = stamp(r.StartedAt), known(r.FinishedAt), idem.ParseTrace(r.TraceParent).TraceID()
	v.Outcome = r.Outcome
	if r.Status == idem.Failed {
		v.Error = r.Error
	}
	if r.Status == idem.Aborted {
		v.aborted(r.Abort)
	}
	if r.Answer != nil {
		v.Response = &answerView{r.Answer.Status, r.Answer.Bytes, r.Kept && r.Answer.Whole}
	}
}

// hexOf is "" where nobody sent anything.
func hexOf(f idem.Fingerprint) string {
	if f == (idem.Fingerprint{}) {
		return ""
	}
	return hex.EncodeToString(f[:])
}
