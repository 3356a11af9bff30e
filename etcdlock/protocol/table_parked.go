package protocol

// The part of the protocol that is about parked executions; see table.go.

// Parking is what is kept of an execution whose sender has its answer: its R, P and G.
type Parking struct{ Request, Index, Age Leased }

// EnqueueParked is an Enqueue for who does not wait itself: the place is on no session, and whoever has its route runs it. Where another event has
// the other lock, at.O is its revision, as with Claim.
func EnqueueParked(k Keys, at Seen, place Leased, p Parking) Op {
	return txn(
		append(append(Compares{epochIs(k, at), modified(k.L, at.L), modified(k.O, at.O), Absent(k.Q), modified(k.I, at.Prev)}, nobodySince(k)...), stillWaits(k)...),
		append(append(Writes{Put(k.Q, place)}, keep(k, p)...), replace(k)...),
		LockRecordAndQueue(k))
}

// ParkWaiting takes a place off its session. Its create revision stays, which is its place in line; with the session it would have gone.
func ParkWaiting(k Keys, at Seen, place Leased, p Parking) Op {
	return txn(
		Compares{Created(k.Q, at.Q)},
		append(Writes{Put(k.Q, place)}, keep(k, p)...),
		LockRecordAndQueue(k))
}

// ParkRunning lets an execution outlive the process that runs it. k.Slots are those that it gives back, because it does not run any more.
func ParkRunning(k Keys, at Seen, lock Leased, p Parking) Op {
	return txn(
		Compares{Created(k.L, at.Created), modified(k.L, at.L)},
		append(append(Writes{Put(k.L, lock)}, keep(k, p)...), freeSlots(k)...),
		nil)
}

// Attempt puts a new token before each try of a parked execution: the one before may still be at work. It proves that the process lives, as a claim
// does. k.Slots are those that it takes: what rests has none. It asks nobody who waits for one: it came before them.
func Attempt(k Keys, at Seen, lock Leased) Op {
	return txn(
		append(Compares{Created(k.L, at.Created), modified(k.L, at.L), present(k.A)}, slotsFree(k)...),
		append(Writes{Put(k.L, lock)}, takeSlots(k)...),
		nil)
}

// Rest writes down how a try of a parked execution ended, and gives its slots back. With an index the other processes hear of it.
func Rest(k Keys, at Seen, lock Leased, index *Leased) Op {
	return txn(
		Compares{Created(k.L, at.Created), modified(k.L, at.L)},
		append(append(Writes{Put(k.L, lock)}, announce(k, index)...), freeSlots(k)...),
		nil)
}

// Carry takes a parked execution over whose process is gone, with a new token: it is never buried.
func Carry(k Keys, at Seen, lock Leased) Op {
	return txn(
		Compares{epochIs(k, at), modified(k.L, at.L), Absent(k.A)},
		append(Writes{Put(k.L, lock)}, readMark(k)...),
		lockRecordAndAlive(k))
}

// SettleParked is a Settle; with a letter the request is kept.
func SettleParked(k Keys, at Seen, record Leased, cool *Cooling, letter, mark *Leased) Op {
	return txn(
		Compares{Created(k.L, at.Created), modified(k.L, at.L)},
		append(append(endLock(k, record, cool), unpark(k, letter)...), raise(k, mark)...),
		nil)
}

// SettleTooOld ends what was parked for longer than it may be, unless somebody has let it run since: that gives it its time again.
func SettleTooOld(k Keys, at Seen, record Leased, cool *Cooling, letter *Leased) Op {
	return txn(
		Compares{Created(k.L, at.Created), modified(k.L, at.L), Absent(k.G)},
		append(endLock(k, record, cool), unpark(k, letter)...),
		nil)
}

// EndUncarried ends a parked execution that no process runs, because somebody asked for it.
func EndUncarried(k Keys, at Seen, record Leased, cool *Cooling, letter *Leased) Op {
	return txn(
		Compares{modified(k.L, at.L), Absent(k.A)},
		append(endLock(k, record, cool), unpark(k, letter)...),
		lockRecordAndAlive(k))
}

// EndParkedPlace ends a parked execution that has not begun, because somebody asked for it.
func EndParkedPlace(k Keys, at Seen, record Leased, letter *Leased) Op {
	return txn(
		Compares{Created(k.Q, at.Q), modified(k.I, at.Prev)},
		append(Writes{del(k.Q), Put(k.I, record)}, unpark(k, letter)...),
		nil)
}

// ForceReleaseParked is a ForceRelease. The request is kept: nothing that was accepted goes without a trace.
func ForceReleaseParked(k Keys, at Seen, record, news, letter Leased) Op {
	return txn(
		Compares{modified(k.L, at.L)},
		append(append(tell(k, news), endLock(k, record, nil)...), unpark(k, &letter)...),
		nil)
}

// RunNow lets a parked execution in its lock be tried now, whatever it waited for.
func RunNow(k Keys, at Seen, lock, index, age Leased) Op {
	return txn(
		Compares{modified(k.L, at.L)},
		Writes{Put(k.L, lock), Put(k.P, index), Put(k.G, age)},
		nil)
}

// Rerun lets the event of a record run again whose request was kept, as the last of its line. old are the keys of the execution that ended.
func Rerun(k Keys, at Seen, place Leased, p Parking, old Keys) Op {
	return txn(
		Compares{modified(k.L, at.L), modified(k.O, at.O), Absent(k.Q), modified(k.I, at.Prev)},
		append(append(Writes{Put(k.Q, place)}, keep(k, p)...), del(old.R), del(old.P)),
		LockRecordAndQueue(k))
}

// SweepLetter drops the request that was kept with a record which is gone, or is another execution's by now.
func SweepLetter(k Keys, at Seen) Op {
	return txn(
		Compares{modified(k.I, at.Prev)},
		Writes{del(k.R), del(k.P)},
		nil)
}

func keep(k Keys, p Parking) Writes {
	return Writes{Put(k.R, p.Request), Put(k.P, p.Index), Put(k.G, p.Age)}
}

func announce(k Keys, index *Leased) Writes {
	if index == nil {
		return nil
	}
	return Writes{Put(k.P, *index)}
}

// unpark deletes what was kept of a parked execution; with a letter its request stays.
func unpark(k Keys, letter *Leased) Writes {
	if letter != nil {
		return Writes{Put(k.P, *letter), del(k.G)}
	}
	return Writes{del(k.R), del(k.P), del(k.G)}
}
