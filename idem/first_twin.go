package idem

import "time"

// Twin is an event that is to be one with the first event of its body, in its route and workflow
// (twins: same_event).
type Twin struct {
	Scope          Scope
	Route, EventID string
	Body           Fingerprint   // of its request, without the event ID
	Window         time.Duration // for how long after the first event another one with its body is its twin
	Life           time.Duration // for how long an ID is known to be one of the first event
}

// FirstTwin is the event that an event is. The zero value: it is none but itself.
type FirstTwin struct {
	Key     Key
	EventID string
	// New says that the ID of the twin was not known before.
	New bool
}

// TwinLife returns for how long after its arrival the ID of a twin is known to be one of the first
// event: as long as that may run and then be remembered.
func (p *Policy) TwinLife() time.Duration {
	life := p.Retention + p.MaxDuration
	if p.Park != nil {
		life += p.Park.MaxAge
	}
	return life
}
