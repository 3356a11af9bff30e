package admin

import (
	"net/http"

	"hooklock/admin/client"
	"hooklock/idem"
)

// listBadSignatures lists deliveries whose signature was not valid. What has no proof of its sender
// belongs to no workflow.
func (c *call) listBadSignatures() (err error) {
	q := idem.BadSignatureQuery{Route: c.query("route"), EventID: c.query("event")}
	if q.PageSize, err = c.limit(); err != nil {
		return err
	}
	if q.Since, q.Until, err = c.period(c.query("since"), c.query("until")); err != nil {
		return err
	}
	if q.Cursor, err = c.caller.openCursor(c.query("cursor")); err != nil {
		return err
	}
	ctx, cancel := c.reading()
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
	return c.ok(http.StatusOK, answer)
}

func viewOfBadSignature(b *idem.BadSignature) client.BadSignature {
	return client.BadSignature{
		At: client.Time{Time: b.At}, Route: b.Route, From: b.From, Scheme: b.Scheme, Reason: b.Reason, Part: b.Part,
		Detail: b.Detail, EventID: b.EventID, TraceID: b.TraceID, Status: b.Status, More: b.More,
		Until: client.Time{Time: b.Until},
	}
}
