package etcdlock

import clientv3 "go.etcd.io/etcd/client/v3"

// This is the protocol. An execution is in exactly one place, its workflow's queue, its lock or its event's record, and each
// transaction moves it. A model checked the compares: leaving one out breaks something, so a change here needs the model first.
//
// Every transaction is a nested one, so that many travel in one request. etcd then reads all compares before the first write:
// two transactions that compare what the other writes must not travel together. The sender keeps one workflow to one request.

// keys are what the transactions of one execution touch.
type keys struct {
	S string // the session that does it
	L string // the lock: the workflow's, or under strategy none the event's own
	O string // the other of the two: a copy of the event may have it, at a replica whose route has another strategy
	Q string // the execution's place in the queue
	W string // the prefix of all places in that queue
	I string // the event's record
	A string // the key that L names as the proof that its owner lives: a session or a hold
	H string // the hold of this execution: the alive key of its lock while it is held or cools
	C string // tells the process that runs it to look at its lock; "" = no process does
	F string // tells every process to drop what it remembers of its record
}

// seen are the revisions that a transaction relies on.
type seen struct {
	epoch int64 // S.mod
	token int64 // L.create
	l     int64 // L.mod
	q     int64 // Q.create
	o     int64 // O.mod; 0 = absent
	prev  int64 // I.mod; 0 = absent
	h     int64 // H.mod
}

// leased is a value and the lease that it lives on; lease 0 = until a transaction deletes it.
type leased struct {
	value []byte
	lease clientv3.LeaseID
}

// cooling replaces the lock of an execution that ended with an unknown outcome: nobody gets it until the hold runs out.
type cooling struct{ lock, hold leased }

// claim compares the lock that a copy under another strategy would have. Where another event has it, at.o is its revision.
func claim(k keys, at seen, lock leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{epochIs(k, at), absent(k.L), modified(k.O, at.o), nobodyWaits(k), modified(k.I, at.prev)},
		writes{put(k.L, lock)},
		lockRecordAndPlace(k))
}

// enqueue compares the lock that the refusal showed, token 0 = it was free: otherwise a copy could have been claimed meanwhile, and the
// event would wait and run at once.
func enqueue(k keys, at seen, place leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{epochIs(k, at), created(k.L, at.token), absent(k.O), absent(k.Q), modified(k.I, at.prev)},
		writes{put(k.Q, place)},
		lockRecordAndQueue(k))
}

func claimAsHead(k keys, at seen, lock leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{epochIs(k, at), absent(k.L), created(k.Q, at.q), nobodyBefore(k, at.q), modified(k.I, at.prev)},
		writes{clientv3.OpDelete(k.Q), put(k.L, lock)},
		lockRecordAndQueue(k))
}

func leave(k keys, at seen) clientv3.Op {
	return clientv3.OpTxn(
		compares{created(k.Q, at.q)},
		writes{clientv3.OpDelete(k.Q)},
		lockRecordAndQueue(k))
}

// settle with cool nil frees the lock.
func settle(k keys, at seen, record leased, cool *cooling) clientv3.Op {
	return clientv3.OpTxn(
		compares{created(k.L, at.token), modified(k.L, at.l)},
		endLock(k, record, cool),
		nil)
}

func release(k keys, at seen) clientv3.Op {
	return clientv3.OpTxn(
		compares{created(k.L, at.token), modified(k.L, at.l)},
		freeLock(k),
		nil)
}

func adopt(k keys, at seen, lock leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{epochIs(k, at), created(k.L, at.token), modified(k.L, at.l)},
		writes{put(k.L, lock)},
		nil)
}

// bury with cool nil frees the lock.
func bury(k keys, at seen, record leased, cool *cooling) clientv3.Op {
	return clientv3.OpTxn(
		compares{modified(k.L, at.l), absent(k.A)},
		endLock(k, record, cool),
		lockRecordAndAlive(k))
}

// buryCooling: the execution has ended before, only its lock is left.
func buryCooling(k keys, at seen) clientv3.Op {
	return clientv3.OpTxn(
		compares{modified(k.L, at.l), absent(k.A)},
		freeLock(k),
		lockRecordAndAlive(k))
}

// acquire is a claim for a client of the lock API: its lock lives on a hold of its own, not on a session.
func acquire(k keys, at seen, lock, alive leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{epochIs(k, at), absent(k.L), nobodyWaits(k)},
		writes{put(k.L, lock), put(k.H, alive)},
		lockRecordAndPlace(k))
}

// hold lets the lock outlive its answer and its session.
func hold(k keys, at seen, lock, alive leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{created(k.L, at.token), modified(k.L, at.l)},
		writes{put(k.L, lock), put(k.H, alive)},
		nil)
}

// heartbeat puts H on a new lease, and reads L: a cancel that is not seen here comes after it. It is sent only where H was seen: to
// etcd an absent key has revision 0, and a late heartbeat would revive a hold that has run out.
func heartbeat(k keys, at seen, alive leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{created(k.L, at.token), modified(k.H, at.h)},
		writes{put(k.H, alive), clientv3.OpGet(k.L)},
		lockAndHold(k))
}

