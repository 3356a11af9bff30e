package operate

import (
	"context"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/finish"
	"hooklock/etcdlock/history"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/park"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/reap"
	"hooklock/idem"
)

// Options are what this package works with.
type Options struct {
	Pool       *link.Pool
	Sender     *commit.Sender
	Tasks      *commit.Tasks
	Leases     *commit.Leases
	Layout     protocol.Layout
	Clock      link.Clock
	Reader     *history.Reader
	Duplicates *history.Duplicates
	Finisher   *finish.Finisher
	Reaper     *reap.Reaper
	Parked     *park.Index

	// Ended is called with an end that no delivery reports. It must not block.
	Ended func(*idem.Record)
	// Rekeep returns the stored request of one execution as that of another one, or idem.ErrNoRequest; nil = it is taken as it is.
	Rekeep func(ctx context.Context, from, to idem.ExecutionID, value []byte) (idem.Kept, error)
}
