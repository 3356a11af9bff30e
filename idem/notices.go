package idem

import "encoding/json"

// Notices are the messages that people got about what needs attention, and the process that sends
// them: one at a time. No decision depends on them. The zero value: nothing is kept.
type Notices struct {
	Writer  string          `json:"writer"`            // names the process that tells; it is not used again
	Session string          `json:"session,omitempty"` // of that process when it wrote; "" = it had none
	Says    json.RawMessage `json:"says,omitempty"`    // in a form that the processes that tell know
	// of the ledger, at which they were written; 0 = nothing is kept
	Revision int64 `json:"-"`
	// Alive says that the session exists, as far as the process that reads the notices knows.
	Alive bool `json:"-"`
	Self  bool `json:"-"` // the process that reads them wrote them
}
