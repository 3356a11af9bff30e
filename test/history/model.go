package history

import (
	"fmt"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"hooklock/idem"
)

// kind is what an operation asks for.
type kind string

const (
	claiming  kind = "claim"
	settling  kind = "settle"
	releasing kind = "release"
)

// input is an operation.
type input struct {
	kind      kind
	workflow  string
	execution idem.ExecutionID
	prev      int64 // of a claim: the record's revision that it relies on
	token     int64 // of a settle or release
	apart     bool  // it is about another event of the workflow, one that never has a record
}

// output is what the client saw of it.
type output struct {
	unknown bool // no answer: it may be applied at any later time, or never
	done    bool // it was applied
	token   int64
	// Of an applied settle, or of what stood in the way of a claim.
	holder   idem.ExecutionID // empty: the lock was free
	recorded idem.ExecutionID // empty: no record
	revision int64            // of the record; 0 = absent
	queue    bool             // somebody waited
}

// unheard is a revision of a record that nobody has been told of yet.
const unheard = -1

// state is one workflow with one event.
type state struct {
	holder   idem.ExecutionID
	token    int64 // the largest that was handed out
	recorded idem.ExecutionID
	revision int64
}

// exclusion is the model of a ledger whose sessions live: at most one holder, growing tokens, the
// record of the last end.
var exclusion = model(func(s state, in input, out output) []state {
	switch {
	case out.unknown:
		after := apply(s, in)
		if after == nil {
			return []state{s}
		}
		return []state{s, *after}
	case in.kind == claiming && !out.done:
		return refused(s, in, out)
	case !out.done: // a settle or a release that was told that the lock was lost
		if s.holder == in.execution {
			return nil
		}
		return []state{s}
	}
	after := apply(s, in)
	if after == nil {
		return nil
	}
	if in.kind == claiming {
		if out.token <= s.token {
			return nil
		}
		after.token = out.token
	}
	if in.kind == settling {
		after.revision = out.revision
	}
	return []state{*after}
})

// apply is the state after in was applied to s; nil where it cannot be.
func apply(s state, in input) *state {
	switch in.kind {
	case claiming:
		if s.holder == "" && in.apart {
			s.holder = in.execution
			return &s
		}
		if s.holder != "" || s.revision != in.prev && s.revision != unheard {
			return nil
		}
		s.holder, s.revision = in.execution, in.prev
	case settling:
		if s.holder != in.execution {
			return nil
		}
		s.holder, s.recorded, s.revision = "", in.execution, unheard
	case releasing:
		if s.holder != in.execution {
			return nil
		}
		s.holder = ""
	}
	return &s
}

// refused: what stood in the way of a claim was really there.
func refused(s state, in input, out output) []state {
	if s.holder != out.holder || s.recorded != out.recorded || s.revision != out.revision && s.revision != unheard {
		return nil
	}
	if out.holder == "" && out.revision == in.prev && !out.queue {
		return nil // nothing stood in the way
	}
	s.revision = out.revision
	return []state{s}
}

// order is the model of a ledger whose sessions may be lost at any time: locks are taken over.
// Tokens grow with each holder, and nobody ends an execution with success after a newer holder has
// begun.
var order = model(func(s state, in input, out output) []state {
	switch {
	case out.unknown || !out.done:
		return []state{s}
	case in.kind == claiming && out.token <= s.token:
		return nil
	case in.kind == claiming:
		s.token = out.token
	case in.kind == settling && s.token != in.token:
		return nil
	}
	return []state{s}
})

func model(step func(state, input, output) []state) porcupine.Model {
	return modelOf(func(in input) string { return in.workflow }, step)
}

// modelOf makes a model of what step says of a state, an operation and its answer; workflows are
// independent of each other.
func modelOf[S comparable, I, O any](workflow func(I) string, step func(S, I, O) []S) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: func(ops []porcupine.Operation) [][]porcupine.Operation { return byWorkflow(ops, workflow) },
		Init:      func() []any { var s S; return []any{s} },
		Step: func(s, in, out any) []any {
			var next []any
			for _, n := range step(s.(S), in.(I), out.(O)) {
				next = append(next, n)
			}
			return next
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
	}
	return m.ToModel()
}

func byWorkflow[I any](ops []porcupine.Operation, workflow func(I) string) [][]porcupine.Operation {
	at := map[string]int{}
	var parts [][]porcupine.Operation
	for _, op := range ops {
		w := workflow(op.Input.(I))
		i, known := at[w]
		if !known {
			i = len(parts)
			at[w] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}

// Verdict is what a check found.
type Verdict = porcupine.CheckResult

// The verdicts. Undecided: the check ran out of time.
const (
	Legal     = porcupine.Ok
	Illegal   = porcupine.Illegal
	Undecided = porcupine.Unknown
)

// CheckExclusion says whether a ledger whose sessions lived could have answered like this.
func (h *History) CheckExclusion(limit time.Duration) Verdict { return h.check(exclusion, limit) }

// CheckOrder says whether a ledger whose sessions were lost could have answered like this.
func (h *History) CheckOrder(limit time.Duration) Verdict { return h.check(order, limit) }

// CheckParked says whether a ledger whose sessions lived could have answered like this about what
// is parked.
func (h *History) CheckParked(limit time.Duration) Verdict { return h.check(parkedLine, limit) }

func (h *History) check(m porcupine.Model, limit time.Duration) Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	return porcupine.CheckOperationsTimeout(m, h.operations, limit)
}

// never is when an operation without an answer returned.
const never = math.MaxInt64
