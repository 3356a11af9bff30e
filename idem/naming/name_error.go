package naming

import "fmt"

// The codes of a NameError, as senders see them.
const (
	CodeWorkflowMissing  = "workflow_missing"
	CodeEventIDMissing   = "event_id_missing"
	CodeLimitMissing     = "limit_missing"
	CodeEventIDAmbiguous = "event_id_ambiguous" // a value is given twice, in the workflow too
	CodeKeyTooLong       = "key_too_long"
)

// The parts that a NameError is about.
const (
	PartWorkflow = "workflow"
	PartEventID  = "event_id"
	PartLimit    = "limit"
)

// NameError says why a delivery cannot be named. The delivery is at fault, not the proxy: the
// answer is 400.
type NameError struct {
	Code   string
	Part   string // PartWorkflow or PartEventID
	Source string // the source at fault, as the template spells it; empty when there is none
	Detail string // what the sender must do; holds no part of what it sent
}

// Error returns code and detail.
func (e *NameError) Error() string { return e.Code + ": " + e.Detail }

// nameError makes the error for the sender. whenMissing is the code for a missing value.
func (f *failure) nameError(name, whenMissing string) *NameError {
	e := &NameError{Part: name}
	if f.source != nil {
		e.Source = f.source.Text
	}
	switch {
	case f.result == ambiguous:
		e.Code = CodeEventIDAmbiguous
		e.Detail = fmt.Sprintf("%s is given more than once: send it once", e.Source)
	case f.result == longJSON:
		e.Code = CodeKeyTooLong
		e.Detail = fmt.Sprintf("the JSON around %s is longer than %d bytes: send less, or the ID in a field of its own",
			e.Source, f.result.byteLimit())
	case f.result == tooLong:
		e.Code = CodeKeyTooLong
		e.Detail = fmt.Sprintf("%s is longer than %d bytes: send a shorter one", e.Source, MaxValue)
	case f.source == nil:
		e.Code = whenMissing
		e.Detail = "the route reads no event ID: give it an event_id, or let on_missing_event_id be payload or pass"
	default:
		e.Code = whenMissing
		e.Detail = fmt.Sprintf("the %s needs %s: it is absent, empty, or no single text, number or boolean",
			partWords(name), e.Source)
	}
	return e
}

func partWords(name string) string {
	if name == PartEventID {
		return "event ID"
	}
	return name
}
