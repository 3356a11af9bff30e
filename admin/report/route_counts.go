package report

import (
	"time"

	"hooklock/idem"
)

// Take returns what was counted of each route since the last call, without the routes that had
// nothing, and without what is counted with outcomes.
func (t *Tally) Take() []idem.RouteCounts {
	t.mu.Lock()
	defer t.mu.Unlock()
	some := t.left
	t.left = nil
	for _, name := range t.order {
		some = t.routes[name].takeCounts(name, some)
	}
	return some
}

// takeCounts appends what was counted since the last call, if anything was.
func (r *route) takeCounts(name string, some []idem.RouteCounts) []idem.RouteCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.untaken.Counts != (idem.Counts{}) {
		r.untaken.Route = name
		some = append(some, r.untaken)
		r.untaken = idem.RouteCounts{}
	}
	return some
}

// countDelivery counts a delivery by its result.
func (r *route) countDelivery(d *Delivery, shown time.Time) {
	counts := &r.untaken.Counts
	if !d.Counted {
		counts[idem.CountDeliveries]++
		r.untaken.Last = shown
		r.countCall(d.Result, d.Service)
	}
	if d.Changed && d.Carried {
		counts[idem.CountChanged]++
	}
	switch row := d.Decision.Row(); {
	case !d.Carried: // forwarded all the same
	case d.Accepted:
	case row.Decision == idem.DecisionParked, row.Class == idem.ClassDuplicate:
		counts[idem.CountDuplicates]++
	case row.Class == idem.ClassOverlap:
		counts[idem.CountBusy]++
	case row.Class == idem.ClassForged:
		counts[idem.CountBadSignatures]++
	case row.Own() && d.Result == 0:
		counts[idem.CountRefused]++
	}
}

// countCall counts a request to the service, if there was one.
func (r *route) countCall(result Result, took time.Duration) {
	if result == 0 {
		return
	}
	r.untaken.Counts[idem.CountSucceeded+idem.CountKind(result-Succeeded)]++
	r.untaken.Took.Note(took)
}
