// Package etcdlock keeps Hooklock's ledger in etcd: who runs which workflow, who waits, and how executions ended.
//
// # What is promised
//
// At most one live holder per workflow and at most one live execution per event, across all processes on one etcd. Each step is
// one etcd transaction (table.go), so it happens or it does not. A holder's token is its lock's create revision: it is larger
// than that of every earlier holder of the workflow. The first end of an execution stays: nobody writes over it.
//
// A transaction whose answer got lost may still be applied seconds later. Those that create something carry the session's epoch,
// and before anything is concluded from reading, a fence moves the epoch on: what has not been applied by then never is.
//
// A process that dies frees its locks within the session's TTL, plus what etcd needs to notice (half a second, and up to the TTL
// once more when etcd changed its leader meanwhile). What it ran is recorded as FAILED with an unknown outcome. A process that
// only lost its session keeps what nobody has taken since.
//
// # What is not
//
// A lease is no proof that nobody else works. A process trusts its session until the last confirmed renewal was sent, plus TTL,
// minus a margin of a tenth, on the monotonic clock and on the boot clock; then it stops its calls. But it may be frozen between
// the check and the first byte; a virtual machine may be stopped with all its clocks; and etcd can end a lease early (measured,
// after a leader that was paused). Then two calls to one upstream may overlap. What sees the difference is the upstream, if it
// refuses a token below the largest that it has seen. Holding a lock is not working, either: an upstream may go on with a call
// that was closed.
//
// etcd must be 3.6.14 or newer: older ones have known errors with nested transactions. A restored snapshot takes revisions back,
// and tokens with them: restore it with a bumped revision.
package etcdlock
