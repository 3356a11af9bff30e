package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"
)

// Delivery is what a sender sends.
type Delivery struct {
	Route, Workflow, Event string
	Body                   []byte // nil = a small one made of the event
	FirstByte              func() // if set, called when the answer begins
}

// Answer is what the sender saw.
type Answer struct {
	Status     int    // 0: no answer came
	Cut        bool   // the connection ended before a whole answer
	Decision   string // Hooklock-Decision
	Execution  string // Hooklock-Execution
	Code       string // of a problem
	Executed   string // of a problem
	Recorded   bool   // false: Hooklock-Recorded: false
	RetryAfter string
	Body       string
	At         time.Time
}

// String is the answer in short: "200 executed", "cut", "409 workflow_locked".
func (a Answer) String() string {
	switch {
	case a.Status == 0:
		return "cut"
	case a.Cut:
		return fmt.Sprintf("%d, then cut", a.Status)
	}
	if a.Code != "" {
		return fmt.Sprintf("%d %s", a.Status, a.Code)
	}
	what := a.Decision
	if !a.Recorded { // of an answer that Hooklock made itself, others may have written the record
		what += ", not recorded"
	}
	return fmt.Sprintf("%d %s", a.Status, what)
}

// Settled reports whether the event is done as far as its sender can know: it got the upstream's
// answer, and it is in the records.
func (a Answer) Settled() bool {
	return a.Status == 200 && !a.Cut && a.Recorded && (a.Decision == "executed" || a.Decision == "replayed" ||
		a.Decision == "attached")
}

// Parked reports whether the sender was told that the event is accepted and runs later.
func (a Answer) Parked() bool { return a.Status == 202 && !a.Cut && a.Decision == "parked" }

// Sender sends deliveries. Each one has a connection of its own, so that nothing is sent twice
// behind its back.
type Sender struct{ client http.Client }

// NewSender makes a Sender whose patience with one delivery is bounded.
func NewSender() *Sender {
	return &Sender{http.Client{Timeout: Patience,
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}}
}

// Send sends one delivery to door and returns what came back. An end of ctx is a sender that hangs
// up.
func (s *Sender) Send(ctx context.Context, door string, d Delivery) Answer {
	if d.Body == nil {
		d.Body = fmt.Appendf(nil, `{"id":%q}`, d.Event)
	}
	if d.FirstByte != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: d.FirstByte})
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		fmt.Sprintf("http://%s/%s/%s", door, d.Route, d.Workflow), bytes.NewReader(d.Body))
	if err != nil {
		panic(err) // our own URL
	}
	request.Host = "hooks.example.com" // the same at each replica, as behind an ingress
	request.Header.Set("Idempotency-Key", d.Event)
	request.GetBody = nil // never sent again by the client itself
	response, err := s.client.Do(request)
	if err != nil {
		return Answer{Cut: true, Recorded: true, At: time.Now()}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	a := Answer{
		Status: response.StatusCode, Cut: err != nil, Decision: response.Header.Get("Hooklock-Decision"),
		At:         time.Now(),
		Execution:  response.Header.Get("Hooklock-Execution"),
		Recorded:   response.Header.Get("Hooklock-Recorded") != "false",
		RetryAfter: response.Header.Get("Retry-After"), Body: string(body),
	}
	if response.Header.Get("Content-Type") == "application/problem+json" {
		var p struct{ Code, Executed string }
		_ = json.Unmarshal(body, &p) // an answer that is no JSON has no code, and the test sees that
		a.Code, a.Executed = p.Code, p.Executed
	}
	return a
}

// Begin sends in the background.
func (s *Sender) Begin(ctx context.Context, door string, d Delivery) <-chan Answer {
	answer := make(chan Answer, 1)
	go func() { answer <- s.Send(ctx, door, d) }()
	return answer
}
