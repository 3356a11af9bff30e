package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"
)

// Callback is the right to act on an execution: what its upstream got in the headers of the
// delivery, or what Acquire returned.
type Callback struct {
	ExecutionID string
	Token       int64  // the fencing token; 0 = it has none, because its lock covers the event alone
	Key         string // the callback key; it is a secret
}

// CallbackFrom reads the headers Hooklock-Execution, Hooklock-Fencing-Token and
// Hooklock-Callback-Key of a delivery. One of a route with lock.strategy none, or with a lock.limit
// above 1, has no fencing token.
func CallbackFrom(h http.Header) (Callback, error) {
	cb := Callback{ExecutionID: h.Get("Hooklock-Execution"), Key: h.Get("Hooklock-Callback-Key")}
	if cb.ExecutionID == "" || cb.Key == "" {
		return Callback{}, errors.New("the request has no Hooklock-Execution and Hooklock-Callback-Key: it did not " +
			"come through a route of Hooklock")
	}
	token := h.Get("Hooklock-Fencing-Token")
	if token == "" { // a lock that covers the event alone fences nothing, and its deliveries have none
		return cb, nil
	}
	var err error
	if cb.Token, err = strconv.ParseInt(token, 10, 64); err != nil {
		return Callback{}, fmt.Errorf("read Hooklock-Fencing-Token: %w", err)
	}
	return cb, nil
}

// Callback returns the callback of an acquired lock.
func (a *Acquired) Callback() Callback { return Callback{a.ExecutionID, a.Token, a.CallbackKey} }

// callback sends a call with the execution's own key instead of the client's token.
func (c *Client) callback(ctx context.Context, cb Callback, action string, call call) error {
	if cb.Key == "" {
		return errors.New("the callback key is empty")
	}
	call.method, call.path, call.bearer = http.MethodPost, executionPath(cb.ExecutionID, action), cb.Key
	_, err := c.do(ctx, call)
	return err
}

// Verdict says whether a workflow may go on.
type Verdict struct {
	Proceed bool `json:"proceed"`
	// Status is the status of the execution. If Proceed is false it is the reason:
	// CANCEL_REQUESTED, or how it ended.
	Status Status `json:"status"`
	// ExpiresAt is when the hold ends now. It is set by Heartbeat alone.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	ExpiresIn float64   `json:"expiresIn"` // seconds
}

// Guard asks before a step whether to go on, and proves that the fencing token is current. The
// running step ends, and step begins; "" names none. plan lists all planned steps, and needs a
// step; on a cancel those that have not begun become skipped. nil leaves the plan unchanged.
//
// A Verdict with Proceed false is no error. A *Problem with status 412 means that the lock is lost:
// stop working.
func (c *Client) Guard(ctx context.Context, cb Callback, step string, plan []string) (*Verdict, error) {
	body := struct {
		Token int64    `json:"token"`
		Step  string   `json:"step,omitempty"`
		Plan  []string `json:"plan,omitempty"`
	}{cb.Token, step, plan}
	v := new(Verdict)
	if err := c.callback(ctx, cb, "guard", call{body: body, into: v, has: "proceed", accept: v.refusal}); err != nil {
		return nil, err
	}
	return v, nil
}

// refusal reads a 409 that is a Verdict.
func (v *Verdict) refusal(status int, body []byte) bool {
	var said struct {
		Proceed *bool           `json:"proceed"`
		Status  json.RawMessage `json:"status"`
		Where   Status          `json:"executionStatus"`
	}
	if status != http.StatusConflict || json.Unmarshal(body, &said) != nil || said.Proceed == nil {
		return false
	}
	v.Proceed, v.Status = *said.Proceed, said.Where
	var word Status
	if json.Unmarshal(said.Status, &word) == nil { // a number is the HTTP status again
		v.Status = word
	}
	return true
}

// Heartbeat extends a hold to ttl from now on; 0 = as long as it began with. The route's
// max_duration ends all heartbeats. A Verdict with Proceed false, because the execution was
// cancelled or has ended, is no error. A *Problem with status 412 means that the lock is lost: stop
// working.
func (c *Client) Heartbeat(ctx context.Context, cb Callback, ttl time.Duration) (*Verdict, error) {
	body := struct {
		Token int64    `json:"token"`
		TTL   duration `json:"ttl,omitzero"`
	}{cb.Token, duration(ttl)}
	v := &Verdict{Proceed: true} // an answer that extends the hold has no "proceed"
	if err := c.callback(ctx, cb, "heartbeat",
		call{body: body, into: v, has: "executionId", accept: v.refusal}); err != nil {
		return nil, err
	}
	return v, nil
}

// Answer is the final answer of a held execution, which its duplicates will get.
type Answer struct {
	Status int
	Header map[string]string
	Body   []byte
}

// MarshalJSON writes the body as a string if it is text, else in base64.
func (a Answer) MarshalJSON() ([]byte, error) {
	out := struct {
		Status     int               `json:"status"`
		Headers    map[string]string `json:"headers,omitempty"`
		Body       string            `json:"body,omitempty"`
		BodyBase64 []byte            `json:"bodyBase64,omitempty"`
	}{Status: a.Status, Headers: a.Header}
	if utf8.Valid(a.Body) {
		out.Body = string(a.Body)
	} else {
		out.BodyBase64 = a.Body
	}
	return json.Marshal(out)
}

// Final is the end of a held execution.
type Final struct {
	Status Status // Success or Failed
	// Answer is what duplicates get after a Success; nil = 200 without a body.
	Answer *Answer
	// Error says why it Failed; nil = no reason is given. The event may run again.
	Error *Failure
}

// Complete ends a held execution, and returns it as it ended. A *Problem with CodeAlreadyFinished
// means that it had ended.
func (c *Client) Complete(ctx context.Context, cb Callback, f Final) (*Execution, error) {
	body := struct {
		Token    int64    `json:"token"`
		Status   Status   `json:"status"`
		Response *Answer  `json:"response,omitempty"`
		Error    *Failure `json:"error,omitempty"`
	}{cb.Token, f.Status, f.Answer, f.Error}
	x := new(Execution)
	if err := c.callback(ctx, cb, "complete", call{body: body, into: x, has: "executionId"}); err != nil {
		return nil, err
	}
	return x, nil
}
