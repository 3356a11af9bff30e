package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hooklock/idem"
)

// kind is one row of the only table from codes to what a client sees. openapi.json lists the same
// codes.
type kind struct {
	code   string
	status int
	title  string
}

func problemKinds() []kind {
	return []kind{
		{"bad_request", 400, "The request is not valid"},
		{"unauthorized", 401, "The caller is not known"},
		{"forbidden", 403, "The token may not do this"},
		{"cross_site", 403, "Pages of other sites are not served here"},
		{"not_found", 404, "There is nothing at this path"},
		{"lock_not_found", 404, "The lock is free"},
		{"execution_not_found", 404, "No such execution"},
		{"pause_not_found", 404, "Nothing of that name is paused"},
		{"job_not_found", 404, "No such job"},
		{"mark_not_found", 404, "Nothing of it is marked as looked at"},
		{"request_not_kept", 404, "The request is not kept"},
		{"answer_not_kept", 404, "No answer is kept"},
		{"no_embedded_etcd", 404, "There is no embedded etcd"},
		{"method_not_allowed", 405, "There is no such method here"},
		{"workflow_locked", 409, "The lock is held"},
		{"lock_wait_timeout", 409, "The lock did not become free in time"},
		{"execution_in_flight", 409, "The execution has not ended"},
		{"execution_superseded", 409, "The event has run again since"},
		{"cancel_requested", 409, "The execution is to be stopped"},
		{"not_parked", 409, "The execution is not parked"},
		{"already_finished", 409, "The execution has ended"},
		{"status_changed", 412, "The execution is in another status by now"},
		{"stale_token", 412, "The fencing token is not current"},
		{"lock_expired", 412, "The lock's own lease ran out"},
		{"lock_lost", 412, "The lock belongs to another execution, or is free"},
		{"body_too_large", 413, "The body is too large"},
		{"unsupported_media_type", 415, "The body is not JSON"},
		{"host_refused", 421, "This Host is not served here"},
		{"config_refused", 422, "The configuration was refused"},
		{"too_many_steps", 422, "The execution has too many steps"},
		{"rate_limited", 429, "Too many requests"},
		{"internal_error", 500, "Internal error"},
		{"audit_unavailable", 503, "The audit log cannot be written"},
		{"execution_aborted", 503, "The wait was cancelled"},
		{"overloaded", 503, "Too many requests at one time"},
		{"request_unavailable", 503, "The request cannot be read now"},
		{"store_unavailable", 503, "The lock store cannot decide now"},
	}
}

// problem is a refusal (RFC 9457).
type problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	Code       string `json:"code"`
	Execution  string `json:"executionId,omitempty"`
	Workflow   string `json:"workflow,omitempty"`
	RetryAfter int    `json:"retryAfter,omitempty"`

	*conflict
	Proceed *bool       `json:"proceed,omitempty"`         // of guard and heartbeat: false
	State   idem.Status `json:"executionStatus,omitempty"` // of heartbeat, beside proceed
	Message string      `json:"message,omitempty"`         // of cancel, beside success
	// Problems are the errors of a configuration that was refused.
	Problems []string `json:"problems,omitempty"`

	header http.Header // further headers of the answer
}

// conflict are the fields that callers of the older in-application locks read.
type conflict struct {
	Success  bool   `json:"success"`
	Error    string `json:"error,omitempty"`
	Details  string `json:"details,omitempty"`
	Existing string `json:"existingExecutionId,omitempty"`
}

// Error makes a problem an error.
func (p *problem) Error() string { return p.Code + ": " + p.Detail }

// refuse makes the problem with a code of the table.
func refuse(code, detail string) *problem {
	for _, k := range problemKinds() {
		if k.code == code {
			p := &problem{Type: "urn:hooklock:problem:" + code, Title: k.title, Status: k.status, Detail: detail,
				Code: code, header: http.Header{}}
			switch k.status {
			case http.StatusTooManyRequests, http.StatusServiceUnavailable:
				p = p.withRetryAfter(time.Second)
			case http.StatusConflict: // the holder of a lock gives a better value; the others stay as they are
				p = p.withRetryAfter(longestRetry)
			}
			return p
		}
	}
	panic("admin: no such code: " + code)
}

// notAllowed refuses a method where others are allowed.
func notAllowed(methods ...string) *problem {
	allowed := strings.Join(methods, ", ")
	p := refuse("method_not_allowed", "this path takes "+allowed)
	p.header.Set("Allow", allowed)
	return p
}

// longestRetry bounds Retry-After.
const longestRetry = time.Minute

// withRetryAfter sets when to come again: whole seconds, 1 to 60.
func (p *problem) withRetryAfter(after time.Duration) *problem {
	p.RetryAfter = int((min(max(after, 1), longestRetry) + time.Second - 1) / time.Second)
	return p
}

// withLock adds the fields of the older in-application locks. by has the lock; nil if that is not
// known.
func (p *problem) withLock(by *idem.Lock, workflow string) *problem {
	p.Workflow = workflow
	p.conflict = &conflict{Error: "Workflow currently executing", Details: "Only one execution can run at a time."}
	switch {
	case by == nil:
		return p
	case by.Cooling:
		p.conflict.Details += " " + idem.ClosedLockText(by.Execution, by.CoolUntil)
		p.Detail = idem.ClosedLockText(by.Execution, by.CoolUntil) + "; try again then, or give wait"
	default:
		p.conflict.Details += " Currently executing: " + string(by.Execution)
	}
	p.Execution, p.conflict.Existing = string(by.Execution), string(by.Execution)
	return p
}

func (p *problem) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), p.header)
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	writeJSON(w, p.Status, "application/problem+json", p)
}

// Overloaded returns the whole answer for a connection that is one too many.
func Overloaded() []byte {
	body, err := json.Marshal(refuse("overloaded", "too many connections are open"))
	if err != nil {
		panic(err) // strings and numbers alone
	}
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: "+
		"application/problem+json\r\nContent-Length: %d\r\nRetry-After: 1\r\nConnection: close\r\n\r\n%s",
		len(body), body)
}

// writeJSON answers with v, which must always encode.
func writeJSON(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers and lists of them alone
	}
	body = append(body, '\n')
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have disconnected
}
