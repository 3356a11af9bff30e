package requests

import (
	"context"
	"errors"
	"iter"

	"hooklock/idem"
)

// ErrNotKept is returned if a store has nothing for an execution.
var ErrNotKept = errors.New("there are no bytes for this execution")

// Store keeps bytes by execution, for every process that uses the same place. Its methods are safe
// for concurrent use, and refuse a text that is no execution ID: a name in the store is never made
// of anything else.
type Store interface {
	// Put stores b, in place of what was there. When it returns nil the bytes survive a crash; an
	// error says nothing about whether they are there. b must not be changed afterwards: if the
	// disk hangs, it may be read after Put has returned an error.
	Put(ctx context.Context, execution idem.ExecutionID, b []byte) error
	// Get returns the bytes of the last Put, which the caller owns. ErrNotKept: there are none.
	Get(ctx context.Context, execution idem.ExecutionID) ([]byte, error)
	// Delete removes what Put left, whole or not. It returns nil if nothing is there.
	Delete(ctx context.Context, execution idem.ExecutionID) error
	// List yields each execution of which something is there, whole or not, at least once and in no
	// order. What comes or goes meanwhile may be missing. It ends with the first error, which it
	// yields.
	List(ctx context.Context) iter.Seq2[idem.ExecutionID, error]
}

// storeName returns the name of an execution in a store.
func storeName(execution idem.ExecutionID) (string, error) {
	if _, _, err := execution.Parse(); err != nil {
		return "", err
	}
	return string(execution), nil
}
