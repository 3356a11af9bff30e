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
	Claims *claim.Claims   // take locks
	Pool   *link.Pool      // reads and watches etcd
	Sender *commit.Sender  // sends the transactions
	Tasks  *commit.Tasks   // run in the background; Store.Close waits for them
	Leases *commit.Leases  // the shared leases of records
	Layout protocol.Layout // spells the keys
	Clock  link.Clock      // measures elapsed time
	View   *view.View      // what this process knows of waiting and parked executions
	Own    *owned.Locks    // the locks of this process
	Reaper *reap.Reaper    // ends executions whose owner is dead
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
