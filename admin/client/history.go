package client

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"
)

// Attempt is one execution of an event, in short.
type Attempt struct {
	ExecutionID string  `json:"executionId"`
	Status      Status  `json:"status"`
	Outcome     Outcome `json:"outcome,omitempty"`
	StartedAt   Time    `json:"startedAt"`
	FinishedAt  Time    `json:"finishedAt,omitzero"`
	// Of FAILED alone. Its detail says how far the exchange with the service went, in 160 bytes if
	// the event has run again.
	Error       *Failure `json:"error,omitempty"`
	AbortedAt   Time     `json:"abortedAt,omitzero"` // as of an execution, as are the next two
	AbortedBy   string   `json:"abortedBy,omitempty"`
	AbortReason string   `json:"abortReason,omitempty"`
	// The status of the service's answer. Absent if no whole answer came.
	Answer  int    `json:"answerStatus,omitempty"`
	Tries   int    `json:"tries,omitempty"` // how often the service was called, if it was parked
	TraceID string `json:"traceId,omitempty"`
	// What of its request differs from that of the attempt before. Absent if nothing does, or if
	// that is not known.
	Differs []string `json:"differs,omitempty"`
}

// Arrivals are the deliveries of an event that were not executed. They are absent where none is
// kept, and in a list unless a decision was asked for.
type Arrivals struct {
	Counts map[string]int64 `json:"counts"` // how many deliveries, by decision
	First  Arrival          `json:"first"`
	Newest []Arrival        `json:"newest" jsonschema:"maxItems=16"` // the newest first
}

// Arrival is a delivery with another decision than executed. The event may have run all the same:
// later if it was parked, without a lock if it was bypassed, and perhaps if the call broke off.
type Arrival struct {
	At         Time   `json:"at"`                  // when it was received
	AnsweredAt Time   `json:"answeredAt,omitzero"` // when its sender was answered; absent if that is not known
	Decision   string `json:"decision"`
	// The decision that it would have got, if it was forwarded all the same.
	Would  string `json:"would,omitempty"`
	Status int    `json:"status"` // the status of the response to its sender
	// The execution that stood in the way, or whose answer it got, or its own.
	ExecutionID string `json:"executionId,omitempty"`
	// Its own event ID, if it was taken for this event because of its body (twins: same_event).
	EventID string   `json:"eventId,omitempty"`
	From    string   `json:"from,omitempty"`    // the IP address of the connection
	Differs []string `json:"differs,omitempty"` // of a mismatch: what differs from the first delivery
	TraceID string   `json:"traceId,omitempty"`
	// Of the newest: the error of the call or of etcd that was the reason, at most 160 bytes.
	Detail string         `json:"detail,omitempty"`
	Behind *ArrivalBehind `json:"behind,omitempty"`
}

// Answered returns when the sender was answered or, if that is not known, when the delivery was
// received.
func (a *Arrival) Answered() time.Time {
	if a.AnsweredAt.IsZero() {
		return a.At.Time
	}
	return a.AnsweredAt.Time
}

// Asked is what the service said when Hooklock asked it for an unknown outcome (on_unknown: ask).
// It is absent if it was not asked.
type Asked struct {
	// What follows from the answer. unknown: no answer decided it, and a person must.
	Outcome Outcome `json:"outcome"`
	At      Time    `json:"at"`
	URL     string  `json:"url"`              // what was asked: a URL, or a path of the service
	Status  int     `json:"status,omitempty"` // the status of the last answer; absent if none came
	Detail  string  `json:"detail,omitempty"` // why the answer decided nothing; absent if it did
	Times   int     `json:"times"`            // how often the service was asked
}

// Text returns in one line what the service said.
func (a *Asked) Text() string {
	said := strings.ReplaceAll(string(a.Outcome), "_", " ")
	if a.Status != 0 {
		said += " (" + strconv.Itoa(a.Status) + ")"
	}
	if a.Times > 1 {
		said += " after " + strconv.Itoa(a.Times) + " questions"
	}
	if a.Detail != "" {
		said += ": " + a.Detail
	}
	return said
}

// FailedAnswer is an answer of the service by which a try of a parked event failed.
type FailedAnswer struct {
	At     Time `json:"at"`
	Status int  `json:"status"`
	// The first 512 bytes of its body. Absent if the token lacks the scope bodies, if it is not
	// kept, and if it is no text.
	Text string `json:"text,omitempty"`
}

// LastFailed returns ": " and the text of the latest failed answer, in one line; "" if it is not
// known.
func (e *Execution) LastFailed() string {
	n := len(e.FailedAnswers)
	if n == 0 || e.FailedAnswers[n-1].Text == "" {
		return ""
	}
	return ": " + strings.Join(strings.Fields(e.FailedAnswers[n-1].Text), " ")
}

// ReleasedExecution is the latest execution of an event whose record a person removed, so that it
// can run again.
type ReleasedExecution struct {
	ExecutionID string  `json:"executionId"`
	Status      Status  `json:"status"`
	Outcome     Outcome `json:"outcome"`
	By          string  `json:"by"` // the name of the token
	Reason      string  `json:"reason"`
	At          Time    `json:"at"`
}

// Text returns in one line who removed the record, why, and how the execution had ended; "" for
// nil.
func (r *ReleasedExecution) Text() string {
	if r == nil {
		return ""
	}
	return r.By + " released it to run again: " + r.Reason + "; " + r.ExecutionID + " had ended as " +
		string(r.Status) + ", " + strings.ReplaceAll(string(r.Outcome), "_", " ")
}

// ArrivalBehind is the execution that had the lock when the delivery was refused. It is absent if
// there was none, or if nothing is known of it any more. A list has it for the newest arrival
// alone.
type ArrivalBehind struct {
	EventID    string `json:"eventId,omitempty"`
	StartedAt  Time   `json:"startedAt"`
	FinishedAt Time   `json:"finishedAt,omitzero"` // absent if it has not ended
}

// Text returns which event had the lock, since when and until when; stamp writes a time. It returns
// "" for nil.
func (b *ArrivalBehind) Text(stamp func(time.Time) string) string {
	if b == nil {
		return ""
	}
	text := cmp.Or(b.EventID, "an event without an ID") + " had the lock since " + stamp(b.StartedAt.Time)
	if b.FinishedAt.IsZero() {
		return text + ", and still has it"
	}
	return text + ", until " + stamp(b.FinishedAt.Time)
}

// KeptAnswer is the service's answer as duplicates get it.
type KeptAnswer struct {
	Status  int          `json:"status"`
	Headers []HeaderLine `json:"headers"`
	Body    []byte       `json:"bodyBase64"`

	raw
}

// HeaderLine is a line of a header. A byte of value that is not UTF-8 is U+FFFD here.
type HeaderLine struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// KeptAnswer returns the stored answer of an execution. The token needs the scope bodies. A
// *Problem with CodeAnswerNotKept means that no whole answer is stored.
func (c *Client) KeptAnswer(ctx context.Context, id string) (*KeptAnswer, error) {
	return get[KeptAnswer](ctx, c, executionPath(id, "answer"), "headers", nil)
}
