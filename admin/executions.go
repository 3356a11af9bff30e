package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

// findExecution finds the execution in the path, if the caller may see it.
func (c *call) findExecution(ctx context.Context) (*idem.Found, error) {
	id := idem.ExecutionID(c.name)
	c.audit.Execution = id
	if _, _, err := id.Parse(); err != nil && c.endpoint.change == "" && strings.HasPrefix(c.name, "exec_") {
		if id, err = c.wholeID(ctx); err != nil {
			return nil, err
		}
		c.name = string(id)
	} else if err != nil {
		return nil, err
	}
	found, err := c.api.options.Ledger.Execution(ctx, id)
	if err != nil {
		return nil, err
	}
	if !c.caller.maySee(found.Workflow()) {
		return nil, idem.ErrNoExecution
	}
	c.audit.setExecution(found)
	c.audit.Before = string(found.Status())
	return found, nil
}

// wholeID returns the ID that begins as the path says, if the caller sees only one such execution.
// A change needs the whole ID.
func (c *call) wholeID(ctx context.Context) (idem.ExecutionID, error) {
	var ids []idem.ExecutionID
	for q := (idem.ExecutionQuery{IDPrefix: c.name}); ; {
		page, err := c.api.options.Ledger.Executions(ctx, q)
		if err != nil {
			return "", err
		}
		for i := range page.Executions {
			if f := &page.Executions[i]; c.caller.maySee(f.Workflow()) {
				ids = append(ids, f.IDs()...)
			}
		}
		ids = slices.DeleteFunc(ids, func(id idem.ExecutionID) bool { return !strings.HasPrefix(string(id), c.name) })
		slices.Sort(ids)
		ids = slices.Compact(ids) // one that moves between two pages is on both
		if q.Cursor = page.NextCursor; q.Cursor == "" || len(ids) > 1 {
			break
		}
	}
	switch len(ids) {
	case 0:
		return "", idem.ErrNoExecution
	case 1:
		return ids[0], nil
	}
	return "", refuse("bad_request", "several executions have an ID that begins with this: give more of "+
		"it; GET /v1/executions?id= lists them")
}

func (c *call) listExecutions() error {
	q, err := c.executionQuery()
	if err != nil {
		return err
	}
	ctx, cancel := c.readContext()
	defer cancel()
	if q.Acknowledged, err = c.readAcknowledgements(ctx); err != nil {
		return err
	}
	list, err := c.listOf(q)
	if err != nil {
		return err
	}
	answer := client.ExecutionPage{Executions: []client.Execution{}}
	if one := q.OneWorkflow(); one != "" && !c.caller.maySee(one) {
		return c.respond(http.StatusOK, answer)
	}
	began, met := time.Now(), behind{c, map[idem.ExecutionID]*client.ArrivalBehind{}}
	for more := true; more; more = len(answer.Executions) == 0 && c.mayGoOn(q.Cursor, began) {
		page, err := list(ctx, q.Cursor)
		if err != nil {
			return err
		}
		for i := range page.Executions {
			if f := &page.Executions[i]; c.caller.maySee(f.Workflow()) {
				v := viewOfExecution(f)
				c.showFailed(&v, f)
				if v.Status == client.Refused || v.Status == client.Released {
					met.showObstacles(ctx, &v, f, 1)
				}
				answer.Executions = append(answer.Executions, v)
			}
		}
		q.Cursor = page.NextCursor
	}
	answer.NextCursor = c.caller.sealCursor(q.Cursor)
	return c.respond(http.StatusOK, answer)
}

// mayGoOn reports whether there is time to read the next page after an empty one, which spares the
// client a request.
func (c *call) mayGoOn(cursor string, began time.Time) bool {
	return cursor != "" && time.Since(began) < c.api.options.RequestTimeout/2
}

func (c *call) getExecution() error {
	wait, err := parseWait(c.query("wait"))
	if err != nil {
		return err
	}
	ctx, cancel := c.readContext()
	defer cancel()
	found, err := c.findExecution(ctx)
	if err != nil {
		return err
	}
	if wait > 0 && !found.Status().Terminal() {
		waiting, done, err := c.waitContext(wait)
		if err != nil {
			return err
		}
		defer done()
		later, err := c.api.options.Ledger.Await(waiting, idem.ExecutionID(c.name), found)
		switch {
		case err == nil:
			again, cancel := c.readContext()
			defer cancel()
			if found, err = c.findExecution(again); err != nil { // it may be gone by now
				found = later
			}
		case waiting.Err() == nil:
			return err
		}
	}
	v, met := viewOfExecution(found), behind{c, map[idem.ExecutionID]*client.ArrivalBehind{}}
	looking, over := c.readContext()
	defer over()
	met.showObstacles(looking, &v, found, idem.MaxArrivals)
	c.showArchived(looking, &v, found)
	c.showFailed(&v, found)
	return c.respond(http.StatusOK, v)
}

// active are the statuses of what can be cancelled.
var active = []idem.Status{idem.Pending, idem.Running, idem.CancelRequested}

