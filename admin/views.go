package admin

import (
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

// The client package has the types of the API's JSON: their names, and what is left out.

func (c *call) viewOfLock(v *idem.LockView) client.Lock {
	l, now := v.Lock, c.api.options.Now()
	view := client.Lock{
		Workflow: l.Workflow, ExecutionID: string(l.Execution), Route: l.Route, EventID: l.EventID,
		Labels: viewOfLabels(l.Labels), Holder: l.Holder, Token: l.Token, LockedAt: client.Time{Time: l.StartedAt},
		HeldFor: wholeSeconds(now.Sub(l.StartedAt)), Held: l.Held, Waiting: v.Waiting, IsStale: l.Dead,
		Cooling: l.Cooling,
	}
	if l.Parked != nil && !l.Parked.Trying && !l.Held && !l.Cooling {
		view.Parked = viewOfParked(l.Parked)
	}
	view.ExpiresAt, view.ExpiresIn, view.EndsBy = c.lockEnd(l)
	view.Of = v.Of
	for _, id := range v.Holders {
		view.Executions = append(view.Executions, string(id))
	}
	return view
}

// lockEnd returns when the lock ends unless it is renewed or released.
func (c *call) lockEnd(l *idem.Lock) (at client.Time, seconds *float64, by string) {
	now := c.api.options.Now()
	end, by := nearestEnd(l, c.api.options.UpstreamTimeout, now)
	if end.IsZero() {
		return client.Time{}, nil, ""
	}
	in := wholeSeconds(end.Sub(now) + time.Second - 1)
	return client.Time{Time: end}, &in, by
}

// nearestEnd returns the nearest of the known ends, and which one that is; the zero time if none is
// known. The upstream may answer for longer than its timeout, as long as data moves, so a timeout
// that has passed is ignored.
func nearestEnd(l *idem.Lock, timeout time.Duration, now time.Time) (end time.Time, by string) {
	if l.Cooling {
		return l.CoolUntil, "release_delay"
	}
	if l.MaxDuration > 0 && l.Parked == nil { // that of a parked one is of its try, whose start is not known here
		end, by = l.StartedAt.Add(l.MaxDuration), "max_duration"
	}
	sooner := func(at time.Time, what string) {
		if end.IsZero() || at.Before(end) {
			end, by = at, what
		}
	}
	called := l.StartedAt.Add(timeout)
	switch {
	case l.Held && !l.HoldUntil.IsZero():
		sooner(l.HoldUntil, "hold")
	case !l.Held && l.Route != "" && l.Parked == nil && timeout > 0 && called.After(now):
		sooner(called, "upstream.timeout")
	}
	return end, by
}

// wholeSeconds returns d in whole seconds, and never less than 0: clocks of two machines differ.
func wholeSeconds(d time.Duration) float64 { return float64(max(d, 0) / time.Second) }

// viewOfExecution leaves out what does not apply: an outcome before the end, an error unless it is
// FAILED, an abort unless it is ABORTED or a cancel was requested.
func viewOfExecution(f *idem.Found) client.Execution {
	v := client.Execution{Status: client.Status(f.Status()), Workflow: f.Workflow(), Duplicates: f.Duplicates,
		Steps: []client.Step{}}
	for _, s := range f.AllSteps() {
		v.Steps = append(v.Steps, client.Step{Name: s.Name, Status: string(s.Status),
			StartedAt: client.Time{Time: s.StartedAt}, FinishedAt: client.Time{Time: s.FinishedAt}})
	}
	if e := f.Facts(); e != nil {
		v.ExecutionID, v.Route, v.IdempotencyKey, v.EventID = string(e.Execution), e.Route, string(e.Key), e.EventID
		v.Labels = viewOfLabels(e.Labels)
		v.Fingerprint, v.Token, v.Holder, v.Attempt = e.Fingerprint.Hex(), e.Token, e.Holder, e.Attempt
		v.StartedAt.Time, v.TraceID, v.Order = e.StartedAt, idem.ParseTrace(e.TraceParent).TraceID(), viewOfOrder(e)
		for _, s := range e.Slots {
			if s.Index >= 0 {
				v.Slots = append(v.Slots, client.OwnSlot{Limit: s.LimitName, Number: s.Index})
			}
		}
	}
	showHistory(&v, f)
	switch {
	case f.Record != nil:
		showEnd(&v, &f.Record.End)
		v.Final = f.Record.Final && !f.Record.Settled() && f.Record.Superseded() == ""
		v.RequestKept, v.Tries, v.ParkedOn = f.Record.RequestKept, f.Record.Tries, string(f.Record.ParkedOn)
	case f.Short != nil:
		showShort(&v, f)
	case f.Lock == nil:
		v.Route, v.IdempotencyKey, v.EventID, v.StartedAt.Time = f.Arrivals.Route, string(f.Arrivals.Key),
			f.Arrivals.EventID, f.Arrivals.First.At
		v.Labels = viewOfLabels(f.Arrivals.Labels)
		if v.StartedAt.IsZero() {
			v.StartedAt.Time = f.Arrivals.Forgotten.At
		}
	default:
		showAbort(&v, f.Lock.Cancel)
		v.Final = f.Lock.Cancel != nil && f.Lock.Cancel.Final
		v.Parked, v.Held = viewOfParked(f.Lock.Parked), f.Lock.Held
		if s := f.Lock.Latest; s != nil && f.InQueue {
			v.Latest = &client.Latest{Since: client.Time{Time: s.Since}, Replaced: s.Replaced,
				NotBefore: client.Time{Time: s.NotBefore}}
		}
	}
	return v
}

// viewOfLabels returns nil for an event without labels.
func viewOfLabels(labels idem.Labels) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	view := make(map[string]string, len(labels))
	for _, l := range labels {
		view[l.Name] = l.Value
	}
	return view
}

