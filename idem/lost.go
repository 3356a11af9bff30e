package idem

import "time"

// Following says how refused events of a route are followed, until they come again or are possibly
// lost.
type Following struct {
	// Patience is how long the sender may take to send an event again, and Schedule how long after
	// its first attempt it sends an event at all; 0 = not known. An event is possibly lost when
	// both are over. Patience 0: no event is followed.
	Patience, Schedule time.Duration
	// Remembered is how long it is known at least that an event ran.
	Remembered time.Duration
	// NewPerSecond bounds the refused events that are stored, so that strangers cannot fill the
	// ledger; 0 = no bound.
	NewPerSecond int
}

// Due returns when an event is possibly lost that was refused first and last at these times, if it
// has not come again. It is before a run in that time could be forgotten.
func (f *Following) Due(first, last time.Time) time.Time {
	due := last.Add(f.Patience)
	if end := first.Add(f.Schedule); f.Schedule > 0 && end.After(due) {
		due = end
	}
	if forgotten := last.Add(f.Remembered - f.Remembered/8); due.After(forgotten) {
		return forgotten
	}
	return due
}

// LostEvent is an event that was refused and did not come again in time.
type LostEvent struct {
	Scope
	Route, EventID string  // of its newest arrival
	Labels         Labels  // of its event
	Arrival        Arrival // the newest
}

// IsLost reports whether the event was found to be possibly lost, and has neither run nor come
// again since, as far as is known.
func (f *Found) IsLost() bool {
	return f.Arrivals != nil && !f.Arrivals.Lost.IsZero() && f.Unanswered() &&
		!f.Arrivals.Newest[0].At.After(f.Arrivals.Lost)
}

// Unanswered reports whether the newest delivery of the event was refused, and the event does not
// run, wait or stand settled. It needs Arrivals, and the newest execution of the event, if there is
// one.
func (f *Found) Unanswered() bool {
	h := f.Arrivals
	if h == nil || len(h.Newest) == 0 || f.Lock != nil || !h.Newest[0].Decision.Row().MayBeLost {
		return false
	}
	refused := &h.Newest[0]
	if h.Forgotten != nil && h.Forgotten.At.After(refused.At) {
		return false
	}
	r := f.Record
	switch {
	case r == nil:
		return true
	case r.Settled(), r.Final, r.Outcome == Unknown: // an unknown outcome needs attention of its own
		return false
	}
	return r.Execution == refused.Execution || !r.StartedAt.After(refused.At)
}
