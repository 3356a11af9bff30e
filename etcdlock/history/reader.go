package history

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Options are what this package works with.
type Options struct {
	Pool   *link.Pool
	Layout protocol.Layout
	Clock  link.Clock
	// Writer marks the keys that this process writes.
	Writer string
	// Spawn runs a function in the background. It returns false once its owner is closed.
	Spawn func(func(context.Context)) bool

	// What this process knows without asking etcd; none of these functions blocks.

	// Alive reports whether the session behind an alive key exists.
	Alive func(key string) bool
	// Holds reports whether this process has the lock of an execution.
	Holds func(idem.ExecutionID) bool
	// Size returns how many slots a limit has for an execution of that route; 0 = there is no such limit.
	Size func(route string, slot idem.Slot) int
	// Follow says how refused events of a route are followed that have an ID, or none; nil = none are.
	Follow func(route string, byPayload bool) idem.Following
	// Lost is called with each event that is found to be possibly lost. It must not block. Nil: nothing is done.
	Lost func(idem.LostEvent)
	// Rows returns the rows of a lease of records whose index this process has not written yet; nil = there are none, or the lease is another
	// process's.
	Rows func(clientv3.LeaseID) []protocol.Row
}

// Reader finds and lists executions, locks and requests. It changes nothing: a lock whose owner is dead says so.
type Reader struct {
	o      *Options
	counts *Duplicates
	leases *leaseIndexes
}

// NewReader returns a reader that adds the counts of this process.
func NewReader(o *Options, counts *Duplicates) *Reader {
	rows := func(kind string, lease clientv3.LeaseID) []protocol.Row {
		if kind == protocol.KindRecords {
			return o.Rows(lease)
		}
		return counts.leases.Rows(lease)
	}
	return &Reader{o, counts, &leaseIndexes{o, rows, make(chan struct{}, 1)}}
}
