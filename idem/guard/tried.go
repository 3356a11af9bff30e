package guard

import (
	"strconv"
	"strings"
	"time"

	"hooklock/idem"
)

// Tried is how one call of the upstream ended. The zero value: nothing of the request was sent.
type Tried struct {
	// Answer is the upstream's whole answer, or of one that was passed on as it came the status and
	// the length; nil: none came.
	Answer *idem.Answer
	// Challenge: Answer asks the sender for credentials.
	Challenge bool
	// Hold is for how long the upstream asks to go on after its answer; 0 = it is done.
	Hold time.Duration
	// Sent says that the upstream may have a byte of the request. An Answer proves it.
	Sent    bool
	Failure idem.Failure // why no answer came
	// Hopeless says that no other try can succeed, whatever the policy says; Failure says why.
	Hopeless bool
	// ResponseBegun says that a response to the sender has begun, so it can no longer say that the
	// event is accepted.
	ResponseBegun bool
	// Counted is what the try adds to the counts of its route, but for its result, which the Guard
	// adds. Without a Route it is not counted with its end.
	Counted idem.Counted

	// The Guard knows the rest.

	// RetryAfter is the upstream's own delay until the next try; 0 = it gave none.
	RetryAfter time.Duration
	// Stopped is why the try had to stop: a cause of the execution's Context; nil = it did not.
	Stopped error
}

// Try returns what idem.Judge asks about t.
func (t *Tried) Try() idem.Try {
	try := idem.Try{Sent: t.Sent || t.Answer != nil, Held: t.Hold > 0, Challenge: t.Challenge, Hopeless: t.Hopeless}
	if t.Answer != nil {
		try.Status = t.Answer.Status
	}
	return try
}

// Evidence returns what the ledger stores of t.
func (t *Tried) Evidence(p *idem.Policy, now time.Time) *idem.Evidence {
	e := &idem.Evidence{Outcome: idem.Judge(p, t.Try()).Outcome, At: now, Code: t.Failure.Code,
		Detail: t.Failure.Detail}
	if t.Answer != nil {
		e.Status, e.AnswerText = t.Answer.Status, failedText(p.Park, t.Answer.Body)
	}
	return e
}

// maxFailedText bounds what is kept of a failed answer; bytes.
const maxFailedText = 512

// failedText returns what is kept of the body of a failed answer; "" if it is not text.
func failedText(p *idem.ParkPolicy, body []byte) string {
	if p == nil || !p.FailedAnswers {
		return ""
	}
	body = body[:min(len(body), maxFailedText)]
	for _, c := range body {
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return ""
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(body), ""))
}

// retryAfter returns for how long an upstream wants no request; 0 = it does not say. A date is
// compared with now, the clock of this process.
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
