// Package idem has the words of Hooklock and every decision that it makes: keys, fingerprints,
// executions and their statuses, and what a delivery may do by what the ledger remembers (Decide).
// It knows no HTTP, no etcd and no clock.
//
// What it needs of a store is in the Ledger interface; package etcdlock implements it. Package
// guard runs deliveries by these decisions, package worker runs parked executions, and package
// naming makes keys.
//
//	the words       record, status, policy and the like; ledger, control and query are what a store does
//	the decisions   Decide for a delivery, Judge and Next for an execution, and decisions, their table: pure functions
//	the claim       ClaimLock and AwaitLock, by which a delivery and the lock API take a lock, at once or through the queue
//
// # Words
//
// An execution is one run of an event. It waits in the queue at its QueueEntry, runs under a Lock
// that this process has (a RunningLock), and its End is in a Record. A Scope is what a lock covers:
// a workflow, or one event. What stands in the way of a claim is an Obstacle, and what the delivery
// does then is a Verdict; an empty one lets it claim the lock. A duplicate follows the first
// delivery of its event and is attached to its end.
//
// To reap a lock is to end the execution of a dead owner. After that the lock may stay closed for
// its release delay: it cools. A hold lets a lock outlive the answer, and a Callback proves that a
// service may act on it.
package idem
