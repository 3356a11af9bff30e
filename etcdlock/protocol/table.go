package protocol

import clientv3 "go.etcd.io/etcd/client/v3"

// This is the protocol. An execution is in exactly one of its workflow's queue, its lock or its
// event's record, and each transaction moves it. A model checked the compares: leaving one out
// breaks something, so a change here, or in table_parked.go, needs the model first.
//
// Every transaction is a nested one, so that many travel in one request. etcd then reads all
// compares before the first write: two transactions that compare what the other writes must not
// travel together. The sender keeps one workflow to one request.

// Keys are the keys of one execution's transactions.
type Keys struct {
	Session       string // the session that sends it
	Lock          string // the lock: the workflow's, or under strategy none the event's own
	OtherLock     string // the other of the two: a duplicate may have it, at a replica whose route has another strategy
	Entry         string // the execution's queue entry
	Queue         string // the prefix of all entries in that queue
	Record        string // the event's record
	Alive         string // the key that the lock names as the proof that its owner lives: a session or a hold
	Hold          string // the hold of this execution: the alive key of its lock while it is held or cools
	Cancel        string // tells the process that runs it to look at its lock; "" = no process does
	Request       string // the stored request of a parked execution, or its location; no transaction compares it
	Index         string // tells every process that it is parked; no transaction compares it
	Age           string // exists until it has been parked for too long; no transaction compares it
	Forget        string // tells every process to drop its cached record
	HighWaterMark string // the high-water mark of its scope; "" = it has no order

	// Slots are those that the lock has, or is to take: each is taken and freed with it, and while
	// a parked execution rests. No other transaction touches them.
	Slots         []SlotKey
	SlotWaiter    string // its entry among the slot waiters of a limit; "" = it has none, and makes none
	OldSlotWaiter string // the slot waiter that it had at another limit before; "" = none

	Latest *Latest // the execution that it replaces, under strategy latest; nil: none
}

// Latest is what an execution that is about to be enqueued saw in the queue, and the one that it
// replaces.
type Latest struct {
	Last   int64  // create revision of the last entry; 0 = the queue is empty
	Over   *Keys  // of the replaced execution; nil = none
	Entry  int64  // the mod revision of its entry
	Parked bool   // its request is removed, too
	Record Leased // how it ended
}

// SlotKey is one slot of a limit.
type SlotKey struct {
	Key     string // of the slot
	Value   []byte // the execution that has it, for operators and for the choice of the next
	Waiters string // the prefix of all slot waiters of that limit
}

// Revisions are the revisions that a transaction relies on.
type Revisions struct {
	Epoch       int64 // mod revision of Keys.Session
	LockCreated int64 // create revision of Keys.Lock
	Lock        int64 // its mod revision
	Entry       int64 // create revision of Keys.Entry, or the mod revision, as the transaction says
	OtherLock   int64 // mod revision of Keys.OtherLock; 0 = absent
	Record      int64 // mod revision of Keys.Record; 0 = absent
	Hold        int64 // mod revision of Keys.Hold
}

// Leased is a value and the lease that it lives on; lease 0 = until a transaction deletes it.
type Leased struct {
	Value []byte           // not changed once it is sent
	Lease clientv3.LeaseID // see above
	// Apart is the answer of a record, or the question that is open about it, in a key of its own;
	// nil = it has none. No compare of an execution reads that key.
	Apart *Apart
}

// Apart is what one execution's record brings in a key of its own: its answer, or, of an unknown
// outcome, the question for the service. The key names the execution, so it is never taken for that
// of another one.
type Apart struct {
	Key string // where Leased is written
	Leased
}

// Cooling replaces the lock of an execution that ended with an unknown outcome: the lock stays
// closed until the hold runs out.
type Cooling struct {
	Lock Leased // names Hold as its alive key
	Hold Leased // on a lease that ends with the release delay
}

// Claim compares the lock that a duplicate under another strategy would have. If another event has
// it, at.OtherLock is its revision.
func Claim(k Keys, at Revisions, lock Leased) Op {
	return newTxn(
		append(Compares{epochIs(k, at), Absent(k.Lock), modifiedAt(k.OtherLock, at.OtherLock), queueEmpty(k),
			modifiedAt(k.Record, at.Record)}, append(slotsFree(k), noSlotWaiters(k)...)...),
		append(append(Writes{Put(k.Lock, lock)}, readHighWaterMark(k)...), takeSlots(k)...),
		LockRecordAndPlace(k))
}

