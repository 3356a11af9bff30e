package admin

import (
	"net/http"

	"hooklock/admin/client"
)

// keptAnswer shows the answer that duplicates of an execution's event get. It is data of the
// upstream's, so it is never served under its own content type: a browser would take it for a page
// of this listener.
func (c *call) keptAnswer() error {
	ctx, cancel := c.reading()
	defer cancel()
	found, err := c.find(ctx)
	if err != nil {
		return err
	}
	r := found.Record
	if r == nil || !r.Remembered || r.Answer == nil || !r.Answer.Whole {
		return refuse("answer_not_kept", "no whole answer of this execution is kept: there was none, it was longer "+
			"than idempotency.replay_body, idempotency.keep has not its status, or idempotency.replay_retention "+
			"is over")
	}
	answer := client.KeptAnswer{Status: r.Answer.Status, Headers: []client.HeaderLine{},
		Body: append([]byte{}, r.Answer.Body...)}
	for _, h := range r.Answer.Header {
		answer.Headers = append(answer.Headers, client.HeaderLine(h))
	}
	return c.ok(http.StatusOK, answer)
}
