package idem

// Status is where an execution is in its life. It only moves forward:
//
//	PENDING → RUNNING → SUCCESS | FAILED | ABORTED
//
// with CANCEL_REQUESTED between an active status and an end. The first terminal status wins and never changes.
type Status string

// The statuses. FAILED is an error of the system or the upstream and has an error; ABORTED is the decision of a person or a
// policy and has who, when and why, and never an error.
const (
	Pending         Status = "PENDING"
	Running         Status = "RUNNING"
	CancelRequested Status = "CANCEL_REQUESTED"
	Success         Status = "SUCCESS"
	Failed          Status = "FAILED"
	Aborted         Status = "ABORTED"
)

// Refused is what the deliveries of an event have in common of which no execution is known: none of them ran. It is no status of an execution.
const Refused Status = "REFUSED"

// Released is an event whose record a person removed, so that it runs again, and that has not done so yet. It is no status of an execution either.
const Released Status = "RELEASED"

// Terminal reports whether s is an end.
func (s Status) Terminal() bool { return s == Success || s == Failed || s == Aborted }

// Outcome says what is known of the effect of an execution. The zero value is for one that has not ended.
type Outcome string

// The outcomes.
const (
	Executed    Outcome = "executed"     // a whole answer came
	NotExecuted Outcome = "not_executed" // provably nothing reached the upstream
	Unknown     Outcome = "unknown"      // bytes were sent, and no whole answer came
)