// Enqueue compares the lock that the refusal showed, revision 0 = it was free: otherwise a
// duplicate could have been claimed meanwhile, or been handed the lock, and the event would wait
// and run at once. If another event has the other lock, at.OtherLock is its revision, as with
// Claim. With k.SlotWaiter it also becomes a slot waiter. With k.Latest it replaces the waiting
// execution, which ends for good in the transaction that enqueues its successor.
func Enqueue(k Keys, at Revisions, place, waiter Leased) Op {
	return newTxn(
		append(append(Compares{epochIs(k, at), modifiedAt(k.Lock, at.Lock), modifiedAt(k.OtherLock, at.OtherLock),
			Absent(k.Entry), modifiedAt(k.Record, at.Record)}, noNewEntry(k)...), stillWaits(k)...),
		append(append(Writes{Put(k.Entry, place)}, enterSlotWaiters(k, waiter)...), endReplaced(k)...),
		lockRecordPlaceAndOther(k))
}

// ClaimAsHead takes the lock for the head of the queue, and removes its entry. It reads which entry
// is the head then. If another execution has the other lock, at.OtherLock is its revision, as with
// Claim: a client's lock of the workflow holds back executions with a lock for each event. The
// order at a limit is known to its slot waiters.
func ClaimAsHead(k Keys, at Revisions, lock Leased) Op {
	return newTxn(
		append(Compares{epochIs(k, at), Absent(k.Lock), modifiedAt(k.OtherLock, at.OtherLock),
			Created(k.Entry, at.Entry),
			isHead(k, at.Entry), modifiedAt(k.Record, at.Record)}, slotsFree(k)...),
		append(append(Writes{deleteKey(k.Entry), Put(k.Lock, lock), getFirst(k.Queue)}, readHighWaterMark(k)...),
			takeSlots(k)...),
		LockRecordAndQueue(k))
}

// Leave removes a queue entry, and the slot waiter k.OldSlotWaiter. Both revisions of an entry are
// equal until it is parked: then the process that made it may not end it.
func Leave(k Keys, at Revisions) Op {
	return newTxn(
		Compares{modifiedAt(k.Entry, at.Entry)},
		append(Writes{deleteKey(k.Entry)}, leaveSlotWaiters(k)...),
		LockRecordAndQueue(k))
}

// EnterSlotWaiters lets the head of the queue wait for a slot of a limit: no later one gets a slot
// before it. It compares the queue entry, so that no slot waiter is left behind when that is gone.
func EnterSlotWaiters(k Keys, at Revisions, waiter Leased) Op {
	return newTxn(
		Compares{Created(k.Entry, at.Entry)},
		append(leaveSlotWaiters(k), Put(k.SlotWaiter, waiter)),
		nil)
}

// DropSlotWaiter removes a slot waiter whose queue entry has ended, or waits no more.
func DropSlotWaiter(k Keys) Op {
	return newTxn(
		Compares{},
		Writes{deleteKey(k.SlotWaiter)},
		nil)
}

// Settle writes the record and ends the lock: it stays for a cooling time, or is free if cool is
// nil. mark is not nil if the event went through. As each end, it compares the mod revision of the
// lock alone: the same revision is the same lock.
func Settle(k Keys, at Revisions, record Leased, cool *Cooling, mark *Leased) Op {
	return newTxn(
		Compares{modifiedAt(k.Lock, at.Lock)},
		append(endLock(k, record, cool), raiseHighWaterMark(k, mark)...),
		nil)
}

// HandOver is a Settle and, in one transaction, the claim of the head of the queue: the lock is
// overwritten, so its token is the revision of that. A lock that names a hold is not handed over:
// the hold would stay. first is what is known of the entry: that it was the head once, and so is as
// long as it exists, because later entries have larger revisions. A session lives as long as its
// entries do, and is compared because its key alone may go. The epoch is that of the process that
// ends: what it sends before it acknowledges a pause takes no lock afterwards. It reads the mark of
// the next execution, and with more the queue.
func HandOver(k Keys, at Revisions, next Keys, first Revisions, record, lock Leased, mark *Leased, more bool) Op {
	return newTxn(
		Compares{epochIs(k, at), modifiedAt(k.Lock, at.Lock), modifiedAt(next.Entry, first.Entry),
			keyPresent(next.Session),
			modifiedAt(next.Record, first.Record)},
		append(append(append(append(Writes{deleteKey(next.Entry), Put(k.Lock, lock), Put(k.Record, record)},
			readCandidates(next, more)...), raiseHighWaterMark(k, mark)...), answerOf(record)...),
			readHighWaterMark(next)...),
		nil)
}