func guard(k keys, at seen, lock leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{created(k.L, at.token), modified(k.L, at.l), present(k.A)},
		writes{put(k.L, lock)},
		lockRecordAndAlive(k))
}

// cancel asks whoever runs or holds the execution to stop.
func cancel(k keys, at seen, lock, news leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{modified(k.L, at.l)},
		append(tell(k, news), put(k.L, lock)),
		nil)
}

// cancelWaiting ends an execution that has not begun. Its waiter watches the place.
func cancelWaiting(k keys, at seen, record leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{created(k.Q, at.q), modified(k.I, at.prev)},
		writes{clientv3.OpDelete(k.Q), put(k.I, record)},
		nil)
}

// forget lets the event run again.
func forget(k keys, at seen, news leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{modified(k.I, at.prev)},
		writes{clientv3.OpDelete(k.I), put(k.F, news)},
		nil)
}

// forceRelease takes the lock away from who has it. The lock does not cool: whoever forces wants it free.
func forceRelease(k keys, at seen, record, news leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{modified(k.L, at.l)},
		append(tell(k, news), endLock(k, record, nil)...),
		nil)
}

// forceReleaseCooling: the execution has ended before, only its lock is left.
func forceReleaseCooling(k keys, at seen) clientv3.Op {
	return clientv3.OpTxn(
		compares{modified(k.L, at.l)},
		freeLock(k),
		nil)
}

// countCopies says how many copies of an execution this process has answered without running. The key is its own, and nobody compares it.
func countCopies(key string, copies leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{},
		writes{put(key, copies)},
		nil)
}

// fence makes every unanswered transaction of the epoch fail for ever. It is not sent in company: it must not be read together
// with the claims that it is to stop.
func fence(k keys, at seen, session leased) clientv3.Op {
	return clientv3.OpTxn(
		compares{epochIs(k, at)},
		writes{put(k.S, session)},
		writes{clientv3.OpGet(k.S)})
}

type (
	compares = []clientv3.Cmp
	writes   = []clientv3.Op
)

func epochIs(k keys, at seen) clientv3.Cmp { return modified(k.S, at.epoch) }

func modified(key string, revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(key), "=", revision)
}

func created(key string, revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", revision)
}

func absent(key string) clientv3.Cmp { return created(key, 0) }

func present(key string) clientv3.Cmp { return clientv3.Compare(clientv3.CreateRevision(key), ">", 0) }

// A compare over a prefix holds when it holds for every key below it.
func nobodyWaits(k keys) clientv3.Cmp { return created(k.W, 0).WithPrefix() }

func nobodyBefore(k keys, q int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(k.W), ">", q-1).WithPrefix()
}

func put(key string, v leased) clientv3.Op {
	if v.lease == 0 {
		return clientv3.OpPut(key, string(v.value))
	}
	return clientv3.OpPut(key, string(v.value), clientv3.WithLease(v.lease))
}

// tell lets the process that runs an execution know that somebody has changed its lock.
func tell(k keys, news leased) writes {
	if k.C == "" {
		return nil
	}
	return writes{put(k.C, news)}
}

// freeLock asks for the hold that it deletes: the sender then ends its lease.
func freeLock(k keys) writes {
	return writes{clientv3.OpDelete(k.L), clientv3.OpDelete(k.H, clientv3.WithPrevKV())}
}

func endLock(k keys, record leased, cool *cooling) writes {
	if cool != nil {
		return writes{put(k.L, cool.lock), put(k.H, cool.hold), put(k.I, record)}
	}
	return append(freeLock(k), put(k.I, record))
}

// Most refusals bring how things stand now, in the order of the read constants below. What is hardly ever refused brings nothing, and
// the sender reads: etcd and the network carry an else branch with each request, taken or not.
func lockRecordAndPlace(k keys) writes {
	return writes{clientv3.OpGet(k.L), clientv3.OpGet(k.I), clientv3.OpGet(k.Q)}
}

func lockRecordAndQueue(k keys) writes {
	first := append(clientv3.WithFirstCreate(), clientv3.WithKeysOnly())
	return append(lockRecordAndPlace(k), clientv3.OpGet(k.W, first...), clientv3.OpGet(k.O))
}

func lockRecordAndAlive(k keys) writes {
	return writes{clientv3.OpGet(k.L), clientv3.OpGet(k.I), clientv3.OpGet(k.A, clientv3.WithKeysOnly())}
}

func lockAndHold(k keys) writes { return writes{clientv3.OpGet(k.L), clientv3.OpGet(k.H)} }

const (
	readLock = iota
	readRecord
	readPlace // the event's own place in the queue
	readHead  // who is first in it
	readOther // the lock that a copy under another strategy would have

	readAlive = readRecord + 1
)
