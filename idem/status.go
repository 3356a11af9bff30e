package idem

import (
	"errors"
	"fmt"
)

// ErrContradiction is a record that says two things which cannot both be true: a bug of who made it.
var ErrContradiction = errors.New("record contradicts itself")

// Precedes reports whether an execution that was seen in s may be seen in next afterwards. It is the one-way order of the statuses: no status
// comes back, and nothing comes after an end.
func (s Status) Precedes(next Status) bool { return s.rank() > 0 && s.rank() < next.rank() }

// rank is 0 for what is no status.
func (s Status) rank() int {
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

// Check reports an ErrContradiction. FAILED has an error and nobody who decided it, ABORTED has somebody who decided it and no error, SUCCESS
// has neither; and only what was executed is a SUCCESS, or is kept for duplicates.
func (r *Record) Check() error {
	var wrong string
	switch {
	case r.Status == Failed && (r.Error == nil || r.Abort != nil):
		wrong = "it has an error and nobody who decided it"
	case r.Status == Aborted && (r.Abort == nil || r.Error != nil):
		wrong = "somebody decided it, and it has no error"
	case r.Status == Aborted && r.Outcome == Executed:
		wrong = "what was executed whole was not aborted"
	case r.Status == Success && (r.Error != nil || r.Abort != nil || r.Outcome != Executed):
		wrong = "it was executed, without an error and without an abort"
	case !r.Status.Terminal():
		wrong = "a record is an end"
	case r.Outcome != Executed && r.Outcome != NotExecuted && r.Outcome != Unknown:
		wrong = "something is known of its effect"
	case r.Kept && r.Outcome != Executed:
		wrong = "only what was executed is kept"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s with outcome %q, but %s", ErrContradiction, r.Status, r.Outcome, wrong)
}
