package idem

import (
	"encoding/json"
	"time"
)

// ReplicaNote is what a process says of itself to operators at the other ones. No decision depends
// on it.
type ReplicaNote struct {
	Writer  string          `json:"-"`                 // names the process; it is not used again
	Session string          `json:"session,omitempty"` // its latest session; "" = it has had none
	At      time.Time       `json:"at"`                // when it was written, by the clock of the process
	Stopped bool            `json:"stopped,omitempty"` // the process stopped in order
	Says    json.RawMessage `json:"says,omitempty"`    // in a form that its readers know
	// Alive says that the session exists, as far as the process that reads the note knows.
	Alive bool `json:"-"`
	Self  bool `json:"-"` // it is of the process that reads it
}
