package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

// find finds the execution in the path, if the caller may know of it.
func (c *call) find(ctx context.Context) (*idem.Found, error) {
	id := idem.ExecutionID(c.name)
	c.audit.execution = id
	if _, _, err := id.Parse(); err != nil {
		return nil, err
	}
	found, err := c.api.o.Ledger.Execution(ctx, id)
	if err != nil {
		return nil, err
	}
	if !c.caller.sees(found.Workflow()) {
		return nil, idem.ErrNoExecution
	}
	c.audit.of(found)
	c.audit.before = string(found.Status())
	return found, nil
}

func (c *call) listExecutions() error {
	q := idem.ExecutionQuery{Workflow: c.query("workflow")}
	var err error
	if q.Limit, err = c.limit(); err != nil {
		return err
	}
	if q.Status, err = c.status(); err != nil {
		return err
	}
	if q.Cursor, err = c.caller.openCursor(c.query("cursor")); err != nil {
		return err
	}
	list, err := c.listOf(q)
	if err != nil {
		return err
	}
	answer := client.ExecutionPage{Executions: []client.Execution{}}
	if q.Workflow != "" && !c.caller.sees(q.Workflow) {
		return c.ok(http.StatusOK, answer)
	}
	ctx, cancel := c.reading()
	defer cancel()
	began := time.Now()
	for more := true; more; more = len(answer.Executions) == 0 && c.mayGoOn(q.Cursor, began) {
		page, err := list(ctx, q.Cursor)
		if err != nil {
			return err
		}
		for i := range page.Executions {
			if f := &page.Executions[i]; c.caller.sees(f.Workflow()) {
				answer.Executions = append(answer.Executions, viewOfExecution(f))
			}
		}
		q.Cursor = page.NextCursor
	}
	answer.NextCursor = c.caller.sealCursor(q.Cursor)
	return c.ok(http.StatusOK, answer)
}

// mayGoOn reports whether a list whose page was empty goes on to the next one: it spares the client a request, as long as there is time.
func (c *call) mayGoOn(cursor string, began time.Time) bool {
	return cursor != "" && time.Since(began) < c.api.o.RequestTimeout/2
}

func (c *call) getExecution() error {
	wait, err := parseWait(c.query("wait"))
	if err != nil {
		return err
	}
	ctx, cancel := c.reading()
	defer cancel()
	found, err := c.find(ctx)
	if err != nil {
		return err
	}
	if wait > 0 && !found.Status().Terminal() {
		waiting, done, err := c.waiting(wait)
		if err != nil {
			return err
		}
		defer done()
		later, err := c.api.o.Ledger.Await(waiting, idem.ExecutionID(c.name), found)
		switch {
		case err == nil:
			found = later
		case waiting.Err() == nil:
			return err
		}
	}
	return c.ok(http.StatusOK, viewOfExecution(found))
}

func (c *call) cancel() error {
	var reason string
	var final bool
	if err := c.body(fields{"reason": &reason, "final": &final}); err != nil {
		return err
	}
	if err := c.reason(reason); err != nil {
		return err
	}
	ctx, done := c.changing()
	defer done()
	if _, err := c.find(ctx); err != nil {
		return err
	}
	asked := idem.Cancel{By: c.caller.token.Name, Reason: reason, At: c.api.o.Now(), Final: final}
	found, before, err := c.api.o.Ledger.Cancel(ctx, idem.ExecutionID(c.name), asked)
	if errors.Is(err, idem.ErrFinished) && found != nil {
		c.audit.before, c.audit.after = string(found.Status()), string(found.Status())
		return c.finished(found)
	}
	if err != nil {
		return err
	}
	c.audit.after, c.audit.existing = string(found.Status()), before
	view := client.Cancelled{
		Execution: viewOfExecution(found), Success: true, Message: "Cancel requested; the execution ends as soon as its owner has heard of it",
	}
	if found.Status().Terminal() {
		view.Message = "The execution is cancelled"
	}
	if before {
		return c.ok(http.StatusOK, view)
	}
	return c.ok(http.StatusAccepted, view)
}

// finished is the refusal of a cancel that came too late.
func (c *call) finished(f *idem.Found) error {
	p := refuse("already_finished", "the execution has ended as "+string(f.Status())+", and its first end stays")
	p.Status, p.RetryAfter = http.StatusBadRequest, 0
	p.Execution, p.Workflow = c.name, f.Workflow()
	p.conflict, p.Message = &conflict{}, "The execution has ended already"
	return p
}

func (c *call) forget() error {
	if err := c.reason(c.query("reason")); err != nil {
		return err
	}
	ctx, done := c.changing()
	defer done()
	if _, err := c.find(ctx); err != nil {
		return err
	}
	found, err := c.api.o.Ledger.Forget(ctx, idem.ExecutionID(c.name))
	if errors.Is(err, idem.ErrAlive) {
		return c.problemOf(err).blocked(&idem.Lock{Entry: idem.Entry{Execution: idem.ExecutionID(c.name)}}, c.audit.workflow).retry(0)
	}
	if err != nil {
		return err
	}
	c.audit.after = "forgotten"
	return c.ok(http.StatusOK, viewOfExecution(found))
}