func (c *call) cancelExecution() error {
	var reason string
	var only string
	var final bool
	if err := c.readBody(fields{"reason": &reason, "final": &final, "ifStatus": &only}); err != nil {
		return err
	}
	if only != "" && !slices.Contains(active, idem.Status(only)) {
		return refuse("bad_request", fmt.Sprintf("ifStatus %s: give one of %v", quoteText(only), active))
	}
	if err := c.checkReason(reason); err != nil {
		return err
	}
	ctx, done := c.changeContext()
	defer done()
	if _, err := c.findExecution(ctx); err != nil {
		return err
	}
	asked := idem.Cancel{
		By: c.caller.token.Name, Reason: reason, At: c.api.options.Now(), Final: final, Only: idem.Status(only)}
	found, before, err := c.api.options.Ledger.Cancel(ctx, idem.ExecutionID(c.name), asked, &c.audit.Audit)
	if errors.Is(err, idem.ErrFinished) && found != nil {
		c.audit.Before, c.audit.After = string(found.Status()), string(found.Status())
		return c.finishedProblem(found)
	}
	if errors.Is(err, idem.ErrMoved) && found != nil {
		p := refuse("status_changed", fmt.Sprintf("the execution is %s and not %s, so nothing was done; look again, "+
			"then decide", found.Status(), only))
		p.Execution, p.Workflow, p.State = c.name, found.Workflow(), found.Status()
		c.audit.Before, c.audit.After = string(found.Status()), string(found.Status())
		return p
	}
	if err != nil {
		return err
	}
	view := client.Cancelled{
		Execution: viewOfExecution(found), Success: true,
		Message: "Cancel requested; the execution ends as soon as its owner has received it",
	}
	switch {
	case found.Status().Terminal():
		view.Message = "The execution is cancelled"
	case found.Lock.Held:
		view.Message = heldText(found.Lock)
	}
	if before {
		return c.respond(http.StatusOK, view)
	}
	return c.respond(http.StatusAccepted, view)
}

// heldText says what a cancel of a held execution waits for.
func heldText(l *idem.Lock) string {
	what, until := "its lock", "when its hold ends"
	if l.HasSlot() {
		what = "its lock and its slots"
	}
	if !l.HoldUntil.IsZero() {
		until = "at " + l.HoldUntil.UTC().Format(time.RFC3339)
	}
	return "Cancel requested; the execution ends when its service learns of it at its next guard or heartbeat, or " +
		until + ", and has " + what + " until then"
}

// finishedProblem returns the refusal of a cancel that came too late.
func (c *call) finishedProblem(f *idem.Found) error {
	p := refuse("already_finished", "the execution has ended as "+string(f.Status())+", and its first end stays")
	p.Status, p.RetryAfter = http.StatusBadRequest, 0
	p.Execution, p.Workflow = c.name, f.Workflow()
	p.conflict, p.Message = &conflict{}, "The execution has ended already"
	return p
}

func (c *call) forgetExecution() error {
	if err := c.checkReason(c.query("reason")); err != nil {
		return err
	}
	erase := c.query("erase")
	if erase != "" && erase != "true" {
		return refuse("bad_request", "erase="+quoteText(erase)+": give true, or leave it out")
	}
	ctx, done := c.changeContext()
	defer done()
	if _, err := c.findExecution(ctx); err != nil {
		return err
	}
	found, err := c.forgetAs(ctx, idem.ExecutionID(c.name), c.query("reason"), erase != "")
	if errors.Is(err, idem.ErrNotErased) {
		c.api.options.Log.Warn("admin.request_unavailable", "execution", c.name, "error", err.Error())
		return refuse("request_unavailable", "the execution is forgotten, but its stored request could not be "+
			"deleted now: Hooklock deletes it about an hour after its store answers again; the log of this Hooklock "+
			"says what failed")
	}
	if errors.Is(err, idem.ErrAlive) {
		running := &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: idem.ExecutionID(c.name)}}
		return c.problemOf(err).withLock(running, c.audit.Workflow).withRetryAfter(0)
	}
	if err != nil {
		return err
	}
	return c.respond(http.StatusOK, viewOfExecution(found))
}

// forgetAs removes the record of an execution in the caller's name. No command leads to the
// requests of its event from then on, so those of all attempts are deleted. With erase they go
// before it, too, because it is refused if they cannot go; and with the record how it arrived.
func (c *call) forgetAs(ctx context.Context, id idem.ExecutionID, reason string, erase bool) (*idem.Found, error) {
	if erase {
		if err := c.eraseRequests(ctx, id); err != nil {
			return nil, err
		}
		var done context.CancelFunc
		ctx, done = c.changeContext() // the store may have taken its time
		defer done()
	}
	by := idem.Cancel{By: c.caller.token.Name, Reason: reason, At: c.api.options.Now(), Erase: erase}
	found, err := c.api.options.Ledger.Forget(ctx, id, by, &c.audit.Audit)
	isForgotten := err == nil || errors.Is(err, idem.ErrNotErased)
	if isForgotten && c.api.options.Archive != nil && (erase || c.api.keepsRequests(found.Record.Route)) {
		// with erase, too: a replica that has not heard of it may have written one meanwhile
		_ = c.eraseRequestsOf(ctx, found.Record) // it is logged, and they go when they are old
	}
	return found, err
}
