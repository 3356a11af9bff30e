// Package idem is the vocabulary of Hooklock and every decision it makes: keys, fingerprints, executions and their statuses, what a delivery
// may do given what the ledger remembers (Decide), and the Guard that admits, waits and settles.
//
// It sees no HTTP server, no etcd, and no clock that it was not given. What it needs of the store is in the Ledger interface; the one
// implementation is package etcdlock.
//
// Its files belong to four parts:
//
//	the vocabulary      record, status, policy and the like; ledger, control and query are what a store does
//	the decisions       decide about a delivery, decisions its table, worker_decide about a parked execution; all are pure functions
//	a delivery          guard and guard_*; queue and queue_wait if it waits for others
//	a parked execution  worker and worker_*: ParkWorker is the park worker of a process
//
// Words: an execution is one run of an event. It waits in the queue at a Place, runs under a Lock that this process has Held, and its End is in
// a Record. What the ledger has Seen for a Request makes a Verdict; an empty one lets the delivery claim the lock. An Admission is the Guard's
// answer. A duplicate follows the first delivery of its event and is attached to its end. A Scope is what a lock covers: a workflow, or one
// event. To reap a lock is to end the execution of one whose owner is dead; after that the lock may stay closed for its release delay,
// which is called cooling. A hold lets a lock outlive the answer, and a Callback proves that the upstream may act on it.
package idem
