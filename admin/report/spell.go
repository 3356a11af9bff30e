package report

import "time"

const (
	// spellFrom is how many failures make a spell: one or two are no reason to wake a person.
	spellFrom = 3
	// spellOver is how many successes in a row end a spell.
	spellOver = 3
	// spellKept is for how long after its last failure a spell is shown: later, the sender has
	// probably given up.
	spellKept = 24 * time.Hour
)

// Failure is why a request to the service failed.
type Failure struct {
	Cause string `json:"cause,omitempty"` // such as "the service answered 500"
	Said  string `json:"said,omitempty"`  // the beginning of what it answered; "" = that is not known
}

// Spell is a time in which requests of a route to the service fail, with times of the wall clock.
type Spell struct {
	Since  time.Time `json:"since"` // the first failure
	Last   time.Time `json:"last"`  // the newest failure
	Failed int       `json:"failures"`
	All    int       `json:"all"` // requests since then
	Failure
}

// spell follows the requests of a route. The zero value: none fails.
type spell struct {
	since, last time.Time // by the clock of the tally
	failed, all int
	good        int // the newest in a row
	why         Failure
}

// add notes a request. One that failed for a reason that says nothing of the service is left out.
func (s *spell) add(result Result, why Failure, now time.Time) {
	switch {
	case result == 0, result != Succeeded && why == Failure{}:
		return
	case result != Succeeded:
		if s.failed == 0 {
			s.since = now
		}
		s.failed, s.all, s.good, s.last, s.why = s.failed+1, s.all+1, 0, now, why
		return
	case s.failed == 0:
		return
	}
	s.all, s.good = s.all+1, s.good+1
	if s.good >= spellOver || 2*s.failed < s.all {
		*s = spell{}
	}
}

// now returns the spell as it is at that time; nil: the route does not fail.
func (s *spell) now(at moment) *Spell {
	if s.failed < spellFrom || at.at.Sub(s.last) > spellKept {
		return nil
	}
	return &Spell{Since: at.wall(s.since), Last: at.wall(s.last), Failed: s.failed, All: s.all, Failure: s.why}
}
