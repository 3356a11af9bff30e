package admin

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"hooklock/admin/attention"
	"hooklock/admin/client"
	"hooklock/idem"
)

// getReport returns what the routes of this process have found. It is over all workflows, so a
// token that is limited to some does not get it.
func (c *call) getReport() error {
	since, err := c.readTime("since", c.query("since"))
	if err != nil {
		return err
	}
	return c.respond(http.StatusOK, c.api.options.Report(since))
}

// readTime reads a time, or how long ago it was; the zero time if it is not given.
func (c *call) readTime(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return c.api.options.Now().Add(-d), nil
	}
	return time.Time{}, refuse("bad_request",
		name+"="+quoteText(text)+`: give a time such as 2026-01-31T12:00:00Z, or how long ago, such as 24h`)
}

// readPeriod reads since and until; the zero time if one is not given.
func (c *call) readPeriod(from, to string) (since, until time.Time, err error) {
	if since, err = c.readTime("since", from); err != nil {
		return since, until, err
	}
	if until, err = c.readTime("until", to); err == nil && !until.IsZero() && until.Before(since) {
		err = refuse("bad_request", fmt.Sprintf("until=%s is before since=%s, so nothing can be between them: give "+
			"the earlier one as since", quoteText(to), quoteText(from)))
	}
	return since, until, err
}

// listSuggestions returns the routes that this process suggests. They are over all workflows, as
// the report is.
func (c *call) listSuggestions() error {
	since, err := c.readTime("since", c.query("since"))
	if err != nil {
		return err
	}
	list := c.api.options.Suggest(since)
	if route := c.query("route"); route != "" {
		list.Suggestions = slices.DeleteFunc(list.Suggestions, func(s client.Suggestion) bool {
			return s.Route != route && s.Path != route
		})
	}
	ctx, done := c.readContext()
	defer done()
	// else they are not counted: what is suggested needs no etcd
	if notes, err := c.api.options.Ledger.Replicas(ctx); err == nil {
		for _, one := range attention.Views(attention.ReadReplicas(notes)) {
			if one.State == client.ReplicaLive && !one.Self {
				list.Others++
			}
		}
	}
	return c.respond(http.StatusOK, list)
}

// listBadSignatures lists deliveries whose signature was not valid. What has no proof of its sender
// belongs to no workflow.
func (c *call) listBadSignatures() (err error) {
	q := idem.BadSignatureQuery{Route: c.query("route"), EventID: c.query("event")}
	if q.PageSize, err = c.readPageSize(); err != nil {
		return err
	}
	if q.Since, q.Until, err = c.readPeriod(c.query("since"), c.query("until")); err != nil {
		return err
	}
	if q.Cursor, err = c.caller.openCursor(c.query("cursor")); err != nil {
		return err
	}
	ctx, cancel := c.readContext()
	defer cancel()
	page, err := c.api.options.Ledger.BadSignatures(ctx, q)
	if err != nil {
		return err
	}
	answer := client.BadSignaturePage{
		BadSignatures: []client.BadSignature{}, NextCursor: c.caller.sealCursor(page.NextCursor),
	}
	for i := range page.BadSignatures {
		answer.BadSignatures = append(answer.BadSignatures, viewOfBadSignature(&page.BadSignatures[i]))
	}
	return c.respond(http.StatusOK, answer)
}

func viewOfBadSignature(b *idem.BadSignature) client.BadSignature {
	return client.BadSignature{
		At: client.Time{Time: b.At}, Route: b.Route, From: b.From, Scheme: b.Scheme, Reason: b.Reason, Part: b.Part,
		Detail: b.Detail, EventID: b.EventID, TraceID: b.TraceID, Status: b.Status, More: b.More,
		Until: client.Time{Time: b.Until},
	}
}
