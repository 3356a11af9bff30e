package admin

import (
	"context"
	"errors"
	"net/http"

	"hooklock/admin/client"
	"hooklock/idem"
)

// Archive has the requests of executions whose route keeps them, whether or not they have ended.
type Archive interface {
	// Has reports whether the request of an execution is there.
	Has(ctx context.Context, e *idem.ExecutionFacts) (bool, error)
	// Request returns it as it came. It returns idem.ErrNoRequest.
	Request(ctx context.Context, e *idem.ExecutionFacts) (head, body []byte, err error)
	// Erase deletes it. It returns nil if there is none.
	Erase(ctx context.Context, e *idem.ExecutionFacts) error
}

// showArchived shows whether the request of an execution is in the archive.
func (c *call) showArchived(ctx context.Context, v *client.Execution, f *idem.Found) {
	e := f.Facts()
	if e == nil || c.api.options.Archive == nil || f.Short != nil {
		return
	}
	has, err := c.api.options.Archive.Has(ctx, e)
	switch {
	case has:
		v.RequestStored = client.StoredYes
	case c.api.keepsRequests(e.Route) && err == nil:
		v.RequestStored = client.StoredNo
	case c.api.keepsRequests(e.Route):
		c.api.options.Log.Warn("admin.request_unavailable", "execution", c.name, "error", err.Error())
		v.RequestStored = client.StoredUnknown
	}
}

// keepsRequests reports whether a route of this process keeps requests.
func (a *API) keepsRequests(route string) bool {
	if a.options.Process == nil {
		return false
	}
	list := client.RouteList{Routes: a.options.Process.Routes()}
	rules := list.Of(route)
	return rules != nil && rules.KeepRequests > 0
}

// archivedRequest returns the request of an execution from the archive.
func (c *call) archivedRequest(ctx context.Context, f *idem.Found) (head, body []byte, err error) {
	if c.api.options.Archive == nil || f.Facts() == nil {
		return nil, nil, idem.ErrNoRequest
	}
	head, body, err = c.api.options.Archive.Request(ctx, f.Facts())
	if err != nil && !errors.Is(err, idem.ErrNoRequest) {
		err = c.unreadableProblem(err)
	}
	return head, body, err
}

// eraseRequests deletes the requests of all attempts of an event from the archive, if it has ended.
func (c *call) eraseRequests(ctx context.Context, id idem.ExecutionID) error {
	if c.api.options.Archive == nil {
		return nil
	}
	f, err := c.api.options.Ledger.Execution(ctx, id)
	if err != nil || f.Record == nil { // it is refused by what comes next
		return err
	}
	return c.eraseRequestsOf(ctx, f.Record)
}

// eraseRequestsOf deletes the requests of an execution and of the attempts before it.
func (c *call) eraseRequestsOf(ctx context.Context, r *idem.Record) error {
	life, done := context.WithTimeout(context.WithoutCancel(ctx), keptTime)
	defer done()
	entries := []idem.ExecutionFacts{r.ExecutionFacts}
	for _, a := range r.Earlier {
		entries = append(entries, idem.ExecutionFacts{Execution: a.Execution, StartedAt: a.StartedAt})
	}
	for i := range entries {
		if err := c.api.options.Archive.Erase(life, &entries[i]); err != nil {
			return c.unreadableProblem(err)
		}
	}
	return nil
}

// keptAnswer shows the answer that duplicates of an execution's event get. It is data of the
// upstream's, so it is never served under its own content type: a browser would take it for a page
// of this listener.
func (c *call) keptAnswer() error {
	ctx, cancel := c.readContext()
	defer cancel()
	found, err := c.findExecution(ctx)
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
	return c.respond(http.StatusOK, answer)
}
