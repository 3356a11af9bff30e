package history

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Options are what this package works with.
type Options struct {
	Pool   *link.Pool      // reads and watches etcd
	Layout protocol.Layout // spells the keys
	Clock  link.Clock      // measures elapsed time
	// Writer marks the keys that this process writes.
	Writer string
	// Tasks run what goes on in the background.
	Tasks    *commit.Tasks
	Sessions *session.Set
	Process
}

// Process is what readers and writers ask of their process, and tell it. None of its methods
// blocks.
type Process interface {
	// Holds reports whether this process has the lock of an execution.
	Holds(idem.ExecutionID) bool
	// Size returns how many slots a limit has for an execution of that route; 0 = there is no such
	// limit.
	Size(route string, slot idem.Slot) int
	// Rows returns the rows of a lease of records whose index this process has not written yet; nil
	// = there are none, or the lease is another process's.
	Rows(clientv3.LeaseID) []protocol.Row
	// Follow says how refused events of a route are followed that have an ID, or none; Patience 0 =
	// they are not.
	Follow(route string, byPayload bool) idem.Following
	// OnLost is called with each event that is found to be possibly lost.
	OnLost(idem.LostEvent)
	// Counted returns what was counted of the routes since it was called before.
	Counted() []idem.RouteCounts
}

// Reader finds and lists executions, locks and requests. It changes nothing: a lock whose owner is
// dead says so.
type Reader struct {
	options *Options
	counts  *Duplicates
	leases  *leaseIndexes
}

// NewReader returns a reader that adds the counts of this process.
func NewReader(o *Options, counts *Duplicates) *Reader {
	return &Reader{o, counts, &leaseIndexes{o, counts, make(chan struct{}, 1)}}
}
