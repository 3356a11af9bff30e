package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
)

// Audit is one change that the owner of a token asked for, or a look at what senders sent. It is
// kept for 30 days, and 20,000 of them; what clients of the lock API do, and callbacks, are in
// the log alone.
type Audit struct {
	At   Time   `json:"at"`
	Who  string `json:"who"`  // the token's name
	What string `json:"what"` // what was asked for, such as execution.cancel
	// unknown: etcd did not answer. begun: an action on many goes on, or its process has died.
	Result      string `json:"result" jsonschema:"enum=done,enum=refused,enum=nothing to do,enum=unknown,enum=begun"`
	Why         string `json:"why,omitempty"`
	Before      string `json:"before,omitempty"` // the status before it
	After       string `json:"after,omitempty"`
	Workflow    string `json:"workflow,omitempty"`
	ExecutionID string `json:"executionId,omitempty"`
	Code        string `json:"code,omitempty"`   // of a refusal
	Remote      string `json:"remote,omitempty"` // the address it came from
	JobID       string `json:"jobId,omitempty"`  // the job that it is about, or a step of

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

// AuditPage is a part of the audits; see LockPage.
type AuditPage struct {
	Audits     []Audit `json:"audits"`
	NextCursor string  `json:"nextCursor"`
}

// AuditPage gets one page.
func (c *Client) AuditPage(ctx context.Context, q AuditQuery) (*AuditPage, error) {
	return ask[AuditPage](ctx, c, call{
		method: http.MethodGet, path: "/v1/audit", has: "audits",
		query: queryOf(q),
	})
}

// Audits goes through the audits from q.Cursor on, the newest first, page after page. After an
// error there is nothing more.
func (c *Client) Audits(ctx context.Context, q AuditQuery) iter.Seq2[*Audit, error] {
	return each(&q.Cursor, func() (*AuditPage, error) { return c.AuditPage(ctx, q) },
		func(p *AuditPage) ([]Audit, string) { return p.Audits, p.NextCursor })
}
