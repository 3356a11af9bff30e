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

// Callback is the right to act on one execution. Its service gets it in the headers of the delivery
// (CallbackFrom), and a client of the lock API from Acquire.
type Callback struct {
	ExecutionID string
	Token       int64  // The fencing token. 0 is none: the lock covers the event alone.
	Key         string // the callback key, which is a secret
}

// CallbackFrom reads the headers Hooklock-Execution, Hooklock-Fencing-Token and
// Hooklock-Callback-Key of a delivery. A route with lock.strategy none, or with a lock.limit above
// 1, sends no fencing token. It returns an error if the request did not come through Hooklock.
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

// Callback returns the right to act on the execution that has the lock.
func (a *Acquired) Callback() Callback { return Callback{a.ExecutionID, a.Token, a.CallbackKey} }

// sendCallback sends a call with the execution's own key instead of the client's token.
func (c *Client) sendCallback(ctx context.Context, cb Callback, action string, call call) error {
	if cb.Key == "" {
		return errors.New("the callback key is empty")
	}
	call.method, call.path, call.bearer = http.MethodPost, executionPath(cb.ExecutionID, action), cb.Key
	_, err := c.sendOnce(ctx, call)
	return err
}

// Verdict says whether the work on an execution may go on.
type Verdict struct {
	Proceed bool `json:"proceed"`
	// Status is the status of the execution. If Proceed is false it is the reason:
	// CANCEL_REQUESTED, or how the execution ended.
	Status Status `json:"status"`
	// ExpiresAt is when the hold ends now. Only Heartbeat sets it.
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	ExpiresIn float64   `json:"expiresIn"` // ExpiresIn is ExpiresAt in seconds from now.
}

// Guard asks before a step whether to go on, and proves that the fencing token is current. It ends
// the step that runs, and begins the one of that name; "" begins none. plan has all steps that are
// to come: those that have not begun become skipped if the execution is cancelled. It needs a step,
// and nil leaves the plan as it is.
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
	if err := c.sendCallback(ctx, cb, "guard",
		call{body: body, into: v, has: "proceed", accept: v.readRefusal}); err != nil {
		return nil, err
	}
	return v, nil
}

// readRefusal reads a 409 that is a Verdict.
func (v *Verdict) readRefusal(status int, body []byte) bool {
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

// Heartbeat extends a hold to ttl from now on; 0 is as long as the hold was asked for. No heartbeat
// extends it past max_duration of the route.
//
// A Verdict with Proceed false is no error: the execution was cancelled, or has ended. A *Problem
// with status 412 means that the lock is lost: stop working.
func (c *Client) Heartbeat(ctx context.Context, cb Callback, ttl time.Duration) (*Verdict, error) {
	body := struct {
		Token int64    `json:"token"`
		TTL   duration `json:"ttl,omitzero"`
	}{cb.Token, duration(ttl)}
	v := &Verdict{Proceed: true} // an answer that extends the hold has no "proceed"
	if err := c.sendCallback(ctx, cb, "heartbeat",
		call{body: body, into: v, has: "executionId", accept: v.readRefusal}); err != nil {
		return nil, err
	}
	return v, nil
}

// Answer is the final answer of a held execution, which its duplicates get.
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

// Final is how a held execution ends.
type Final struct {
	// Status is Success, which settles the event, or Failed, after which it may run again.
	Status Status
	// Answer is what duplicates get after a Success. nil is 200 without a body.
	Answer *Answer
	Error  *Failure // Error says why it Failed. nil gives no reason.
}

// Complete ends a held execution, and returns it as it ended. A *Problem with CodeAlreadyFinished
// means that it had ended before.
func (c *Client) Complete(ctx context.Context, cb Callback, f Final) (*Execution, error) {
	body := struct {
		Token    int64    `json:"token"`
		Status   Status   `json:"status"`
		Response *Answer  `json:"response,omitempty"`
		Error    *Failure `json:"error,omitempty"`
	}{cb.Token, f.Status, f.Answer, f.Error}
	x := new(Execution)
	if err := c.sendCallback(ctx, cb, "complete", call{body: body, into: x, has: "executionId"}); err != nil {
		return nil, err
	}
	return x, nil
}
