// Package etcdlock keeps Hooklock's ledger in etcd: which executions run and wait, and how they
// ended. It is also a lock for Go programs that know nothing of webhooks: a workflow has one
// holder, over all processes on one etcd, and over Hooklock's own executions if both use the same
// Prefix.
//
// # Use
//
// A program opens one Store for each process, and closes it at its end. Do waits for the lock of a
// workflow, runs a function while the process has it, and gives it back.
//
//	store, err := etcdlock.Open(etcdlock.Options{Endpoints: []string{"etcd-0:2379"}, Holder: "billing-1"})
//	if err != nil {
//		return err
//	}
//	defer store.Close(ctx)
//	err = store.Locker.Do(ctx, "customer/42", func(ctx context.Context) error {
//		return charge(ctx, etcdlock.Token(ctx)) // which stops when ctx ends, and sends the token along
//	})
//
// Acquire and TryAcquire return the Lock instead. None of them leaves anything in etcd after the
// lock is given back. Waiters get the lock in the order of their queue entries in etcd. A wait
// costs one entry, and ends with its context.
//
// The other two parts of a Store are for Hooklock: Ledger runs executions and keeps their records,
// and Control shows and ends them.
//
// # What is promised
//
// A workflow has at most one live holder, and an event at most one live execution, across all
// processes on one etcd. The token of a holder is a revision of the key of its lock, and larger
// than that of every earlier holder of the workflow. The first end of an execution is never
// replaced.
//
// Each step is one etcd transaction (package protocol), so it happens or it does not. A transaction
// whose answer got lost may still be applied seconds later. Therefore a transaction that creates
// something names the epoch of its session, a revision. Before a process concludes anything from
// what it reads, it changes the epoch (a fence): what has not been applied by then never will be.
//
// A process that dies frees its locks within the TTL of its session, plus the time that etcd needs
// to notice: half a second, and up to the TTL once more if etcd changed its leader meanwhile.
// Options.SessionTTL is 15 s unless it is set. A Store that is closed frees its locks at once. What
// a dead process ran is recorded as FAILED with an unknown outcome, after Do or Acquire for an
// hour. A process that only lost its session keeps what no other process has taken since.
//
// The context that Do gives to its function ends, and Lock.Lost is closed, if another process has
// taken the lock over; if etcd has not answered for so long that another process may (the TTL less
// a tenth, after the last confirmed renewal was sent); if a cancel was requested; and if the Store
// is closed. context.Cause says which. A short outage of etcd ends neither.
//
// An Unlock without an error, and so a Do without one, proves that no other process had the lock:
// the transaction that gives it back compares that it is still the same.
//
// # What is not promised
//
// A lease is no proof that no other process works. A process trusts its session until the TTL less
// a tenth after the last confirmed renewal was sent, by the monotonic clock and by the boot clock;
// then it stops its calls. But it may be frozen between that check and the first byte; a virtual
// machine may be stopped with all its clocks; and etcd can end a lease early, as it did after its
// leader was paused. Then two calls to one service may overlap. Only the service can tell them
// apart, if it refuses a token below the largest that it has seen: Lock.Token, and Token in the
// function of Do. A service may also go on with a call that was closed, and a function of Do may go
// on that does not watch its context.
//
// Locks are not reentrant: a holder that asks for its lock again waits for itself. Two holders that
// take two workflows in different orders can deadlock: give Acquire a context that ends.
//
// etcd must be 3.7.1, 3.6.14 or 3.5.33, or newer than these: older ones have errors that break the
// promises above. A restored snapshot takes revisions back, and tokens with them: restore it with a
// bumped revision.
//
// # Words
//
// An execution is one run of an event. It waits as an entry in the queue of its workflow, runs
// under the lock of the workflow, and ends in the record of the event. A session is a lease that
// proves that a process is alive. A lock names the key that proves its owner alive; to reap a lock
// is to end the execution of a dead owner. A hold is such a key of its own, for a lock that
// outlives its process. A claim takes a lock; to settle or to release gives it back; to adopt moves
// it to the next session of its process.
package etcdlock
