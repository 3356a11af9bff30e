package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"time"
)

// Lock is the lock of a workflow, and the execution that has it.
type Lock struct {
	Workflow    string `json:"workflow"`
	ExecutionID string `json:"executionId"`
	Route       string `json:"route,omitempty"` // absent for a lock of the lock API
	// The sender's ID of the event. Absent if the payload is the key.
	EventID string `json:"eventId,omitempty"`
	// Other names that find the event. Absent if it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// host/pid/session of the replica that runs the execution, or the name that a client of the
	// lock API gave itself.
	Holder   string `json:"holder"`
	Token    int64  `json:"token" jsonschema:"minimum=1"` // the fencing token
	LockedAt Time   `json:"lockedAt"`                     // when the execution began
	// When the lock ends if nothing else ends it: the earliest of upstream.timeout of a running
	// execution (later if the service has begun a long answer), the end of a hold, max_duration,
	// and the end of a release_delay. Absent if there is none of them.
	ExpiresAt Time    `json:"expiresAt,omitzero"`
	HeldFor   float64 `json:"heldFor" jsonschema:"type=integer"` // for how many seconds the execution has had it
	// Seconds until expiresAt. Absent without it.
	ExpiresIn *float64 `json:"expiresIn,omitempty" jsonschema:"type=integer,minimum=0"`
	// Which end expiresAt is. Absent without it.
	EndsBy  string `json:"endsBy,omitempty" jsonschema:"enum=upstream.timeout,enum=hold,enum=max_duration,enum=release_delay"`
	Held    bool   `json:"held"`    // it outlives the answer of its delivery
	Waiting int    `json:"waiting"` // how many executions wait for it
	// Its owner is dead: the next execution that needs the lock takes it over.
	IsStale bool `json:"isStale"`
	// The execution has ended with an unknown outcome, and release_delay keeps the lock closed.
	// Absent otherwise.
	Cooling bool `json:"cooling,omitempty"`
	// What its parked event waits for, while nothing of it is at the service. Absent if the event
	// is not parked, and while it is tried.
	Parked *Parked `json:"parked,omitempty"`
	// How many executions of the workflow may run at a time by the rules of the replica that
	// answers. Each has a lock of its own. Absent if it is one.
	Of int `json:"of,omitempty"`
	// The executions of the workflow that run, the oldest first. Absent in lists, and if `of` is
	// absent.
	Executions []string `json:"executions,omitempty"`

	raw
}

// UnmarshalJSON reads the object and keeps it for RawJSON.
func (l *Lock) UnmarshalJSON(text []byte) error {
	type plain Lock
	err := l.read(text, (*plain)(l))
	if err == nil && l.Workflow == "" {
		err = errors.New("a lock has a workflow")
	}
	return err
}

// LockQuery selects locks, or slots. The zero value selects all of them.
type LockQuery struct {
	// Prefix selects the workflows that begin with it.
	Prefix string `query:"prefix"`

	Limit  int    `query:"limit"`  // the most items of a page
	Cursor string `query:"cursor"` // nextCursor of the page before; absent: from the beginning
}

// LockPage is a part of the list of locks. It may hold fewer items than its limit, even none, and
// not be the last one: only an empty nextCursor says that it is.
type LockPage struct {
	Locks      []Lock `json:"locks"`
	NextCursor string `json:"nextCursor"`
}

// LockPage returns one page of the locks.
func (c *Client) LockPage(ctx context.Context, q LockQuery) (*LockPage, error) {
	return get[LockPage](ctx, c, "/v1/locks", "locks", queryOf(q))
}

// Locks returns all locks from q.Cursor on, page after page. The sequence ends after an error.
func (c *Client) Locks(ctx context.Context, q LockQuery) iter.Seq2[*Lock, error] {
	return eachOfPages(&q.Cursor, func() (*LockPage, error) { return c.LockPage(ctx, q) },
		func(p *LockPage) ([]Lock, string) { return p.Locks, p.NextCursor })
}

