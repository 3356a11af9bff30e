// Package idem is the vocabulary of Hooklock and every decision it makes: keys, fingerprints,
// executions and their statuses, what a delivery may do given what the ledger remembers (Decide).
//
// It sees no HTTP server, no etcd and no clock. What a delivery needs of the store is in the Ledger
// interface; the one implementation is package etcdlock. Package guard runs deliveries by these
// decisions, package worker runs parked executions, and package naming makes keys.
//
// Its files belong to three parts:
//
//	the vocabulary  record, status, policy and the like; ledger, control and query are what a store does
//	the decisions   decide, about a delivery, and decisions, its table: pure functions
//	the claim       ClaimLock and AwaitLock, by which a delivery and the lock API take a lock of a Ledger, at once or through the queue
//
// Words: an execution is one run of an event. It waits in the queue at its QueueEntry, runs under a
// Lock that this process has (a RunningLock), and its End is in a Record. What the ledger has Seen
// for a Request makes a Verdict; an empty one lets the delivery claim the lock. A duplicate follows
// the first delivery of its event and is attached to its end. A Scope is what a lock covers: a
// workflow, or one event. To reap a lock is to end the execution of one whose owner is dead; after
// that the lock may stay closed for its release delay, which is called cooling. A hold lets a lock
// outlive the answer, and a Callback proves that the upstream may act on it.
package idem
