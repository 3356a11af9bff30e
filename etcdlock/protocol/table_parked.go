package protocol

// The part of the protocol that is about parked executions; see table.go.

// Parking is what is stored of an execution whose sender has its answer: its request, index and
// age.
type Parking struct {
	Request Leased // the request, or where it is stored
	Index   Leased // tells every process that it is parked
	Age     Leased // on a lease that ends when it is too old to run
}

// EnqueueParked is an Enqueue for an execution without a waiter: the entry is on no session, and
// any process that has its route runs it. If another event has the other lock, at.OtherLock is its
// revision, as with Claim.
func EnqueueParked(k Keys, at Revisions, place Leased, p Parking) Op {
	return newTxn(
		append(append(Compares{epochIs(k, at), modifiedAt(k.Lock, at.Lock), modifiedAt(k.OtherLock, at.OtherLock),
			Absent(k.Entry), modifiedAt(k.Record, at.Record)}, noNewEntry(k)...), stillWaits(k)...),
		append(append(Writes{Put(k.Entry, place)}, putParked(k, p)...), endReplaced(k)...),
		LockRecordAndQueue(k))
}

// ParkWaiting takes an entry off its session. Its create revision stays, which is its position in
// the queue; with the session it would have gone.
func ParkWaiting(k Keys, at Revisions, place Leased, p Parking) Op {
	return newTxn(
		Compares{Created(k.Entry, at.Entry)},
		append(Writes{Put(k.Entry, place)}, putParked(k, p)...),
		LockRecordAndQueue(k))
}

// ParkRunning lets an execution outlive the process that runs it. k.Slots are those that it gives
// back, because it does not run any more.
func ParkRunning(k Keys, at Revisions, lock Leased, p Parking) Op {
	return newTxn(
		Compares{Created(k.Lock, at.LockCreated), modifiedAt(k.Lock, at.Lock)},
		append(append(Writes{Put(k.Lock, lock)}, putParked(k, p)...), freeSlots(k)...),
		nil)
}

// Attempt writes a new token before each try of a parked execution: the one before may still be at
// work. It proves that the process lives, as a claim does. k.Slots are those that it takes, because
// a resting execution has none. It does not wait behind slot waiters: it came before them.
func Attempt(k Keys, at Revisions, lock Leased) Op {
	return newTxn(
		append(Compares{Created(k.Lock, at.LockCreated), modifiedAt(k.Lock, at.Lock), keyPresent(k.Alive)},
			slotsFree(k)...),
		append(Writes{Put(k.Lock, lock)}, takeSlots(k)...),
		nil)
}

// Rest writes down how a try of a parked execution ended, and gives its slots back. With an index
// the other processes are notified.
func Rest(k Keys, at Revisions, lock Leased, index *Leased) Op {
	return newTxn(
		Compares{Created(k.Lock, at.LockCreated), modifiedAt(k.Lock, at.Lock)},
		append(append(Writes{Put(k.Lock, lock)}, putIndex(k, index)...), freeSlots(k)...),
		nil)
}

// Carry takes over a parked execution whose process is gone, with a new token: it is never reaped.
func Carry(k Keys, at Revisions, lock Leased) Op {
	return newTxn(
		Compares{epochIs(k, at), modifiedAt(k.Lock, at.Lock), Absent(k.Alive)},
		append(Writes{Put(k.Lock, lock)}, readHighWaterMark(k)...),
		lockRecordAndAlive(k))
}

// SettleParked is a Settle; with a letter the request is kept as a dead letter.
func SettleParked(k Keys, at Revisions, record Leased, cool *Cooling, letter, mark *Leased) Op {
	return newTxn(
		Compares{Created(k.Lock, at.LockCreated), modifiedAt(k.Lock, at.Lock)},
		append(append(endLock(k, record, cool), deleteParked(k, letter)...), raiseHighWaterMark(k, mark)...),
		nil)
}

// SettleTooOld ends an execution that was parked for too long, unless it was allowed to run since:
// that renews its time.
func SettleTooOld(k Keys, at Revisions, record Leased, cool *Cooling, letter *Leased) Op {
	return newTxn(
		Compares{Created(k.Lock, at.LockCreated), modifiedAt(k.Lock, at.Lock), Absent(k.Age)},
		append(endLock(k, record, cool), deleteParked(k, letter)...),
		nil)
}

// EndUncarried ends a parked execution that no process runs, at the request of an operator.
func EndUncarried(k Keys, at Revisions, record Leased, cool *Cooling, letter *Leased) Op {
	return newTxn(
		Compares{modifiedAt(k.Lock, at.Lock), Absent(k.Alive)},
		append(endLock(k, record, cool), deleteParked(k, letter)...),
		lockRecordAndAlive(k))
}

// EndParkedPlace ends a parked execution that has not begun, at the request of an operator.
func EndParkedPlace(k Keys, at Revisions, record Leased, letter *Leased) Op {
	return newTxn(
		Compares{Created(k.Entry, at.Entry), modifiedAt(k.Record, at.Record)},
		append(Writes{deleteKey(k.Entry), Put(k.Record, record)}, deleteParked(k, letter)...),
		nil)
}

// ForceReleaseParked is a ForceRelease. The request is kept: an accepted event is never lost
// without a trace.
func ForceReleaseParked(k Keys, at Revisions, record, news, letter Leased) Op {
	return newTxn(
		Compares{modifiedAt(k.Lock, at.Lock)},
		append(append(notifyOwner(k, news), endLock(k, record, nil)...), deleteParked(k, &letter)...),
		nil)
}

// RunNow lets a parked execution in its lock be tried now, whatever it waited for.
func RunNow(k Keys, at Revisions, lock, index, age Leased) Op {
	return newTxn(
		Compares{modifiedAt(k.Lock, at.Lock)},
		Writes{Put(k.Lock, lock), Put(k.Index, index), Put(k.Age, age)},
		nil)
}

// Rerun lets the event of a record run again whose request was kept, at the end of its queue. old
// are the keys of the execution that ended. The record stays until the new one ends, so nothing but
// the queue says that the event is not settled now: every process drops what it remembers of old.
func Rerun(k Keys, at Revisions, place, news Leased, p Parking, old Keys) Op {
	return newTxn(
		Compares{modifiedAt(k.Lock, at.Lock), modifiedAt(k.OtherLock, at.OtherLock), Absent(k.Entry),
			modifiedAt(k.Record, at.Record)},
		append(append(Writes{Put(k.Entry, place)}, putParked(k, p)...), deleteKey(old.Request), deleteKey(old.Index),
			Put(old.Forget, news)),
		LockRecordAndQueue(k))
}

// SweepLetter removes the request that was kept with a record which is gone, or belongs to another
// execution by now.
func SweepLetter(k Keys, at Revisions) Op {
	return newTxn(
		Compares{modifiedAt(k.Record, at.Record)},
		Writes{deleteKey(k.Request), deleteKey(k.Index)},
		nil)
}

func putParked(k Keys, p Parking) Writes {
	return Writes{Put(k.Request, p.Request), Put(k.Index, p.Index), Put(k.Age, p.Age)}
}

func putIndex(k Keys, index *Leased) Writes {
	if index == nil {
		return nil
	}
	return Writes{Put(k.Index, *index)}
}

// deleteParked deletes what was stored of a parked execution; with a letter its request stays.
func deleteParked(k Keys, letter *Leased) Writes {
	if letter != nil {
		return Writes{Put(k.Index, *letter), deleteKey(k.Age)}
	}
	return Writes{deleteKey(k.Request), deleteKey(k.Index), deleteKey(k.Age)}
}