// eachOfPages yields the elements of all pages from cursor on. get gets the page at it, and parts
// takes one apart.
func eachOfPages[P, T any](cursor *string, get func() (*P, error), parts func(*P) ([]T, string)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for page, err := range eachPage(cursor, get, func(p *P) string { _, next := parts(p); return next }) {
			if err != nil {
				yield(nil, err)
				return
			}
			items, _ := parts(page)
			for i := range items {
				if !yield(&items[i], nil) {
					return
				}
			}
		}
	}
}

// eachPage yields pages from cursor on, until next returns no cursor or one fails.
func eachPage[P any](cursor *string, get func() (*P, error), next func(*P) string) iter.Seq2[*P, error] {
	return func(yield func(*P, error) bool) {
		for {
			page, err := get()
			if !yield(page, err) || err != nil || next(page) == "" {
				return
			}
			if next(page) == *cursor {
				yield(nil, errors.New("the server gave the same cursor twice"))
				return
			}
			*cursor = next(page)
		}
	}
}

// lockPath returns the path of a workflow's lock.
func lockPath(workflow, action string) string {
	path := "/v1/locks/" + pathSegment(workflow)
	if action != "" {
		path += "/" + action
	}
	return path
}

// sendLockCall sends a call about one lock.
func (c *Client) sendLockCall(ctx context.Context, workflow, action string, call call) (*Lock, error) {
	call.path, call.has = lockPath(workflow, action), "workflow"
	return ask[Lock](ctx, c, call)
}

// Lock returns the lock of a workflow. A *Problem with CodeLockNotFound means that it is free. If a
// lock.limit above 1 gives a workflow several locks, it returns the oldest one.
func (c *Client) Lock(ctx context.Context, workflow string) (*Lock, error) {
	return c.sendLockCall(ctx, workflow, "", call{method: http.MethodGet})
}

// LockOf returns the lock that an execution has: it tells the locks of a workflow apart whose route
// has a lock.limit above 1. A *Problem with CodeLockNotFound means that the execution has none.
func (c *Client) LockOf(ctx context.Context, workflow, executionID string) (*Lock, error) {
	return c.sendLockCall(ctx, workflow, "",
		call{method: http.MethodGet, query: queryOfPairs("execution", executionID)})
}

// ForceRelease takes the lock from an execution, and returns the execution as it ended: it is
// ABORTED, with reason and the name of the token. A running call is closed, and its sender is
// answered with lock_lost. A *Problem with CodeLockLost means that another execution has the lock.
func (c *Client) ForceRelease(ctx context.Context, workflow, executionID, reason string) (*Execution, error) {
	return ask[Execution](ctx, c, call{method: http.MethodDelete, path: lockPath(workflow, ""),
		query: queryOfPairs("execution", executionID, "reason", reason), has: "executionId"})
}

// AcquireRequest asks for a lock that belongs to no delivery.
type AcquireRequest struct {
	// Holder names the client, for people. Absent: the token's name.
	Holder string
	// TTL is how long the lock lives if it is not renewed: at most 24 hours, in whole seconds,
	// rounded up.
	TTL time.Duration
	// Wait is how long to wait for the lock, first come, first served: at most 5 minutes. Absent:
	// not at all.
	Wait time.Duration
}

// Acquired is a lock that the caller has until expiresAt, or for longer if it renews the lock.
type Acquired struct {
	Lock
	// For guard, heartbeat and complete. It is a secret, and is not shown again.
	CallbackKey string `json:"callbackKey"`
}

// UnmarshalJSON reads the lock and the key beside it.
func (a *Acquired) UnmarshalJSON(text []byte) error {
	var key struct {
		CallbackKey string `json:"callbackKey"`
	}
	if err := json.Unmarshal(text, &key); err != nil {
		return err
	}
	a.CallbackKey = key.CallbackKey
	return a.Lock.UnmarshalJSON(text)
}

