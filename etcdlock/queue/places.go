// Package queue lets executions wait for the lock of their workflow: first come, first served, over
// all processes.
package queue

import (
	"hooklock/etcdlock/claim"
	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/owned"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/reap"
	"hooklock/etcdlock/view"
)

// Options are what places in queues work with.
type Options struct {
	Claims *claim.Claims
	Pool   *link.Pool
	Sender *commit.Sender
	Tasks  *commit.Tasks
	Leases *commit.Leases
	Layout protocol.Layout
	Clock  link.Clock
	View   *view.View
	Own    *owned.Locks
	Reaper *reap.Reaper
	// Writer marks the records that this process writes.
	Writer string

	looks chan struct{} // has a token for each place that is reading
}

// Entries gives executions of this process places in queues. It is safe for concurrent use.
type Entries struct{ options *Options }

// New returns places, of which none is taken yet.
func New(o *Options) *Entries {
	o.looks = make(chan struct{}, maxLooks)
	return &Entries{o}
}
