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

// Problem is a refusal by the server: an answer of type application/problem+json (RFC 9457), or any
// other answer whose status is not 2xx.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Code is the word to compare with the Code constants. "" means that the answer does not come
	// from Hooklock: another service listens there, or is between.
	Code string `json:"code"`

	ExecutionID string `json:"executionId"`
	Workflow    string `json:"workflow"`
	// ExistingExecutionID is the execution that has the lock, if that is the reason.
	ExistingExecutionID string `json:"existingExecutionId"`
	// ExecutionStatus is the status of the execution, if that is the reason.
	ExecutionStatus Status `json:"-"`
	// Problems are the errors of a configuration that was refused, each with its place.
	Problems []string `json:"problems"`
	// RetryAfter is how long to wait before another attempt. 0 means that the server did not say.
	RetryAfter time.Duration `json:"-"`
}

// The codes of problems.
const (
	// CodeBadRequest means that the request is not what the endpoint takes.
	CodeBadRequest = "bad_request"
	// CodeUnauthorized means that the token or the callback key is missing, or not known.
	CodeUnauthorized = "unauthorized"
	// CodeForbidden means that the token lacks the scope, or may not act on this workflow.
	CodeForbidden = "forbidden"
	// CodeCrossSite means that a browser asks for a page of another site.
	CodeCrossSite = "cross_site"
	// CodeHostRefused means that the Host header is not in admin.hosts.
	CodeHostRefused = "host_refused"
	// CodeNotFound means that the path is not known: this is not the admin API, or another release
	// of it.
	CodeNotFound = "not_found"

	CodeLockNotFound      = "lock_not_found"      // the lock is free
	CodePauseNotFound     = "pause_not_found"     // nothing of that scope is paused
	CodeMarkNotFound      = "mark_not_found"      // nothing of that concern is marked as looked at
	CodeJobNotFound       = "job_not_found"       // there is no such job, or none any more
	CodeNoEmbeddedEtcd    = "no_embedded_etcd"    // the replica uses an etcd cluster
	CodeExecutionNotFound = "execution_not_found" // there is no such execution, or none any more
	CodeAnswerNotKept     = "answer_not_kept"     // no whole answer of the execution is stored
	CodeRequestNotKept    = "request_not_kept"    // the request of the execution is not stored

	CodeWorkflowLocked  = "workflow_locked"      // another execution has the lock
	CodeLockWaitTimeout = "lock_wait_timeout"    // the lock did not become free in time
	CodeInFlight        = "execution_in_flight"  // the execution has not ended
	CodeAlreadyFinished = "already_finished"     // the execution has ended
	CodeSuperseded      = "execution_superseded" // the event has run again since
	CodeCancelRequested = "cancel_requested"     // the execution is to stop
	CodeNotParked       = "not_parked"           // the execution is not parked

	// CodeStatusChanged, with status 412, means that the execution or job is in another status than
	// the one that the call is for.
	CodeStatusChanged = "status_changed"
	// CodeStaleToken, with status 412, means that the fencing token is not the current one.
	CodeStaleToken = "stale_token"
	// CodeLockExpired, with status 412, means that the lease of the lock ended.
	CodeLockExpired = "lock_expired"
	// CodeLockLost, with status 412, means that the lock is free, or that another execution has it.
	CodeLockLost = "lock_lost"

	CodeConfigRefused    = "config_refused"    // the changed configuration is not valid
	CodeRateLimited      = "rate_limited"      // too many requests
	CodeStoreUnavailable = "store_unavailable" // etcd cannot decide now
)

// Error returns the code, and what was refused and why.
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