// viewOfParked returns nil for an execution that is not parked.
func viewOfParked(p *idem.Parked) *client.Parked {
	if p == nil {
		return nil
	}
	v := &client.Parked{
		Since: client.Time{Time: p.Since}, On: string(p.On), Tries: p.Tries, Failures: p.Failures,
		NextAttempt: client.Time{Time: p.NextAttempt}, Blocked: p.Blocked,
	}
	if e := p.Last; e != nil {
		v.LastEvidence = &client.Evidence{Outcome: client.Outcome(e.Outcome), Status: e.Status, Code: e.Code,
			Detail: e.Detail, At: client.Time{Time: e.At}}
	}
	return v
}

// viewOfOrder returns nil for an event without an order.
func viewOfOrder(e *idem.ExecutionFacts) *client.Order {
	if e.Order == nil {
		return nil
	}
	v := &client.Order{Scope: e.Order.Scope, Position: e.Order.At}
	if e.Stale != nil {
		v.Stale, v.Newest = e.Stale.By, string(e.Stale.Than)
	}
	return v
}

func showEnd(v *client.Execution, e *idem.End) {
	v.Outcome, v.FinishedAt.Time, v.ProvenAt.Time = client.Outcome(e.Outcome), e.FinishedAt, e.ProvenAt
	if e.Status == idem.Failed {
		v.Error = (*client.Failure)(e.Error)
	}
	if e.Status == idem.Aborted {
		showAbort(v, e.Abort)
	}
	if a := e.Asked; a != nil {
		v.Asked = &client.Asked{Outcome: client.Outcome(a.Outcome), At: client.Time{Time: a.At}, URL: a.URL,
			Status: a.Status, Detail: a.Detail, Times: a.Times}
	}
	if e.Answer != nil {
		v.Response = &client.Response{Status: e.Answer.Status, Bytes: e.Answer.Bytes, Kept: e.Remembered &&
			(e.Answer.Whole || e.Answer.Apart || e.Answer.Left), Hash: e.Answer.Hash}
	}
}

// showAbort shows by whom, why and when the execution was cancelled; by is nil if it was not.
func showAbort(v *client.Execution, by *idem.Cancel) {
	if by != nil {
		v.AbortedAt.Time, v.AbortedBy, v.AbortReason, v.SupersededBy = by.At, by.By, by.Reason, string(by.Successor)
	}
}
