package worker

import "time"

// pace is how fast the tries of a route may begin after its service has asked to be left alone (429
// or 503 with Retry-After). The zero value: as fast as there are slots.
//
// As long as it has asked, no try begins. Then the rate doubles each second, 1, 2, 4 …, as far as
// half of the rate at which the service asked last, and grows by an eighth of that each second from
// there: so it settles below what the service takes, as TCP does (RFC 5681, section 3.1).
type pace struct {
	closedUntil time.Time // no try begins before it
	rate        float64   // tries a second; 0 = there is no bound
	threshold   float64   // the rate from which on it grows slowly; 0 = none is known
	grows       time.Time // the rate is raised then
	next        time.Time // no try begins before it
}

const (
	firstRate = 1.0
	// mostRate is the rate from which on nothing is bounded any more.
	mostRate = 1000.0
)

// noteRefusal lets the route be left alone for as long as its service has asked at now. A refusal
// of a try that had begun before says nothing new of the rate. It reports whether the route was not
// left alone before.
func (p *pace) noteRefusal(now time.Time, asked time.Duration) (first bool) {
	first = !now.Before(p.closedUntil)
	if until := now.Add(asked); until.After(p.closedUntil) {
		if p.rate > 0 && !now.Before(p.closedUntil) {
			p.threshold = max(p.rate/2, firstRate)
		}
		p.closedUntil = until
	}
	p.rate, p.next = firstRate, p.closedUntil
	p.grows = p.closedUntil.Add(time.Second)
	return first
}

// waitTime returns how long no try may begin; 0 = one may.
func (p *pace) waitTime(now time.Time) time.Duration {
	if p.rate == 0 {
		return 0
	}
	return max(p.next.Sub(now), 0)
}

// noteBegin records that a try begins.
func (p *pace) noteBegin(now time.Time) {
	if p.rate == 0 {
		return
	}
	if !now.Before(p.grows) {
		p.raiseRate()
		p.grows = now.Add(time.Second)
	}
	if p.rate > 0 {
		p.next = now.Add(time.Duration(float64(time.Second) / p.rate))
	}
}

// raiseRate raises the rate, as happens each second in which tries begin and none is refused.
func (p *pace) raiseRate() {
	switch doubled := 2 * p.rate; {
	case p.threshold == 0 || doubled <= p.threshold:
		p.rate = doubled
	default:
		p.rate += max(p.threshold/8, 1)
	}
	if p.rate >= mostRate {
		*p = pace{}
	}
}
