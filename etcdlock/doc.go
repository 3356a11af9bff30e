// Package etcdlock keeps Hooklock's ledger in etcd: which executions run and wait, and how they
// ended. It is also a lock for Go programs that know nothing of webhooks: one holder for each
// workflow, over all processes on one etcd, and over Hooklock's own executions where both use the
// same Prefix.
//
// # Words
//
// An execution is one run of an event; it waits as an entry of its workflow's queue, runs under its
// lock, and ends in its event's record. A session is a lease that proves this process alive, and
// its epoch a revision that a fence moves on. A lock is alive as long as the key that it names; to
// reap it is to end the execution of a dead one. A hold is such a key of its own, for a lock that
// outlives its process. A claim takes a lock, to settle or release gives it back, to adopt moves it
// to the next session.
//
// # Use
//
// Open a Store once for each process, and give each caller the interface that it needs: Locker runs
// a function under a lock (Do), or returns one (Acquire, TryAcquire), and keeps no record: nothing
// is left in etcd after Unlock. Ledger and Control are for Hooklock, which keeps one.
//
//	err := store.Locker.Do(ctx, "customer/42", func(ctx context.Context) error {
//		return charge(ctx, etcdlock.Token(ctx)) // stops when ctx ends, and shows its token
//	})
//
// Waiters get the lock in the order of their queue entries in etcd, and none is passed. A wait
// costs one entry in etcd, and ends with its context.
//
// # What is promised
//
// At most one live holder per workflow and at most one live execution per event, across all
// processes on one etcd. Each step is one etcd transaction (etcdlock/protocol), so it happens or it
// does not. A holder's token is a revision of its lock's key, larger than that of every earlier
// holder of the workflow. The first end of an execution stays: no later one replaces it.
//
// A transaction whose answer got lost may still be applied seconds later. Those that create
// something carry the session's epoch, and before anything is concluded from reading, a fence moves
// the epoch on: what has not been applied by then never is.
//
// A process that dies frees its locks within the session's TTL, plus what etcd needs to notice
// (half a second, and up to the TTL once more when etcd changed its leader meanwhile).
// Options.SessionTTL is 15 s unless it is set; a Store that is closed frees them at once. What it
// ran is recorded as FAILED with an unknown outcome, for an hour where it was Do or Acquire. A
// process that only lost its session keeps what no other process has taken since.
//
// The context that Do gives to its function, and Lock.Lost, end when another process has taken the
// lock over, when etcd has not answered for so long that another may (TTL less a margin of a tenth
// after the last renewal was sent), when a cancel was requested, or when the Store is closed;
// context.Cause says which. Neither ends because of a short outage. An Unlock without an error, and
// so a Do without one, says more than a lock that was not seen to be lost: the transaction that
// gave it back has compared that it was still the same.
//
// # What is not
//
// A lease is no proof that no other process works. A process trusts its session until the last
// confirmed renewal was sent, plus TTL, minus a margin of a tenth, on the monotonic clock and on
// the boot clock; then it stops its calls. But it may be frozen between the check and the first
// byte; a virtual machine may be stopped with all its clocks; and etcd can end a lease early
// (measured, after a leader that was paused). Then two calls to one upstream may overlap. What sees
// the difference is the upstream, if it refuses a token below the largest that it has seen:
// Lock.Token, and Token in the function of Do. Holding a lock is not working, either: an upstream
// may go on with a call that was closed, and so may a function of Do that does not watch its
// context.
//
// Locks are not reentrant: a holder that asks for its lock again waits for itself. Two workflows
// taken in different orders can deadlock; give Acquire a context that ends.
//
// etcd must be 3.7.1, 3.6.14 or 3.5.33, or newer of these: older ones have errors that break the
// promises above. A restored snapshot takes revisions back, and tokens with them: restore it with a
// bumped revision.
package etcdlock
