package idem

import "time"

// ParkState is the state of a stored request.
type ParkState string

// The states of a stored request.
const (
	ParkWaiting ParkState = ParkState(DecisionParked) // its execution waits or is tried
	ParkBlocked ParkState = "blocked"                 // its execution needs a decision
	// its execution has ended, and the request is kept with the record
	ParkDeadLetter ParkState = "dead_letter"
)

// Choices lists the states of a stored request.
func (ParkState) Choices() []string { return asStrings(ParkWaiting, ParkBlocked, ParkDeadLetter) }

// ParkedEntry is what every process knows of a stored request.
type ParkedEntry struct {
	Execution ExecutionID `json:"-"` // in the key of the entry
	Scope
	Route string    `json:"route"` // of the execution
	Since time.Time `json:"since"` // when it was parked
	Bytes int64     `json:"bytes"` // of the request as it is stored
	State ParkState `json:"state"` // what the request is kept for
	// Revision is the ledger's revision of the last change. It is the order in which dead letters
	// of one queue were in it.
	Revision int64 `json:"-"`

	// The fields of its lock that are needed to let it run again.
	MaxAge       time.Duration `json:"maxAgeNs,omitempty"`
	MaxDuration  time.Duration `json:"maxDurationNs,omitempty"`
	ReleaseDelay time.Duration `json:"releaseDelayNs,omitempty"`
	ReplayBody   int           `json:"replayBody,omitempty"`
	ReplayFor    time.Duration `json:"replayForNs,omitempty"`
	Question     *Question     `json:"question,omitempty"` // of dead letters alone
}

// agesAgain is for how long an event is tried that a person lets run again, on a route that parks
// nothing.
const agesAgain = 24 * time.Hour

// RunsAgain returns how an execution of the event of r runs that a person lets run again: the
// fields that follow Revision. question is Request.Question.
func (p *Policy) RunsAgain(r *Record, question string) *ParkedEntry {
	e := &ParkedEntry{MaxAge: agesAgain, MaxDuration: p.MaxDuration, ReleaseDelay: p.ReleaseDelay,
		ReplayBody: p.ReplayBody,
		Question:   p.Ask.newQuestion(question)}
	if p.Park != nil {
		e.MaxAge = p.Park.MaxAge
	}
	if p.ReplayRetention < r.Retention {
		e.ReplayFor = p.ReplayRetention
	}
	return e
}

// ParkedQuery selects stored requests. The zero value selects all of them.
type ParkedQuery struct {
	Workflow string    // a pattern, see MatchPattern; "" = any
	State    ParkState // "" = any
	Route    string    // "" = any
	// Matches selects by the execution, in ParkedExecutions; nil = all.
	Matches  func(*Found) bool
	PageSize int    // at most so many on a page; 0 = 100
	Cursor   string // of the page before, of the same list; "" = the first page
}

// ParkedPage is a part of the stored requests, in the order of their execution IDs; see
// ExecutionPage.
type ParkedPage struct {
	Entries    []ParkedEntry // at most ParkedQuery.PageSize
	NextCursor string        // asks for the next page; "" = this is the last one
	Revision   int64         // at which all was read
}
