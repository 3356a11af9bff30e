package client

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Problem is a refusal: the API's application/problem+json (RFC 9457), or any other answer with a
// status that is not 2xx.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Code is the one word to compare with, such as "lock_not_found"; see the Code constants. ""
	// means that the answer does not come from Hooklock: another service listens there, or is in
	// between.
	Code string `json:"code"`

	ExecutionID string `json:"executionId"`
	Workflow    string `json:"workflow"`
	// ExistingExecutionID is the execution that holds the lock, if the lock was refused.
	ExistingExecutionID string `json:"existingExecutionId"`
	// ExecutionStatus is the status of the execution, if that is the reason.
	ExecutionStatus Status `json:"-"`
	// Problems are the errors of a configuration that was refused, each with its place.
	Problems []string `json:"problems"`
	// RetryAfter is when to ask again, by the server; 0 = not given.
	RetryAfter time.Duration `json:"-"`
}

// Codes of problems that callers decide by.
const (
	CodeBadRequest        = "bad_request"
	CodeUnauthorized      = "unauthorized"
	CodeForbidden         = "forbidden"
	CodeCrossSite         = "cross_site"
	CodeHostRefused       = "host_refused"
	CodeNotFound          = "not_found" // the path is unknown: this is not the admin API, or another release of it
	CodeLockNotFound      = "lock_not_found"
	CodePauseNotFound     = "pause_not_found"
	CodeMarkNotFound      = "mark_not_found"
	CodeJobNotFound       = "job_not_found"
	CodeNoEmbeddedEtcd    = "no_embedded_etcd"
	CodeExecutionNotFound = "execution_not_found"
	CodeAnswerNotKept     = "answer_not_kept"
	CodeAlreadyFinished   = "already_finished"
	CodeWorkflowLocked    = "workflow_locked"
	CodeLockWaitTimeout   = "lock_wait_timeout"
	CodeInFlight          = "execution_in_flight"  // it has not ended
	CodeSuperseded        = "execution_superseded" // the event has run again since
	CodeStatusChanged     = "status_changed"       // 412: the execution is not in the status that was given
	CodeStaleToken        = "stale_token"          // 412: the fencing token is not the current one
	CodeLockExpired       = "lock_expired"         // 412: the lock's own lease ran out
	// 412: the session is gone, the lock was released by force, or another execution has it
	CodeLockLost         = "lock_lost"
	CodeNotParked        = "not_parked"
	CodeRequestNotKept   = "request_not_kept"
	CodeCancelRequested  = "cancel_requested"
	CodeConfigRefused    = "config_refused"
	CodeRateLimited      = "rate_limited"
	CodeStoreUnavailable = "store_unavailable"
)

// Error returns what was refused and why.
func (p *Problem) Error() string {
	text := cmp.Or(p.Detail, p.Title)
	if p.Code == "" {
		return text
	}
	return p.Code + ": " + text
}

// IsCode reports whether err is a refusal with one of these codes.
func IsCode(err error, codes ...string) bool {
	p, ok := errors.AsType[*Problem](err)
	return ok && slices.Contains(codes, p.Code)
}

// newProblem reads a refusal.
func newProblem(answer *http.Response, body []byte) *Problem {
	p := &Problem{Status: answer.StatusCode}
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err == nil && (kind == "application/problem+json" || kind == "application/json") {
		readProblem(body, p)
	}
	p.Status = answer.StatusCode // the status of the answer counts, whatever the body says
	p.Title = cmp.Or(p.Title, http.StatusText(p.Status))
	if p.Code == "" {
		p.Detail = fmt.Sprintf("the answer %d %s does not come from Hooklock's admin API", p.Status, p.Title)
		if to := answer.Header.Get("Location"); to != "" && p.Status >= 300 && p.Status < 400 {
			p.Detail += "; it points to " + to + ", which was not followed"
		}
	}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		p.RetryAfter = time.Duration(min(seconds, 24*60*60)) * time.Second
	}
	return p
}

// readProblem fills p from JSON; another body leaves it empty. A "status" that is a word, not a
// number, is that of the execution.
func readProblem(body []byte, p *Problem) {
	var fields struct {
		*plainProblem
		Status          json.RawMessage `json:"status"`
		ExecutionStatus Status          `json:"executionStatus"`
	}
	fields.plainProblem = (*plainProblem)(p)
	if json.Unmarshal(body, &fields) != nil {
		*p = Problem{}
		return
	}
	p.ExecutionStatus = fields.ExecutionStatus
	var word string
	if json.Unmarshal(fields.Status, &word) == nil && p.ExecutionStatus == "" {
		p.ExecutionStatus = Status(word)
	}
}

// plainProblem is Problem without its methods.
type plainProblem Problem