// Release frees the lock of an execution that is as if it had not been, because nothing of it
// reached the upstream or because that asked for credentials first. It leaves the record as it was.
func Release(k Keys, at Revisions) Op {
	return newTxn(
		Compares{modifiedAt(k.Lock, at.Lock)},
		freeLock(k),
		nil)
}

// Adopt puts a lock on the session that its owner has now.
func Adopt(k Keys, at Revisions, lock Leased) Op {
	return newTxn(
		Compares{epochIs(k, at), Created(k.Lock, at.LockCreated), modifiedAt(k.Lock, at.Lock)},
		Writes{Put(k.Lock, lock)},
		nil)
}

// Reap with cool nil frees the lock.
func Reap(k Keys, at Revisions, record Leased, cool *Cooling) Op {
	return newTxn(
		Compares{modifiedAt(k.Lock, at.Lock), Absent(k.Alive)},
		endLock(k, record, cool),
		lockRecordAndAlive(k))
}

// ReapCooling frees the lock of an execution that has ended before: only its lock is left.
func ReapCooling(k Keys, at Revisions) Op {
	return newTxn(
		Compares{modifiedAt(k.Lock, at.Lock), Absent(k.Alive)},
		freeLock(k),
		lockRecordAndAlive(k))
}

// Acquire is a claim for a client of the lock API: its lock lives on a hold of its own, not on a
// session.
func Acquire(k Keys, at Revisions, lock, alive Leased) Op {
	return newTxn(
		Compares{epochIs(k, at), Absent(k.Lock), queueEmpty(k)},
		Writes{Put(k.Lock, lock), Put(k.Hold, alive)},
		LockRecordAndPlace(k))
}

// Hold lets the lock outlive its answer and its session.
func Hold(k Keys, at Revisions, lock, alive Leased) Op {
	return newTxn(
		Compares{Created(k.Lock, at.LockCreated), modifiedAt(k.Lock, at.Lock)},
		Writes{Put(k.Lock, lock), Put(k.Hold, alive)},
		nil)
}

// Heartbeat puts the hold on a new lease, and reads the lock: a cancel that is not seen here comes
// after it. It is sent only if the hold was seen: to etcd an absent key has revision 0, and a late
// heartbeat would revive a hold that has run out.
func Heartbeat(k Keys, at Revisions, alive Leased) Op {
	return newTxn(
		Compares{Created(k.Lock, at.LockCreated), modifiedAt(k.Hold, at.Hold)},
		Writes{Put(k.Hold, alive), getValue(k.Lock)},
		lockAndHold(k))
}

// Guard writes the steps of an execution into its lock.
func Guard(k Keys, at Revisions, lock Leased) Op {
	return newTxn(
		Compares{Created(k.Lock, at.LockCreated), modifiedAt(k.Lock, at.Lock), keyPresent(k.Alive)},
		Writes{Put(k.Lock, lock)},
		lockRecordAndAlive(k))
}

// Cancel asks the process that runs or holds the execution to stop it.
func Cancel(k Keys, at Revisions, lock, news Leased) Op {
	return newTxn(
		Compares{modifiedAt(k.Lock, at.Lock)},
		append(notifyOwner(k, news), Put(k.Lock, lock)),
		nil)
}

// CancelWaiting ends an execution that has not begun. Its waiter watches the queue entry.
func CancelWaiting(k Keys, at Revisions, record Leased) Op {
	return newTxn(
		Compares{modifiedAt(k.Entry, at.Entry), modifiedAt(k.Record, at.Record)},
		Writes{deleteKey(k.Entry), Put(k.Record, record)},
		nil)
}

