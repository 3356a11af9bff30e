package idem

import "time"

// ParkState is where a request stands that the ledger keeps.
type ParkState string

// The states of a kept request.
const (
	ParkWaiting    ParkState = ParkState(DecisionParked) // its execution waits or is tried
	ParkBlocked    ParkState = "blocked"                 // its execution waits for a person
	ParkDeadLetter ParkState = "dead_letter"             // its execution has ended, and the request is kept with the record
)

// Choices lists the states of a kept request.
func (ParkState) Choices() []string { return words(ParkWaiting, ParkBlocked, ParkDeadLetter) }

// ParkedEntry is what every process knows of a request that the ledger keeps.
type ParkedEntry struct {
	Execution ExecutionID `json:"-"`
	Scope
	Route string    `json:"route"`
	Since time.Time `json:"since"` // when it was parked
	Bytes int64     `json:"bytes"`
	State ParkState `json:"state"`
	// Revision is when this was last said, by the ledger's count. Of dead letters of one line it is the order in which they were in line.
	Revision int64 `json:"-"`

	// What its lock says, for whoever lets it run again.
	MaxAge       time.Duration `json:"maxAgeNs,omitempty"`
	MaxDuration  time.Duration `json:"maxDurationNs,omitempty"`
	ReleaseDelay time.Duration `json:"releaseDelayNs,omitempty"`
	ReplayBody   int           `json:"replayBody,omitempty"`
	ReplayFor    time.Duration `json:"replayForNs,omitempty"`
}

// ParkedQuery selects kept requests. The zero value is all of them.
type ParkedQuery struct {
	Workflow string    // a pattern, see MatchPattern; "" = any
	State    ParkState // "" = any
	Route    string    // "" = any
	// Takes narrows ParkedExecutions down to those for which it holds; nil = all.
	Takes  func(*Found) bool
	Limit  int    // at most so many on a page; 0 = 100
	Cursor string // of the page before, of the same list; "" = the first page
}

// ParkedPage is a part of the kept requests, in the order of their execution IDs; see ExecutionPage.
type ParkedPage struct {
	Entries    []ParkedEntry
	NextCursor string
	Revision   int64 // that all was read at
}
