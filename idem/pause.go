package idem

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// PauseScope is what a pause is for: a route, or the workflows that a pattern covers. One of the
// two is set.
type PauseScope struct {
	Route string // a name; "" = it is for workflows
	// Workflow is a pattern; "*" stands for any characters.
	Workflow string
}

const (
	pauseOfRoute    = "route:"
	pauseOfWorkflow = "workflow:"
	// maxPauseScope bounds the scope in bytes, because it is a part of a key.
	maxPauseScope = 2048
	// pauseExpected is how long a pause without an end is expected to last. A longer one is
	// reported.
	pauseExpected = time.Hour
)

// errPauseScope is wrapped by the errors of ParsePauseScope.
var errPauseScope = errors.New("give route:NAME, or workflow:PATTERN, in which * stands for any characters")

// ParsePauseScope reads route:NAME or workflow:PATTERN. The error says which of these to give.
func ParsePauseScope(text string) (PauseScope, error) {
	var s PauseScope
	if name, ok := strings.CutPrefix(text, pauseOfRoute); ok {
		s.Route = name
	} else if pattern, ok := strings.CutPrefix(text, pauseOfWorkflow); ok {
		s.Workflow = pattern
	}
	if s.Route == "" && s.Workflow == "" || len(text) > maxPauseScope || strings.ToValidUTF8(text, "") != text {
		return PauseScope{}, fmt.Errorf("%q is nothing that can be paused: %w", cutText(text), errPauseScope)
	}
	return s, nil
}

func cutText(text string) string {
	const longest = 100
	if len(text) > longest {
		return text[:longest] + "…"
	}
	return text
}

// String returns the text that ParsePauseScope reads.
func (s PauseScope) String() string {
	if s.Route != "" {
		return pauseOfRoute + s.Route
	}
	return pauseOfWorkflow + s.Workflow
}

// Covers reports whether the scope covers executions of that route and workflow.
func (s PauseScope) Covers(route, workflow string) bool {
	if s.Route != "" {
		return s.Route == route
	}
	return MatchPattern(s.Workflow, workflow)
}

// MatchPattern matches text with a pattern, in which "*" stands for any characters. It takes the
// shortest match for each star, which finds a match if there is one, in time that no pattern can
// blow up.
func MatchPattern(pattern, text string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	text, ok := strings.CutPrefix(text, first)
	if !star || !ok {
		return ok && text == ""
	}
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(text, part)
		}
		if _, text, ok = strings.Cut(text, part); !ok {
			return false
		}
		rest = more
	}
}

// Pause says that nothing of its scope begins until it is resumed, or until it ends by itself.
// Running executions go on.
type Pause struct {
	Scope  PauseScope `json:"-"`      // in the key of the pause
	By     string     `json:"by"`     // who paused it
	Reason string     `json:"reason"` // for operators
	// Since is when it was paused, by the clock of the process that handled the request: for
	// operators.
	Since time.Time `json:"since"`
	// For is after what time the ledger ends it; 0 = it does not end by itself.
	For time.Duration `json:"forNs,omitempty"`
	// Revision is the ledger's revision at which it was written.
	Revision int64 `json:"-"`
}

// Until returns when it ends by itself, by the clock that Since is of; the zero time: it does not.
func (p *Pause) Until() time.Time {
	if p.For == 0 {
		return time.Time{}
	}
	return p.Since.Add(p.For)
}

// Due returns when it should be over: at its own end, or after pauseExpected.
func (p *Pause) Due() time.Time {
	if p.For == 0 {
		return p.Since.Add(pauseExpected)
	}
	return p.Until()
}

// RetryAfter returns when the sender of a refused delivery should send it again: in a second at
// least, in a minute at most.
func (p *Pause) RetryAfter(now time.Time) time.Duration {
	const often = time.Minute
	if left := p.Until().Sub(now); p.For != 0 && left < often {
		return max(left, time.Second)
	}
	return often
}

// PauseState is a pause and its effect, over all processes.
type PauseState struct {
	Pause
	// Waiting counts the executions in the queues of its scope whose senders wait for the answer.
	Waiting int
	// Parked counts those in the queues whose events were accepted.
	Parked int
	// Running counts the executions of its scope that have begun and not ended: running, held,
	// closed after an unknown outcome, or in a try.
	Running int
	// Unacknowledged are the processes that have not acknowledged the pause, so that something may
	// still begin there.
	Unacknowledged []string
	// More says that there are more than were counted.
	More bool
}

// Drained reports whether nothing of the scope runs, and nothing can begin.
func (p *PauseState) Drained() bool { return p.Running == 0 && len(p.Unacknowledged) == 0 && !p.More }

// Errors about pauses.
var (
	// ErrPaused says that the execution may not begin now, because its route or workflow is paused.
	ErrPaused = errors.New("its route or workflow is paused")
	// ErrNoPause says that nothing of that name is paused.
	ErrNoPause = errors.New("nothing of that name is paused")
)