// Forget lets the event run again. The mark that it has raised is removed, too; mark is its value.
// With letter it was a dead letter, and what was stored of its request goes as well.
func Forget(k Keys, at Revisions, news Leased, mark []byte, letter bool) Op {
	return newTxn(
		Compares{modifiedAt(k.Record, at.Record)},
		append(append(Writes{deleteKey(k.Record), Put(k.Forget, news)}, dropHighWaterMark(k, mark)...),
			dropLetter(k, letter)...),
		nil)
}

// Correct writes down what the service says of an event whose record says unknown, or what the
// process that ran it knows, and deletes the question. It compares everything that a later attempt
// of the event would be: one that runs or waits is not rewritten. With cools, the lock is that of
// the execution, which cools, and is freed.
// With a mark the event went through.
func Correct(k Keys, at Revisions, record, news Leased, question string, cools bool, mark *Leased) Op {
	writes := Writes{Put(k.Record, record), Put(k.Forget, news), deleteKey(question)}
	if cools {
		writes = append(writes, freeLock(k)...)
	}
	return newTxn(
		Compares{modifiedAt(k.Record, at.Record), modifiedAt(k.Lock, at.Lock), modifiedAt(k.OtherLock, at.OtherLock),
			Absent(k.Entry)},
		append(append(writes, raiseHighWaterMark(k, mark)...), answerOf(record)...),
		nil)
}

// ForceRelease takes the lock away from its holder. The lock does not cool: the operator wants it
// free.
func ForceRelease(k Keys, at Revisions, record, news Leased) Op {
	return newTxn(
		Compares{modifiedAt(k.Lock, at.Lock)},
		append(notifyOwner(k, news), endLock(k, record, nil)...),
		nil)
}

// ForceReleaseCooling frees the lock of an execution that has ended before: only its lock is left.
func ForceReleaseCooling(k Keys, at Revisions) Op {
	return newTxn(
		Compares{modifiedAt(k.Lock, at.Lock)},
		freeLock(k),
		nil)
}

// Noted is a transaction that, if it is applied, writes a note, too: what a person has done is
// known as soon as it has happened. op is a result of another function here, and is changed.
func Noted(op Op, key string, v Leased) Op {
	t := op.GetRequestTxn()
	t.Success = append(t.Success, Put(key, v))
	return op
}

// Erased is a transaction that, if it is applied, deletes all notes below these prefixes, too. op
// is a result of another function here, and is changed.
func Erased(op Op, prefixes ...string) Op {
	t := op.GetRequestTxn()
	for _, prefix := range prefixes {
		t.Success = append(t.Success, deleteBelow(prefix))
	}
	return op
}

// Note writes what operators may want to know: how many duplicates of an execution a process has
// answered without running, how an event arrived there, on which leases records are, and audits.
// The key is the process's own, and no transaction compares it.
func Note(key string, v Leased) Op {
	return newTxn(
		Compares{},
		Writes{Put(key, v)},
		nil)
}

// DropNote deletes a key of Note.
func DropNote(key string) Op {
	return newTxn(
		Compares{},
		Writes{deleteKey(key)},
		nil)
}

// Declare writes what a person says, a pause or a mark of what was looked at, or what people were
// told. It compares what it replaces; prev 0 = nothing. No other transaction compares the key, see
// Fence.
func Declare(key string, prev int64, v Leased) Op {
	return newTxn(
		Compares{modifiedAt(key, prev)},
		Writes{Put(key, v)},
		nil)
}

// Resume ends a pause, and its lease: the sender ends the lease of what a deletion returns.
func Resume(key string, prev int64) Op {
	return newTxn(
		Compares{modifiedAt(key, prev)},
		Writes{deleteReturning(key)},
		nil)
}

// DropAcknowledgement removes a mark of what was looked at. It does not return the mark: marks
// share their leases.
func DropAcknowledgement(key string, prev int64) Op {
	return newTxn(
		Compares{modifiedAt(key, prev)},
		Writes{deleteKey(key)},
		nil)
}

// Fence makes every unanswered transaction of the epoch fail for ever. It is not sent in a batch:
// it must not be read together with the claims that it is to stop. A process that knows of a pause
// acknowledges it so: no claim that it sent before takes a lock afterwards.
func Fence(k Keys, at Revisions, session Leased) Op {
	return newTxn(
		Compares{epochIs(k, at)},
		Writes{Put(k.Session, session)},
		Writes{getValue(k.Session)})
}
