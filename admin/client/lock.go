package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"time"
)

// Lock is a workflow's lock and its holder.
type Lock struct {
	Workflow    string `json:"workflow"`
	ExecutionID string `json:"executionId"`
	Route       string `json:"route,omitempty"` // absent for a lock of the lock API
	// What its sender calls the event. Absent where its payload is the key.
	EventID string `json:"eventId,omitempty"`
	// What the event is found by, besides, by name. Absent where it has none.
	Labels map[string]string `json:"labels,omitempty"`
	// host/pid/session of a delivery's process, or what its client called itself.
	Holder   string `json:"holder"`
	Token    int64  `json:"token" jsonschema:"minimum=1"` // the fencing token
	LockedAt Time   `json:"lockedAt"`                     // when the execution began
	// When it ends if nobody does anything, the nearest of: upstream.timeout of a running
	// execution (later where the upstream has begun a long answer), the end of a hold,
	// max_duration, the end of a release_delay. Absent where there is none.
	ExpiresAt Time    `json:"expiresAt,omitzero"`
	HeldFor   float64 `json:"heldFor" jsonschema:"type=integer"` // seconds
	// Seconds. Absent without expiresAt.
	ExpiresIn *float64 `json:"expiresIn,omitempty" jsonschema:"type=integer,minimum=0"`
	// Which end expiresAt is. Absent without expiresAt.
	EndsBy  string `json:"endsBy,omitempty" jsonschema:"enum=upstream.timeout,enum=hold,enum=max_duration,enum=release_delay"`
	Held    bool   `json:"held"`    // it outlives its answer
	Waiting int    `json:"waiting"` // how many wait for it
	// Its owner is dead; the next one to come takes over.
	IsStale bool `json:"isStale"`
	// The execution has ended with an unknown outcome, and release_delay keeps the lock closed.
	// Absent otherwise.
	Cooling bool `json:"cooling,omitempty"`
	// Its event is parked, and nothing of it is at the upstream: what it waits for. Absent where
	// it is not parked, and while it is tried.
	Parked *Parked `json:"parked,omitempty"`
	// How many executions of the workflow may run at a time, as this replica has it, where that
	// is more than one: then each of them has a lock. Absent: it is one.
	Of int `json:"of,omitempty"`
	// Those that run, the oldest first. Of one lock that was asked for, and where of is not
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

// LockQuery selects locks. The zero value selects all of them.
type LockQuery struct {
	// Prefix selects the workflows that begin with it.
	Prefix string `query:"prefix"`

	Limit  int    `query:"limit"`  // the most items of a page
	Cursor string `query:"cursor"` // nextCursor of the page before; absent: from the beginning
}

// LockPage is a part of the locks. It may be shorter than its limit, even empty, and not be the
// last: only an empty nextCursor says that.
type LockPage struct {
	Locks      []Lock `json:"locks"`
	NextCursor string `json:"nextCursor"`
}

// LockPage gets one page.
func (c *Client) LockPage(ctx context.Context, q LockQuery) (*LockPage, error) {
	return ask[LockPage](ctx, c, call{
		method: http.MethodGet, path: "/v1/locks", query: queryOf(q), has: "locks",
	})
}

// Locks yields the locks from q.Cursor on, page after page. After an error it ends.
func (c *Client) Locks(ctx context.Context, q LockQuery) iter.Seq2[*Lock, error] {
	return each(&q.Cursor, func() (*LockPage, error) { return c.LockPage(ctx, q) },
		func(p *LockPage) ([]Lock, string) { return p.Locks, p.NextCursor })
}

// each yields the elements of all pages from cursor on. get gets the page at it, and parts takes
// one apart.
func each[P, T any](cursor *string, get func() (*P, error), parts func(*P) ([]T, string)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for page, err := range pages(cursor, get, func(p *P) string { _, next := parts(p); return next }) {
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

// pages yields pages from cursor on, until next returns no cursor or one fails.
func pages[P any](cursor *string, get func() (*P, error), next func(*P) string) iter.Seq2[*P, error] {
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
	path := "/v1/locks/" + segment(workflow)
	if action != "" {
		path += "/" + action
	}
	return path
}

// lock sends a call about one lock.
func (c *Client) lock(ctx context.Context, workflow, action string, call call) (*Lock, error) {
	call.path, call.has = lockPath(workflow, action), "workflow"
	return ask[Lock](ctx, c, call)
}

// Lock returns a workflow's lock. A *Problem with CodeLockNotFound means that it is free.
func (c *Client) Lock(ctx context.Context, workflow string) (*Lock, error) {
	return c.lock(ctx, workflow, "", call{method: http.MethodGet})
}

// LockOf returns the lock of an execution: if a route has a lock.limit above 1 a workflow has
// several. A *Problem with CodeLockNotFound means that the execution has none.
func (c *Client) LockOf(ctx context.Context, workflow, executionID string) (*Lock, error) {
	return c.lock(ctx, workflow, "", call{method: http.MethodGet, query: query("execution", executionID)})
}

// ForceRelease takes the lock from an execution. A running call is closed and its delivery answered
// with lock_lost; the record is ABORTED, with reason and the name of the token. It returns the
// execution as it ended. A *Problem with CodeLockLost means that another execution holds the lock.
func (c *Client) ForceRelease(ctx context.Context, workflow, executionID, reason string) (*Execution, error) {
	return ask[Execution](ctx, c, call{method: http.MethodDelete, path: lockPath(workflow, ""),
		query: query("execution", executionID, "reason", reason), has: "executionId"})
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

// Acquired is a lock that the caller has now. It is the caller's until expiresAt, unless it is
// renewed.
type Acquired struct {
	Lock
	CallbackKey string `json:"callbackKey"` // for guard, heartbeat and complete. It is not shown again.
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

// Acquire takes a workflow's lock. A *Problem with status 409 (CodeWorkflowLocked, or
// CodeLockWaitTimeout after a wait) has the holder (ExistingExecutionID) and when to ask again.
//
// If the answer is lost, the lock may have been taken all the same: it is free again after the TTL.
func (c *Client) Acquire(ctx context.Context, workflow string, r AcquireRequest) (*Acquired, error) {
	body := struct {
		Holder string   `json:"holder"`
		TTL    duration `json:"ttl"`
		Wait   duration `json:"wait"`
	}{r.Holder, duration(r.TTL), duration(r.Wait)}
	return ask[Acquired](ctx, c, call{method: http.MethodPost, path: lockPath(workflow, "acquire"), body: body,
		wait: r.Wait, has: "workflow"})
}

// Renew keeps an acquired lock for another ttl; 0 = the one that it was acquired with. A *Problem
// with status 412 means that the caller has lost the lock: stop working.
func (c *Client) Renew(ctx context.Context, workflow, executionID string, token int64, ttl time.Duration) (*Lock,
	error) {
	body := struct {
		ExecutionID string   `json:"executionId"`
		Token       int64    `json:"token"`
		TTL         duration `json:"ttl,omitzero"`
	}{executionID, token, duration(ttl)}
	return c.lock(ctx, workflow, "renew", call{method: http.MethodPost, body: body})
}

// Release gives an acquired lock back. A *Problem with status 412 means that the caller had lost
// it.
func (c *Client) Release(ctx context.Context, workflow, executionID string, token int64) error {
	body := struct {
		ExecutionID string `json:"executionId"`
		Token       int64  `json:"token"`
	}{executionID, token}
	_, err := c.do(ctx, call{method: http.MethodPost, path: lockPath(workflow, "release"), body: body})
	return err
}
