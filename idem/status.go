package idem

import (
	"errors"
	"fmt"
)

// errContradiction is returned for a record that says two things which cannot both be true: a bug
// in the code that made it.
var errContradiction = errors.New("record contradicts itself")

// Precedes reports whether an execution that was seen in s may be seen in next afterwards. It is
// the one-way order of the statuses: no status comes back, and nothing comes after an end.
func (s Status) Precedes(next Status) bool {
	return s.shownRank() > 0 && s.shownRank() < next.shownRank()
}

// shownRank is 0 for a text that is no status.
func (s Status) shownRank() int {
	switch s {
	case Pending:
		return 1
	case Running:
		return 2
	case CancelRequested:
		return 3
	case Success, Failed, Aborted:
		return 4
	}
	return 0
}

// Check reports an errContradiction. FAILED has an error and no Abort, ABORTED has an Abort and no
// error, SUCCESS has neither; and only what was executed is a SUCCESS, or is kept for duplicates.
// What was executed is ABORTED only if it was parked: a try was answered, and the event had not
// come to its end.
func (r *Record) Check() error {
	var wrong string
	switch {
	case r.Status == Failed && (r.Error == nil || r.Abort != nil):
		wrong = "it must have an error and no abort"
	case r.Status == Aborted && (r.Abort == nil || r.Error != nil):
		wrong = "it must have an abort and no error"
	case r.Status == Aborted && r.Outcome == Executed && (r.Tries == 0 || r.Remembered):
		wrong = "an executed one cannot be ABORTED"
	case r.Status == Success && (r.Error != nil || r.Abort != nil || r.Outcome != Executed):
		wrong = "it must be executed, without an error and an abort"
	case !r.Status.Terminal():
		wrong = "a record needs a terminal status"
	case r.Outcome != Executed && r.Outcome != NotExecuted && r.Outcome != Unknown:
		wrong = "the outcome must be known by name"
	case r.Remembered && r.Outcome != Executed:
		wrong = "only an executed one can be kept"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s with outcome %q, but %s", errContradiction, r.Status, r.Outcome, wrong)
}

// Status is where an execution is in its life. It only moves forward:
//
//	PENDING → RUNNING → SUCCESS | FAILED | ABORTED
//
// with CANCEL_REQUESTED between an active status and an end. The first terminal status wins and
// never changes.
type Status string

// The statuses. FAILED is an error of the system or the upstream and has an error; ABORTED is the
// decision of a person or a policy and has who, when and why, and never an error.
const (
	Pending         Status = "PENDING"
	Running         Status = "RUNNING"
	CancelRequested Status = "CANCEL_REQUESTED"
	Success         Status = "SUCCESS"
	Failed          Status = "FAILED"
	Aborted         Status = "ABORTED"
)

// Refused stands for an event that has deliveries but no execution: none of them ran. It is no
// status of an execution.
const Refused Status = "REFUSED"

// Released stands for an event whose record was removed, so that it may run again, and that has not
// done so yet. It is no status of an execution either.
const Released Status = "RELEASED"

// Terminal reports whether s is an end.
func (s Status) Terminal() bool { return s == Success || s == Failed || s == Aborted }

// Outcome says what is known of the effect of an execution. The zero value is for one that has not
// ended.
type Outcome string

// The outcomes.
const (
	Executed    Outcome = "executed"     // a whole answer came
	NotExecuted Outcome = "not_executed" // provably nothing reached the upstream
	Unknown     Outcome = "unknown"      // it may have taken effect, wholly or in part
)