// Acquire takes the lock of a workflow. A *Problem with CodeWorkflowLocked, or after a wait with
// CodeLockWaitTimeout, means that another execution has it: ExistingExecutionID and RetryAfter say
// which, and when to ask again.
//
// If no answer comes, the lock may be taken all the same. It is free again after the TTL.
func (c *Client) Acquire(ctx context.Context, workflow string, r AcquireRequest) (*Acquired, error) {
	body := struct {
		Holder string   `json:"holder"`
		TTL    duration `json:"ttl"`
		Wait   duration `json:"wait"`
	}{r.Holder, duration(r.TTL), duration(r.Wait)}
	return ask[Acquired](ctx, c, call{method: http.MethodPost, path: lockPath(workflow, "acquire"), body: body,
		wait: r.Wait, has: "workflow"})
}

// Renew keeps an acquired lock for ttl from now on; 0 is the TTL that it was acquired with. A
// *Problem with status 412 means that the lock is lost: stop working.
func (c *Client) Renew(ctx context.Context, workflow, executionID string, token int64, ttl time.Duration) (*Lock,
	error) {
	body := struct {
		ExecutionID string   `json:"executionId"`
		Token       int64    `json:"token"`
		TTL         duration `json:"ttl,omitzero"`
	}{executionID, token, duration(ttl)}
	return c.sendLockCall(ctx, workflow, "renew", call{method: http.MethodPost, body: body})
}

// Release gives an acquired lock back. A *Problem with status 412 means that the lock had been
// lost.
func (c *Client) Release(ctx context.Context, workflow, executionID string, token int64) error {
	body := struct {
		ExecutionID string `json:"executionId"`
		Token       int64  `json:"token"`
	}{executionID, token}
	_, err := c.sendOnce(ctx, call{method: http.MethodPost, path: lockPath(workflow, "release"), body: body})
	return err
}

// Slot is a slot of a limit, and the execution that has it or waits for one.
type Slot struct {
	// The limit with the value from the delivery: tenant/acme. For lock.limit of a workflow it is
	// workflow:NAME.
	Limit  string `json:"limit"`
	Number int    `json:"slot" jsonschema:"minimum=-1"` // -1: the execution waits for one
	// How many slots the limit has by the rules of the replica that answers. Absent if that has no
	// such limit.
	Of          int    `json:"of,omitempty"`
	ExecutionID string `json:"executionId"`
	Workflow    string `json:"workflow"`
	Route       string `json:"route"`

	raw
}

// SlotCount is how many executions of a replica have a slot of the limits of one name, or wait for
// one.
type SlotCount struct {
	// The name in limits.shared. lock.limit stands for the limits of all workflows.
	Limit   string `json:"limit"`
	Taken   int    `json:"taken"`
	Waiting int    `json:"waiting"`
}

// OwnSlot is a slot that an execution has, or had.
type OwnSlot struct {
	Limit  string `json:"limit"`
	Number int    `json:"slot"`
}

// UnmarshalJSON reads the object and keeps it for RawJSON.
func (s *Slot) UnmarshalJSON(text []byte) error {
	type plain Slot
	err := s.read(text, (*plain)(s))
	if err == nil && s.Limit == "" {
		err = errors.New("a slot is of a limit")
	}
	return err
}

// SlotPage is a part of the list of slots. It may hold fewer items than its limit, even none, and
// not be the last one: only an empty nextCursor says that it is.
type SlotPage struct {
	Slots      []Slot `json:"slots"`
	NextCursor string `json:"nextCursor"`
}

// SlotPage returns one page of the slots that are taken. q.Prefix is the beginning of the limit.
func (c *Client) SlotPage(ctx context.Context, q LockQuery) (*SlotPage, error) {
	return c.slotPage(ctx, q, false)
}

// TurnPage returns one page of the executions that are first of their queue and wait for a slot.
func (c *Client) TurnPage(ctx context.Context, q LockQuery) (*SlotPage, error) {
	return c.slotPage(ctx, q, true)
}

func (c *Client) slotPage(ctx context.Context, q LockQuery, waiting bool) (*SlotPage, error) {
	selection := queryOf(q)
	if waiting {
		selection.Set("waiting", "true")
	}
	return get[SlotPage](ctx, c, "/v1/slots", "slots", selection)
}
