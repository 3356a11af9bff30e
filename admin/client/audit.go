package client

import (
	"context"
	"errors"
	"iter"
)

// Audit is a change that somebody asked for with a token, or a look at what senders sent. The
// newest 20,000 are kept, for 30 days. Calls of the lock API and callbacks are in the log alone.
type Audit struct {
	At   Time   `json:"at"`
	Who  string `json:"who"`  // the name of the token
	What string `json:"what"` // what was asked for, such as execution.cancel
	// unknown: etcd did not answer. begun: an action on many executions goes on, or its replica has
	// died.
	Result      string `json:"result" jsonschema:"enum=done,enum=refused,enum=nothing to do,enum=unknown,enum=begun"`
	Why         string `json:"why,omitempty"`
	Before      string `json:"before,omitempty"` // the status before that
	After       string `json:"after,omitempty"`  // the status after that
	Workflow    string `json:"workflow,omitempty"`
	ExecutionID string `json:"executionId,omitempty"`
	Code        string `json:"code,omitempty"`   // why it was refused
	Remote      string `json:"remote,omitempty"` // the address that the call came from
	JobID       string `json:"jobId,omitempty"`  // the job that it is about, or that it is a step of

	raw
}

// UnmarshalJSON reads the object and keeps it for RawJSON.
func (a *Audit) UnmarshalJSON(text []byte) error {
	type plain Audit
	err := a.read(text, (*plain)(a))
	if err == nil && a.What == "" {
		err = errors.New("an audit says what was asked for")
	}
	return err
}

// AuditQuery selects audits that match all fields that are set. The zero value selects all that are
// kept: those of 30 days, and 20,000 at most.
type AuditQuery struct {
	Who string `query:"who"` // the name of a token
	// What selects the actions that begin with it: execution. is all that acts on one execution.
	What string `query:"what"`
	// Workflow is a name, or a pattern, in which * stands for any characters.
	Workflow string `query:"workflow"`
	// Prefix selects the workflows that begin with it.
	Prefix      string `query:"prefix"`
	ExecutionID string `query:"execution"` // the ID of an execution
	// Since selects what was done since then: a time (RFC 3339), or how long ago (24h).
	Since string `query:"since"`
	// Until selects what was done until then: a time (RFC 3339), or how long ago.
	Until string `query:"until"`

	Limit  int    `query:"limit"`  // the most items of a page
	Cursor string `query:"cursor"` // nextCursor of the page before; absent: from the beginning
}

// AuditPage is a part of the list of audits. It may hold fewer items than its limit, even none, and
// not be the last one: only an empty nextCursor says that it is.
type AuditPage struct {
	Audits     []Audit `json:"audits"`
	NextCursor string  `json:"nextCursor"`
}

// AuditPage returns one page of the audits, the newest first.
func (c *Client) AuditPage(ctx context.Context, q AuditQuery) (*AuditPage, error) {
	return get[AuditPage](ctx, c, "/v1/audit", "audits", queryOf(q))
}

// Audits returns all audits from q.Cursor on, the newest first, page after page. The sequence ends
// after an error.
func (c *Client) Audits(ctx context.Context, q AuditQuery) iter.Seq2[*Audit, error] {
	return eachOfPages(&q.Cursor, func() (*AuditPage, error) { return c.AuditPage(ctx, q) },
		func(p *AuditPage) ([]Audit, string) { return p.Audits, p.NextCursor })
}
