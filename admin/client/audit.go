package client

import (
	"context"
	"encoding/json"
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
	if err := json.Unmarshal(text, (*plain)(a)); err != nil {
		return err
	}
	if a.What == "" {
		return errors.New("an audit says what was asked for")
	}
	a.keep(text)
	return nil
}

// AuditQuery selects audits that match all fields that are set. The zero value selects all that are
// kept, which is 30 days, and 20,000 at most.
type AuditQuery struct {
	Who         string // the token's name; "" = any
	What        string // a prefix: "execution." matches all actions on executions
	Workflow    string // a name, or a pattern, in which * stands for any characters; "" = any
	Prefix      string // of the workflow
	ExecutionID string
	Since       string // a time (RFC 3339), or how long ago ("24h"); "" = unbounded
	Until       string

	Limit  int    // at most so many on a page; 0 = the server's choice
	Cursor string // NextCursor of the page before; "" = from the beginning
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
		query: query(
			"who", q.Who, "what", q.What, "workflow", q.Workflow, "prefix", q.Prefix, "execution", q.ExecutionID,
			"since", q.Since, "until", q.Until,
			"limit", count(q.Limit), "cursor", q.Cursor,
		),
	})
}

// Audits goes through the audits from q.Cursor on, the newest first, page after page. After an
// error there is nothing more.
func (c *Client) Audits(ctx context.Context, q AuditQuery) iter.Seq2[*Audit, error] {
	return each(q.Cursor, func(cursor string) ([]Audit, string, error) {
		q.Cursor = cursor
		page, err := c.AuditPage(ctx, q)
		if err != nil {
			return nil, "", err
		}
		return page.Audits, page.NextCursor, nil
	})
}
