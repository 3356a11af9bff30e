package admin

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

// lockQuery reads the query of a list of locks or slots.
func (c *call) lockQuery() (q idem.LockQuery, err error) {
	q.Prefix = c.query("prefix")
	if q.PageSize, err = c.readPageSize(); err == nil {
		q.Cursor, err = c.caller.openCursor(c.query("cursor"))
	}
	return q, err
}

func (c *call) listLocks() error {
	q, err := c.lockQuery()
	if err != nil {
		return err
	}
	ctx, cancel := c.readContext()
	defer cancel()
	answer := client.LockPage{Locks: []client.Lock{}}
	began := time.Now()
	for more := true; more; more = len(answer.Locks) == 0 && c.mayGoOn(q.Cursor, began) {
		page, err := c.api.options.Ledger.Locks(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Locks {
			if l := &page.Locks[i]; c.caller.maySee(l.Lock.Scope.Workflow) {
				answer.Locks = append(answer.Locks, c.viewOfLock(l))
			}
		}
		q.Cursor = page.NextCursor
	}
	answer.NextCursor = c.caller.sealCursor(q.Cursor)
	return c.respond(http.StatusOK, answer)
}

func (c *call) listSlots() error {
	q, err := c.lockQuery()
	if err != nil {
		return err
	}
	list := c.api.options.Ledger.Slots
	switch waiting := c.query("waiting"); waiting {
	case "", "false":
	case "true":
		list = c.api.options.Ledger.Turns
	default:
		return refuse("bad_request", "waiting="+quoteText(waiting)+": give true or false")
	}
	ctx, cancel := c.readContext()
	defer cancel()
	answer := client.SlotPage{Slots: []client.Slot{}}
	began := time.Now()
	for more := true; more; more = len(answer.Slots) == 0 && c.mayGoOn(q.Cursor, began) {
		page, err := list(ctx, q)
		if err != nil {
			return err
		}
		for _, s := range page.Slots {
			if c.caller.maySee(s.Workflow) {
				answer.Slots = append(answer.Slots, client.Slot{
					Limit: s.LimitName, Number: s.Index, Of: s.Of, ExecutionID: string(s.Execution),
					Workflow: s.Workflow, Route: s.Route,
				})
			}
		}
		q.Cursor = page.NextCursor
	}
	answer.NextCursor = c.caller.sealCursor(q.Cursor)
	return c.respond(http.StatusOK, answer)
}

func (c *call) getLock() error {
	if !c.caller.maySee(c.name) {
		return idem.ErrNoLock
	}
	ctx, cancel := c.readContext()
	defer cancel()
	var lock *idem.LockView
	var err error
	if id := c.query("execution"); id == "" {
		lock, err = c.api.options.Ledger.Lock(ctx, c.name)
	} else {
		lock, err = c.api.options.Ledger.LockOf(ctx, c.name, idem.ExecutionID(id))
	}
	if err != nil {
		return err
	}
	return c.respond(http.StatusOK, c.viewOfLock(lock))
}

func (c *call) forceRelease() error {
	c.audit.Workflow = c.name
	id := idem.ExecutionID(c.query("execution"))
	c.audit.Execution = id
	if err := c.checkReason(c.query("reason")); err != nil {
		return err
	}
	if id == "" {
		return refuse("bad_request", "name the execution that holds the lock (execution=ID), so that no other one "+
			"is released by mistake")
	}
	if !c.caller.maySee(c.name) {
		return idem.ErrNoLock
	}
	ctx, done := c.changeContext()
	defer done()
	lock, err := c.api.options.Ledger.Lock(ctx, c.name)
	if err != nil {
		return err
	}
	c.audit.Before = "locked by " + string(lock.Lock.Execution)
	asked := idem.Cancel{By: c.caller.token.Name, Reason: c.query("reason"), At: c.api.options.Now()}
	found, err := c.api.options.Ledger.ForceRelease(ctx, c.name, id, asked, &c.audit.Audit)
	if errors.Is(err, idem.ErrLockLost) {
		p := refuse("lock_lost", "this execution does not hold the lock; see which one does")
		p.Execution, p.Workflow = string(lock.Lock.Execution), c.name
		return p
	}
	if err != nil {
		return err
	}
	if found == nil { // it cooled, and its record was removed before
		found = &idem.Found{ShortOf: lock.Lock.Scope, Short: &idem.Attempt{
			Execution: id, Status: idem.Failed, Outcome: idem.Unknown, StartedAt: lock.Lock.StartedAt,
		}}
	}
	return c.respond(http.StatusOK, viewOfExecution(found))
}

func (c *call) acquireLock() error {
	c.audit.Workflow = c.name
	want := idem.AcquireRequest{Workflow: c.name, Holder: c.caller.token.Name}
	if err := c.readBody(fields{"holder": &want.Holder, "ttl": &want.TTL, "wait": &want.Wait}); err != nil {
		return err
	}
	c.audit.Why = "holder " + cutText(want.Holder)
	if !c.caller.maySee(c.name) {
		return refuse("not_found", "the token is not for this workflow")
	}
	if err := errors.Join(checkWorkflow(c.name), checkWord("holder", want.Holder), takeTTL(&want.TTL),
		checkWait(want.Wait)); err != nil {
		return err
	}
	got, err := c.takeLock(want)
	if held, ok := errors.AsType[*idem.LockHeldError](err); ok {
		return c.lockHeld(held.Holder, want.Wait)
	}
	if err != nil {
		return err
	}
	c.audit.Execution, c.audit.Before = got.Lock.Execution, "free"
	c.audit.After = "locked by " + string(got.Lock.Execution) + ", token " + strconv.FormatInt(got.Lock.Token, 10)
	c.w.Header().Set("Location", "/v1/locks/"+url.PathEscape(c.name))
	return c.respond(http.StatusCreated, client.Acquired{Lock: c.lockNow(got.Lock), CallbackKey: got.CallbackKey})
}

// takeLock acquires the lock. It is given back at once if the client has disconnected.
func (c *call) takeLock(want idem.AcquireRequest) (*idem.Acquired, error) {
	ctx, done := c.changeContext()
	defer done()
	if want.Wait > 0 {
		done() // the ledger's own time comes on top of the wait
		waiting, left, err := c.waitContext(want.Wait + c.api.options.RequestTimeout)
		if err != nil {
			return nil, err
		}
		defer left()
		ctx = waiting
	}
	got, err := c.api.options.Ledger.AcquireLock(ctx, want)
	if err == nil && c.r.Context().Err() != nil {
		back, done := c.changeContext()
		defer done()
		err = c.api.options.Ledger.ReleaseLock(back, c.name,
			idem.Callback{Execution: got.Lock.Execution, Token: got.Lock.Token, AnyKey: true})
		return nil, errors.Join(context.Canceled, err)
	}
	return got, err
}

// lockHeld returns the refusal in the form that callers of the older in-application locks
// understand.
func (c *call) lockHeld(holder *idem.Lock, wait time.Duration) error {
	code, detail := "workflow_locked", "another execution holds the lock; try again later, or give wait"
	if wait > 0 {
		code, detail = "lock_wait_timeout", "the lock did not become free within "+wait.String()
	}
	p := refuse(code, detail).withRetryAfter(0)
	if holder == nil {
		return p.withLock(nil, c.name)
	}
	c.audit.Before = "locked by " + string(holder.Execution)
	c.audit.After = c.audit.Before
	if holder.Held || holder.Cooling { // how long a call takes is not known
		if end, _ := nearestEnd(holder, c.api.options.UpstreamTimeout, c.api.options.Now()); !end.IsZero() {
			p = p.withRetryAfter(end.Sub(c.api.options.Now()))
		}
	}
	return p.withLock(holder, c.name)
}

// lockNow returns a lock that was just taken or renewed, with the length of its queue.
func (c *call) lockNow(l *idem.Lock) client.Lock {
	ctx, cancel := c.readContext()
	defer cancel()
	view := c.viewOfLock(&idem.LockView{Lock: l})
	if now, err := c.api.options.Ledger.Lock(ctx, l.Scope.Workflow); err == nil && now.Lock.Execution == l.Execution {
		view.Waiting = now.Waiting
	}
	return view
}

// readLockCallback reads a callback of the lock API.
func (c *call) readLockCallback(more fields) (idem.Callback, error) {
	c.audit.Workflow = c.name
	by := idem.Callback{AnyKey: true, Workflow: c.name}
	var id string
	all := fields{"executionId": &id, "token": &by.Token}
	maps.Copy(all, more)
	err := c.readBody(all)
	by.Execution = idem.ExecutionID(id)
	c.audit.Execution = by.Execution
	switch {
	case err != nil:
		return by, err
	case id == "" || by.Token <= 0:
		return by, refuse("bad_request", "give executionId and token as acquire answered them")
	case !c.caller.maySee(c.name):
		return by, idem.ErrLockLost
	}
	if _, _, err := by.Execution.Parse(); err != nil {
		return by, idem.ErrLockLost
	}
	return by, nil
}

func (c *call) renewLock() error {
	by, ttl, err := readRenewal(c.readLockCallback)
	if err != nil {
		return err
	}
	ctx, done := c.changeContext()
	defer done()
	found, err := c.api.options.Ledger.Heartbeat(ctx, by, ttl)
	if err != nil {
		return hasNot(err)
	}
	c.audit.Before, c.audit.After = "held", heldUntil(found.Lock)
	return c.respond(http.StatusOK, c.lockNow(found.Lock))
}

// hasNot returns err without the current holder: a client of the lock API may learn whether it has
// the lock, but not what another delivery has.
func hasNot(err error) error {
	for _, gone := range []error{idem.ErrCancelled, idem.ErrFinished, idem.ErrNoExecution, idem.ErrNoLock,
		idem.ErrLockHeld} {
		if errors.Is(err, gone) {
			return idem.ErrLockLost
		}
	}
	return err
}

// heldUntil says in the audit log how long a lock is held.
func heldUntil(l *idem.Lock) string {
	switch {
	case l == nil:
		return "ended"
	case !l.Held: // its delivery is still at the upstream
		return "running"
	}
	return "held until " + l.HoldUntil.UTC().Format(time.RFC3339)
}

func (c *call) releaseLock() error {
	by, err := c.readLockCallback(nil)
	if err != nil {
		return err
	}
	ctx, done := c.changeContext()
	defer done()
	c.audit.Before = "locked by " + string(by.Execution)
	if err := c.api.options.Ledger.ReleaseLock(ctx, c.name, by); err != nil {
		return hasNot(err)
	}
	c.audit.After = "free"
	c.answer = func() { c.w.WriteHeader(http.StatusNoContent) }
	return nil
}
