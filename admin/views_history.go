package admin

import (
	"context"

	"hooklock/admin/client"
	"hooklock/idem"
)

// showFailed adds the answers to failed tries, with their text if the caller may see it.
func (c *call) showFailed(v *client.Execution, f *idem.Found) {
	showFailedAnswers(v, f)
	for i := range v.FailedAnswers {
		if !c.caller.token.Bodies {
			v.FailedAnswers[i].Text = ""
		}
	}
}

// showFailedAnswers adds the answers to failed tries, with their text.
func showFailedAnswers(v *client.Execution, f *idem.Found) {
	var failed []idem.FailedAnswer
	switch {
	case f.Record != nil:
		failed = f.Record.Failed
	case f.Lock != nil && f.Lock.Parked != nil:
		failed = f.Lock.Parked.Failed
	}
	for _, a := range failed {
		v.FailedAnswers = append(v.FailedAnswers, client.FailedAnswer{At: client.Time{Time: a.At}, Status: a.Status,
			Text: a.Text})
	}
}

// showHistory adds what the ledger knows of the event besides the execution.
func showHistory(v *client.Execution, f *idem.Found) {
	if len(f.Attempts) > 1 {
		for i := range f.Attempts {
			v.Attempts = append(v.Attempts, viewOfAttempt(&f.Attempts[i]))
			if i > 0 {
				v.Attempts[i].Differs = f.Attempts[i-1].NextDiffers
			}
		}
	}
	if h := f.Arrivals; h != nil && h.Forgotten != nil {
		r := h.Forgotten
		v.Released = &client.ReleasedExecution{
			ExecutionID: string(r.Execution), Status: client.Status(r.Status), Outcome: client.Outcome(r.Outcome),
			By: r.By, Reason: r.Reason, At: client.Time{Time: r.At},
		}
	}
	if f.IsLost() {
		v.LostAt.Time = f.Arrivals.Lost
	}
	if h := f.Arrivals; h != nil && h.Counts != nil {
		v.Arrivals = &client.Arrivals{Counts: map[string]int64{}, First: viewOfArrival(&h.First)}
		for decision, n := range h.Counts {
			v.Arrivals.Counts[string(decision)] = n
		}
		for i := range h.Newest {
			v.Arrivals.Newest = append(v.Arrivals.Newest, viewOfArrival(&h.Newest[i]))
		}
	}
}

// lookups bounds how many executions are read for one answer because deliveries were refused behind
// them.
const lookups = 50

// behind looks up which executions had the lock when deliveries were refused.
type behind struct {
	call  *call
	known map[idem.ExecutionID]*client.ArrivalBehind
}

// showObstacles adds to the newest arrivals, so many of them, the execution that stood in the way.
func (b *behind) showObstacles(ctx context.Context, v *client.Execution, f *idem.Found, newest int) {
	if f.Arrivals == nil {
		return
	}
	for i := range min(newest, len(f.Arrivals.Newest)) {
		a := &f.Arrivals.Newest[i]
		if id := a.Execution; id != "" && id != f.ID() && a.Decision.Row().Class == idem.ClassOverlap {
			v.Arrivals.Newest[i].Behind = b.findExecution(ctx, id)
		}
	}
}

// findExecution returns nil if nothing is known of the execution, or if the caller may not see it.
func (b *behind) findExecution(ctx context.Context, id idem.ExecutionID) *client.ArrivalBehind {
	if v, known := b.known[id]; known || len(b.known) >= lookups {
		return v
	}
	b.known[id] = nil
	f, err := b.call.api.options.Ledger.Execution(ctx, id)
	if err != nil || !b.call.caller.maySee(f.Workflow()) {
		return nil
	}
	x := viewOfExecution(f)
	b.known[id] = &client.ArrivalBehind{EventID: x.EventID, StartedAt: x.StartedAt, FinishedAt: x.FinishedAt}
	return b.known[id]
}

func viewOfAttempt(a *idem.Attempt) client.Attempt {
	v := client.Attempt{
		ExecutionID: string(a.Execution), Status: client.Status(a.Status), Outcome: client.Outcome(a.Outcome),
		Answer: a.AnswerStatus, Tries: a.Tries,
		StartedAt: client.Time{Time: a.StartedAt}, FinishedAt: client.Time{Time: a.FinishedAt},
		Error:   (*client.Failure)(a.Error),
		TraceID: idem.ParseTrace(a.TraceParent).TraceID(),
	}
	if a.Abort != nil {
		v.AbortedAt.Time, v.AbortedBy, v.AbortReason = a.Abort.At, a.Abort.By, a.Abort.Reason
	}
	return v
}

func viewOfArrival(a *idem.Arrival) client.Arrival {
	v := client.Arrival{
		At: client.Time{Time: a.At}, Decision: string(a.Decision), Would: string(a.Would), Status: a.Status,
		ExecutionID: string(a.Execution), EventID: a.EventID, From: a.From,
		Differs: a.Differs, TraceID: a.TraceID, Detail: a.Detail,
	}
	if a.Took > 0 {
		v.AnsweredAt.Time = a.At.Add(a.Took)
	}
	return v
}

// showShort shows an execution whose event has run again since.
func showShort(v *client.Execution, f *idem.Found) {
	a := viewOfAttempt(f.Short)
	v.ExecutionID, v.IdempotencyKey, v.Outcome, v.StartedAt, v.FinishedAt = a.ExecutionID, string(f.ShortOf.Key),
		a.Outcome, a.StartedAt, a.FinishedAt
	if e := f.Later; e != nil { // of the same event
		v.Route, v.EventID = e.Route, e.EventID
	}
	v.Error, v.AbortedAt, v.AbortedBy, v.AbortReason, v.TraceID = a.Error, a.AbortedAt, a.AbortedBy, a.AbortReason,
		a.TraceID
}
