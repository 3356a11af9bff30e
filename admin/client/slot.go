package client

import (
	"context"
	"errors"
)

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
