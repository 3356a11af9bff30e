package client

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Attempt is an execution of an event in short.
type Attempt struct {
	ExecutionID string  `json:"executionId"`
	Status      Status  `json:"status"`
	Outcome     Outcome `json:"outcome,omitempty"`
	StartedAt   Time    `json:"startedAt"`
	FinishedAt  Time    `json:"finishedAt,omitzero"`
	// Of FAILED alone; its detail says how far the exchange with the upstream went. Cut to 160
	// bytes where the event has run again.
	Error       *Failure `json:"error,omitempty"`
	AbortedAt   Time     `json:"abortedAt,omitzero"` // this and the next two as those of an execution
	AbortedBy   string   `json:"abortedBy,omitempty"`
	AbortReason string   `json:"abortReason,omitempty"`
	Answer      int      `json:"answerStatus,omitempty"` // of the upstream; absent where no whole answer came
	Tries       int      `json:"tries,omitempty"`        // of the upstream, where it was parked
	TraceID     string   `json:"traceId,omitempty"`
	// What of its request differs from that of the attempt before; absent where nothing does, or
	// where that is not known.
	Differs []string `json:"differs,omitempty"`
}

// Arrivals is how an event arrived, without the deliveries that were executed; absent in lists
// that no decision was asked of, and where nothing is kept.
type Arrivals struct {
	Counts map[string]int64 `json:"counts"` // by decision
	First  Arrival          `json:"first"`
	Newest []Arrival        `json:"newest" jsonschema:"maxItems=16"` // the newest first
}

// Arrival is one delivery with another decision than executed. Its event may have run all the same:
// a parked one later, a bypassed one without a lock, and one that broke off perhaps.
type Arrival struct {
	At          Time   `json:"at"`                  // when it was received
	AnsweredAt  Time   `json:"answeredAt,omitzero"` // when its sender was answered; absent where that is not known
	Decision    string `json:"decision"`
	Would       string `json:"would,omitempty"`       // what it would have got, where it was forwarded all the same
	Status      int    `json:"status"`                // what its sender was told
	ExecutionID string `json:"executionId,omitempty"` // what stood in the way or was answered with, or its own
	// Its own event ID, if it was taken for the event because of its body (twins: same_event).
	EventID string   `json:"eventId,omitempty"`
	From    string   `json:"from,omitempty"`    // the IP address of the connection
	Differs []string `json:"differs,omitempty"` // of a mismatch: what differs from the first delivery
	TraceID string   `json:"traceId,omitempty"`
	// Of the newest: the error of the call or of etcd that was the reason, at most 160 bytes.
	Detail string         `json:"detail,omitempty"`
	Behind *ArrivalBehind `json:"behind,omitempty"`
}

// Answered returns when the sender got the response, or when the delivery was received where that
// is not known.
func (a *Arrival) Answered() time.Time {
	if a.AnsweredAt.IsZero() {
		return a.At.Time
	}
	return a.AnsweredAt.Time
}

// Asked is what the service said of an execution of unknown outcome (on_unknown: ask); absent
// where it was not asked.
type Asked struct {
	Outcome Outcome `json:"outcome"` // what follows from it. unknown: no answer decided it, and a person has to.
	At      Time    `json:"at"`
	URL     string  `json:"url"`              // what was asked: a URL, or a path of the upstream
	Status  int     `json:"status,omitempty"` // of the last answer. Left out if none came.
	Detail  string  `json:"detail,omitempty"` // why it decided nothing. Left out if it did.
	Times   int     `json:"times"`            // how often the service was asked
}

// Text says on one line what the service said.
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

// FailedAnswer is an answer of the service to a failed try.
type FailedAnswer struct {
	At     Time `json:"at"`
	Status int  `json:"status"`
	// The first 512 bytes of its body. Absent without the scope bodies, where it is not kept,
	// and where it is no text.
	Text string `json:"text,omitempty"`
}

// LastFailed returns ": " and the text of the latest failed answer, on one line; "" if that is not
// known.
func (e *Execution) LastFailed() string {
	n := len(e.FailedAnswers)
	if n == 0 || e.FailedAnswers[n-1].Text == "" {
		return ""
	}
	return ": " + strings.Join(strings.Fields(e.FailedAnswers[n-1].Text), " ")
}

// ReleasedExecution is the latest execution of the event whose record a person removed, so that
// it runs again, and how it had ended.
type ReleasedExecution struct {
	ExecutionID string  `json:"executionId"`
	Status      Status  `json:"status"`
	Outcome     Outcome `json:"outcome"`
	By          string  `json:"by"` // the name of the token
	Reason      string  `json:"reason"`
	At          Time    `json:"at"`
}

// Text says who released it, how it had ended and why; "" for nil.
func (r *ReleasedExecution) Text() string {
	if r == nil {
		return ""
	}
	return r.By + " released it to run again: " + r.Reason + "; " + r.ExecutionID + " had ended as " +
		string(r.Status) + ", " + strings.ReplaceAll(string(r.Outcome), "_", " ")
}

// ArrivalBehind is the execution that had the lock when the delivery was refused; absent where
// none had, or where nothing is known of it any more. In a list it is that of the newest arrival
// alone.
type ArrivalBehind struct {
	EventID    string `json:"eventId,omitempty"`
	StartedAt  Time   `json:"startedAt"`
	FinishedAt Time   `json:"finishedAt,omitzero"` // absent: it has not ended
}

// Text says which event had the lock, since when and until when, with times as stamp spells them;
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

// KeptAnswer is the upstream's answer as duplicates get it.
type KeptAnswer struct {
	Status  int          `json:"status"`
	Headers []HeaderLine `json:"headers"`
	Body    []byte       `json:"bodyBase64"`

	raw
}

// HeaderLine is one header line. A byte of Value that is not UTF-8 has become U+FFFD.
type HeaderLine struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// KeptAnswer returns the stored answer of an execution. It needs a token with the scope bodies. A
// *Problem with CodeAnswerNotKept means that none is stored whole.
func (c *Client) KeptAnswer(ctx context.Context, id string) (*KeptAnswer, error) {
	return ask[KeptAnswer](ctx, c, call{method: http.MethodGet, path: executionPath(id, "answer"), has: "headers"})
}
