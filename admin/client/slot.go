package client

import (
	"context"
	"errors"
	"net/http"
)

// Slot is a slot of a limit, and the execution that has it.
type Slot struct {
	// With what the delivery had in it: tenant/acme. That of a workflow's lock.limit is
	// workflow:NAME.
	Limit  string `json:"limit"`
	Number int    `json:"slot" jsonschema:"minimum=-1"` // -1: it waits for one
	// How many slots the limit has, as the replica has it that was asked; absent where it knows
	// no such limit.
	Of          int    `json:"of,omitempty"`
	ExecutionID string `json:"executionId"`
	Workflow    string `json:"workflow"`
	Route       string `json:"route"`

	raw
}

// SlotCount is how many executions of a process have a slot of the limits of one name, and how many
// wait for one.
type SlotCount struct {
	Limit   string `json:"limit"` // as limits.shared has it; lock.limit is those of workflows
	Taken   int    `json:"taken"`
	Waiting int    `json:"waiting"`
}

// OwnSlot is a slot of an execution.
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

// SlotPage is a part of the slots that are taken. It may be shorter than its limit, even empty,
// and not be the last: only an empty nextCursor says that.
type SlotPage struct {
	Slots      []Slot `json:"slots"`
	NextCursor string `json:"nextCursor"`
}

// SlotPage gets one page. The prefix of q is that of the limits.
func (c *Client) SlotPage(ctx context.Context, q LockQuery) (*SlotPage, error) {
	return c.slotPage(ctx, q, false)
}

// TurnPage returns one page of the slot waiters.
func (c *Client) TurnPage(ctx context.Context, q LockQuery) (*SlotPage, error) {
	return c.slotPage(ctx, q, true)
}

func (c *Client) slotPage(ctx context.Context, q LockQuery, waiting bool) (*SlotPage, error) {
	selection := queryOf(q)
	if waiting {
		selection.Set("waiting", "true")
	}
	return ask[SlotPage](ctx, c, call{
		method: http.MethodGet, path: "/v1/slots", has: "slots",
		query: selection,
	})
}
