package history

import (
	"strings"

	"hooklock/idem"
)

// The operations on what is parked.
const (
	enqueuing  kind = "enqueue" // an event is accepted at the end of its line
	parking    kind = "park"    // the execution in the lock is accepted
	taking     kind = "take"    // a carrier takes the first of the line, or the one in the lock that has no carrier
	trying     kind = "attempt"
	resting    kind = "rest"
	puttingOff kind = "put down" // a carrier leaves it to the next one
	asking     kind = "end"      // a person skips or cancels it
	rerunning  kind = "rerun"    // a person lets the event of one that has ended run again, at the end of its line
)

// step is an operation on a line.
type step struct {
	kind      kind
	workflow  string
	execution idem.ExecutionID // of a rerun the new one; "" where nobody has heard which that is
	of        idem.ExecutionID // the one that ended, of a rerun
	carrier   int              // who has the lock; each take and claim is another one
}

// came is what the client saw of a step.
type came struct {
	unknown   bool // no answer: it may be applied at any later time, or never
	done      bool
	cancelled bool // not done, because a person had asked to stop
	token     int64
}

// line is a workflow with what is parked in it. Executions are separated by commas.
type line struct {
	queue   string
	lock    idem.ExecutionID
	carrier int // 0: nobody carries what is in the lock
	parked  bool
	token   int64  // the largest that was handed out
	again   string // those that somebody has let run again
	// late: who has been accepted perhaps, and perhaps not yet: a request without an answer may
	// arrive at any later time. The checker would find that by itself, but only after all other
	// orders of what came in between.
	late string
}

// by is what the line may have become until now.
func (s line) by() []line {
	all := []line{s}
	for _, x := range strings.SplitAfter(s.late, ",") {
		if x == "" {
			continue
		}
		next := s
		next.late = strings.Replace(s.late, x, "", 1)
		next.queue += x
		all = append(all, next.by()...)
	}
	return all
}

// order of what is parked: the first of a line runs first, under one carrier at a time, each try
// under a larger token than all before, and what has ended does not come back, but as another
// execution where a person says so, once for each. Sessions live.
var parkedLine = modelOf(func(in step) string { return in.workflow }, func(s line, in step, out came) []line {
	if in.kind == enqueuing && out.unknown {
		s.late += string(in.execution) + ","
		return []line{s}
	}
	var all []line
	for _, now := range s.by() {
		all = append(all, now.step(in, out)...)
	}
	return all
})

func (s line) step(in step, out came) []line {
	after := s.apply(in)
	switch {
	case out.unknown && (after == nil || *after == s):
		return []line{s}
	case out.unknown && in.kind == puttingOff: // it ends with that where a person had asked
		return []line{s, *after, {queue: s.queue, token: s.token, again: s.again, late: s.late}}
	case out.unknown:
		return []line{s, *after}
	case out.cancelled && in.kind == puttingOff: // and so it ended
		if after != nil {
			after.lock, after.parked = "", false
		}
	case out.cancelled:
		if s.lock == in.execution && s.carrier == in.carrier {
			return []line{s}
		}
		return nil
	case !out.done: // it was told that it has nothing any more
		if s.lock == in.execution && s.carrier == in.carrier {
			return nil
		}
		return []line{s}
	}
	if after == nil {
		return nil
	}
	switch in.kind {
	case claiming, taking, trying:
		if out.token < s.token || out.token == s.token && in.kind != taking {
			return nil
		}
		after.token = out.token
	case asking:
		if s.lock == in.execution { // its carrier may have been asked, and ends it
			return []line{s, *after}
		}
	}
	return []line{*after}
}

// apply is the line after in was applied to it; nil where it cannot be.
func (s line) apply(in step) *line {
	x := string(in.execution) + ","
	own := s.lock == in.execution && s.carrier == in.carrier
	switch in.kind {
	case enqueuing:
		s.queue += x
		return &s
	case claiming:
		if s.lock != "" || s.queue != "" {
			return nil
		}
		s.lock, s.carrier, s.parked = in.execution, in.carrier, false
		return &s
	case taking:
		return s.take(in)
	case rerunning:
		of := string(in.of) + ","
		if s.lock == in.of || strings.Contains(","+s.queue, ","+of) || strings.Contains(","+s.again, ","+of) {
			return nil
		}
		if in.execution == "" {
			x = unnamed(in.of) + ","
		}
		s.again, s.queue = s.again+of, s.queue+x
		return &s
	case asking:
		s.queue = strings.Replace(s.queue, x, "", 1)
		if s.lock == in.execution && s.carrier == 0 {
			s.lock, s.parked = "", false
		}
		return &s
	}
	switch {
	case !own:
		return nil
	case in.kind == parking:
		s.parked = true
	case in.kind == trying, in.kind == resting:
		if !s.parked {
			return nil
		}
	case in.kind == puttingOff && s.parked:
		s.carrier = 0
	default: // it ends, with a record or as if it had never been
		s.lock, s.carrier, s.parked = "", 0, false
	}
	return &s
}

// take gives a line a carrier. Without an answer nobody knows of which execution, and it is put
// down again.
func (s line) take(in step) *line {
	first, rest, _ := strings.Cut(s.queue, ",")
	switch {
	case s.lock == "" && first != "" && in.mayBe(first):
		s.lock, s.queue = idem.ExecutionID(first), rest
	case s.lock == "" || s.carrier != 0 || !s.parked || !in.mayBe(string(s.lock)):
		return nil
	}
	s.parked, s.carrier = true, in.carrier
	if in.execution == "" {
		s.carrier = 0
	} else {
		s.lock = in.execution
	}
	return &s
}

// mayBe reports whether in can be about the execution of that name.
func (in step) mayBe(name string) bool {
	return in.execution == "" || name == string(in.execution) || name == unnamed(in.execution)
}

// unnamed stands for an execution of the event of id that nobody has heard the name of: an ID ends
// in random bits, and begins with its event.
func unnamed(id idem.ExecutionID) string { return "?" + string(id[:min(len(id)-1, len("exec_")+25)]) }
