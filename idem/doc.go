// Package idem is the vocabulary of Hooklock and every decision it makes: keys, fingerprints, executions and their
// statuses, what a delivery may do given what the ledger remembers (Decide), and the Guard that admits, waits and
// settles.
//
// It sees no HTTP server, no etcd, and no clock that it was not given. What it needs of the store it says in the
// Ledger interface; the one implementation is package etcdlock.
//
// Its files have four readers:
//
//	the vocabulary      record, status, policy and the like; ledger, control and query are what a store does
//	the decisions       decide about a delivery, decisions what is said of each, worker_decide about a parked execution; all are pure functions
//	a delivery          guard and guard_*; queue and queue_wait where it waits for others
//	a parked execution  worker and worker_*: Carrier is the park worker of a process
//
// Words: an execution is one run of an event; it waits at a Place, runs under a Lock that this process has Held, and its End is in a Record. What
// a Request to run has Seen of the ledger makes a Verdict, "" where it may claim the lock; an Admission is the Guard's answer. A Waiter waits for a
// lock; a copy of an event follows its first delivery and is attached to its end. A Scope is what a lock covers: a workflow, or one event. To bury
// a lock is to end the execution of one whose owner is dead; it may be closed for its release delay after that, cooling. A hold lets a lock
// outlive the answer, and a Callback is what the upstream shows to speak about it.
package idem
