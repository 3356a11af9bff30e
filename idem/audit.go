package idem

import (
	"strings"
	"time"
)

// The results of audits.
const (
	AuditDone    = "done"
	AuditNothing = "nothing to do" // the state was reached before
	AuditRefused = "refused"
	AuditUnknown = "unknown" // etcd did not answer, or the answer broke off
	AuditBegun   = "begun"   // an action on many executions goes on, or its process has died
)

// Audit is one action that the owner of a token asked for: who, what, why, and the result. It holds
// no secrets. A field that is not known, or does not apply, is "".
//
// A method that changes something for a person takes one with At, Who, What, Why and Remote. It
// writes the audit in the transaction that makes the change, so each is there if the other is. It
// fills in the rest once that has happened, and leaves the audit as it is if it returns an error
// and has changed nothing. With nil none is written.
type Audit struct {
	At        time.Time   `json:"at"`                    // when it was asked for
	Who       string      `json:"who"`                   // the token's name
	What      string      `json:"what"`                  // execution.cancel
	Result    string      `json:"result"`                // one of those above; "" = the ledger has not written it
	Why       string      `json:"why,omitempty"`         // the reason that the owner of the token gave
	Before    string      `json:"before,omitempty"`      // the status before the action
	After     string      `json:"after,omitempty"`       // the status after it
	Workflow  string      `json:"workflow,omitempty"`    // the workflow that it is about
	Execution ExecutionID `json:"executionId,omitempty"` // the execution that it is about
	Code      string      `json:"code,omitempty"`        // of a refusal
	Remote    string      `json:"remote,omitempty"`      // the IP address of the client
	Job       string      `json:"job,omitempty"`         // the ID of the job that it is about, or a step of
	// Step is that step, for the method that makes the change; nil = it is none of a job's.
	Step *JobStep `json:"-"`
	// SeenAt is the ledger's revision at which the parked execution was chosen, for RunNow and
	// Skip: ErrMoved if its stored request has changed since, because it was run, tried to its end
	// or blocked. 0 = whatever has changed.
	SeenAt int64 `json:"-"`
	// Name is the ledger's name for it: written again under the same name, it replaces what was
	// written before. "" = it has none yet.
	Name string `json:"-"`
}

// AuditRetention is for how long an Audit, an Acknowledgement and Notices are kept after they were
// written.
const AuditRetention = 30 * 24 * time.Hour

// ChangedNothing reports whether the action was refused, or had nothing to do. Every token can ask
// for as many of these as it likes, so they must not displace the others.
func (a *Audit) ChangedNothing() bool { return a.Result == AuditRefused || a.Result == AuditNothing }

// AuditQuery selects audits: those for which all holds that is given. The zero value is all of
// them.
type AuditQuery struct {
	Who          string      // "" = any token
	What         string      // a prefix of Audit.What: "execution." matches all actions on executions
	Workflow     string      // a pattern, see MatchPattern; "" = any
	Prefix       string      // a prefix of the workflow
	Execution    ExecutionID // "" = any
	Since, Until time.Time   // zero = unbounded
	PageSize     int         // at most so many on a page; 0 = 100
	Cursor       string      // of the page before; "" = the first page
}

// Matches reports whether the query asks for a.
func (q *AuditQuery) Matches(a *Audit) bool {
	return (q.Who == "" || a.Who == q.Who) && strings.HasPrefix(a.What, q.What) &&
		strings.HasPrefix(a.Workflow, q.Prefix) &&
		(q.Workflow == "" || MatchPattern(q.Workflow, a.Workflow)) &&
		(q.Execution == "" || a.Execution == q.Execution) && (q.Since.IsZero() || !a.At.Before(q.Since)) &&
		(q.Until.IsZero() || !a.At.After(q.Until))
}

// AuditPage is a part of the audits, the newest first. It may be shorter than its limit, even
// empty, and not be the last: only an empty NextCursor says that.
type AuditPage struct {
	Audits     []Audit // the newest first
	NextCursor string  // asks for the next page; "" = this is the last one
}
