package protocol

import (
	"bytes"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// What the transactions of table.go are made of.

// Compares are the conditions of a transaction.
type Compares = []Cmp

// Writes are the operations of an applied transaction, or the reads of a refused one.
type Writes = []Op

// With is a transaction that, if it is applied, does more writes, too. op is not changed.
func With(op Op, more Writes) Op {
	t := op.GetRequestTxn()
	return newTxn(t.Compare, append(slices.Clip(t.Success), more...), t.Failure)
}

func epochIs(k Keys, at Revisions) Cmp { return modifiedAt(k.Session, at.Epoch) }

func modifiedAt(key string, revision int64) Cmp {
	c := &struct {
		cmp  pb.Compare
		than pb.Compare_ModRevision
	}{cmp: pb.Compare{Key: []byte(key), Result: pb.Compare_EQUAL, Target: pb.Compare_MOD}}
	c.than.ModRevision, c.cmp.TargetUnion = revision, &c.than
	return &c.cmp
}

// Created holds while key was created at that revision; 0: it is absent.
func Created(key string, revision int64) Cmp { return compareCreation(key, pb.Compare_EQUAL, revision) }

func createdAfter(key string, revision int64) Cmp {
	return compareCreation(key, pb.Compare_GREATER, revision)
}

func compareCreation(key string, result pb.Compare_CompareResult, revision int64) Cmp {
	c := &struct {
		cmp  pb.Compare
		than pb.Compare_CreateRevision
	}{cmp: pb.Compare{Key: []byte(key), Result: result, Target: pb.Compare_CREATE}}
	c.than.CreateRevision, c.cmp.TargetUnion = revision, &c.than
	return &c.cmp
}

func createdBefore(key string, revision int64) Cmp {
	return compareCreation(key, pb.Compare_LESS, revision)
}

// Absent holds while the key does not exist.
func Absent(key string) Cmp { return Created(key, 0) }

func keyPresent(key string) Cmp { return createdAfter(key, 0) }

// A compare over a prefix holds if it holds for every key below it.
func queueEmpty(k Keys) Cmp { return asPrefix(Created(k.Queue, 0)) }

func isHead(k Keys, q int64) Cmp { return asPrefix(createdAfter(k.Queue, q-1)) }

// asPrefix makes a compare one of a prefix that ends with a slash.
func asPrefix(c Cmp) Cmp {
	c.RangeEnd = bytes.Clone(c.Key)
	c.RangeEnd[len(c.Key)-1]++
	return c
}

// valueBefore holds while there is a value of key that comes before v.
func valueBefore(key string, v *Leased) Cmp { return compareValue(key, pb.Compare_LESS, v.Value) }

// noNewEntry holds if no entry was added to the queue since it was read; of two executions that
// replace the same one, one reads again. An execution that replaces none compares nothing here, nor
// in stillWaits.
func noNewEntry(k Keys) Compares {
	if k.Latest == nil {
		return nil
	}
	return Compares{asPrefix(createdBefore(k.Queue, k.Latest.Last+1))}
}

// stillWaits holds if the execution that is to be replaced still waits, so it has not begun to run.
func stillWaits(k Keys) Compares {
	if k.Latest == nil || k.Latest.Over == nil {
		return nil
	}
	return Compares{modifiedAt(k.Latest.Over.Entry, k.Latest.Entry)}
}

// endReplaced ends the execution that is replaced.
func endReplaced(k Keys) Writes {
	if k.Latest == nil || k.Latest.Over == nil {
		return nil
	}
	over := *k.Latest.Over
	w := Writes{deleteKey(over.Entry), Put(over.Record, k.Latest.Record)}
	if !k.Latest.Parked {
		return w
	}
	return append(w, deleteParked(over, nil)...)
}

// slotsFree holds if each slot is free that the lock is to take. Without slots it compares nothing,
// and so do the others that are about slots.
func slotsFree(k Keys) (c Compares) {
	for _, slot := range k.Slots {
		c = append(c, Absent(slot.Key))
	}
	return c
}

// noSlotWaiters holds if its limits have no slot waiters.
func noSlotWaiters(k Keys) (c Compares) {
	for _, slot := range k.Slots {
		c = append(c, asPrefix(Created(slot.Waiters, 0)))
	}
	return c
}

func takeSlots(k Keys) (w Writes) {
	for _, slot := range k.Slots {
		w = append(w, Put(slot.Key, Leased{Value: slot.Value}))
	}
	if k.SlotWaiter != "" {
		w = append(w, deleteKey(k.SlotWaiter))
	}
	return w
}

func enterSlotWaiters(k Keys, waiter Leased) Writes {
	if k.SlotWaiter == "" {
		return nil
	}
	return Writes{Put(k.SlotWaiter, waiter)}
}

func leaveSlotWaiters(k Keys) Writes {
	if k.OldSlotWaiter == "" {
		return nil
	}
	return Writes{deleteKey(k.OldSlotWaiter)}
}

func freeSlots(k Keys) (w Writes) {
	for _, slot := range k.Slots {
		w = append(w, deleteKey(slot.Key))
	}
	return w
}

func compareValue(key string, result pb.Compare_CompareResult, value []byte) Cmp {
	return &pb.Compare{Key: []byte(key), Result: result, Target: pb.Compare_VALUE,
		TargetUnion: &pb.Compare_Value{Value: value}}
}

// notifyOwner notifies the process that runs an execution that its lock was changed.
func notifyOwner(k Keys, news Leased) Writes {
	if k.Cancel == "" {
		return nil
	}
	return Writes{Put(k.Cancel, news)}
}

// freeLock deletes the lock and its slots, which are its own and need no compare.
func freeLock(k Keys) Writes {
	return append(append(Writes{deleteKey(k.Lock)}, dropHold(k)...), freeSlots(k)...)
}

// dropHold deletes the hold and returns it: the sender then ends its lease. A hold exists only
// while its lock names it, and each end compares the revision of the lock that it has seen.
func dropHold(k Keys) Writes {
	if k.Alive != k.Hold {
		return nil
	}
	return Writes{deleteReturning(k.Hold)}
}

func endLock(k Keys, record Leased, cool *Cooling) Writes {
	if cool != nil {
		return append(Writes{Put(k.Lock, cool.Lock), Put(k.Hold, cool.Hold), Put(k.Record, record)},
			answerOf(record)...)
	}
	return append(append(freeLock(k), Put(k.Record, record)), answerOf(record)...)
}

// answerOf puts the answer of a record that has a key of its own.
func answerOf(record Leased) Writes {
	if record.Apart == nil {
		return nil
	}
	return Writes{Put(record.Apart.Key, record.Apart.Leased)}
}

// readHighWaterMark reads the mark in the transaction that takes the lock: while the lock is held,
// nothing of the workflow goes through.
func readHighWaterMark(k Keys) Writes {
	if k.HighWaterMark == "" {
		return nil
	}
	return Writes{getValue(k.HighWaterMark)}
}

// readCandidates reads the queue, if the transaction is to return it.
func readCandidates(k Keys, more bool) Writes {
	if !more {
		return nil
	}
	return Writes{getCandidates(k.Queue)}
}

// raiseHighWaterMark puts a mark if it is newer than the existing one, and does nothing else:
// whatever the mark is, the execution ends. The values of marks are in the order of their
// positions.
func raiseHighWaterMark(k Keys, mark *Leased) Writes {
	if mark == nil {
		return nil
	}
	put := Writes{Put(k.HighWaterMark, *mark)}
	return Writes{newTxn(Compares{Absent(k.HighWaterMark)}, put,
		Writes{newTxn(Compares{valueBefore(k.HighWaterMark, mark)}, put, nil)})}
}

// dropHighWaterMark deletes a mark that is still the one of that value.
func dropHighWaterMark(k Keys, mark []byte) Writes {
	if mark == nil {
		return nil
	}
	return Writes{newTxn(Compares{compareValue(k.HighWaterMark, pb.Compare_EQUAL, mark)},
		Writes{deleteKey(k.HighWaterMark)}, nil)}
}

// dropLetter deletes what was stored of a dead letter.
func dropLetter(k Keys, letter bool) Writes {
	if !letter {
		return nil
	}
	return Writes{deleteKey(k.Request), deleteKey(k.Index)}
}

// LockRecordAndPlace reads what explains nearly all refusals. Most of them read the state of now,
// in the order of the read constants below. A transaction that is hardly ever refused reads
// nothing, and the sender reads afterwards: etcd and the network carry an else branch with each
// request, taken or not.
func LockRecordAndPlace(k Keys) Writes {
	return Writes{getValue(k.Lock), getValue(k.Record), getValue(k.Entry)}
}

// lockRecordPlaceAndOther reads nothing of the queue. That would cost etcd a look at each entry
// that went since its last compaction, while all others wait.
func lockRecordPlaceAndOther(k Keys) Writes {
	return append(LockRecordAndPlace(k), getValue(k.OtherLock))
}

// LockRecordAndQueue reads all that a refusal may have to be explained with.
func LockRecordAndQueue(k Keys) Writes { return append(lockRecordPlaceAndOther(k), getFirst(k.Queue)) }

// LockRecordAndCandidates reads the queue behind its head, too.
func LockRecordAndCandidates(k Keys) Writes {
	return append(lockRecordPlaceAndOther(k), getCandidates(k.Queue))
}

// LockRecordQueueAndHighWaterMark reads the mark, too, if there may be one.
func LockRecordQueueAndHighWaterMark(k Keys) Writes {
	return append(LockRecordAndQueue(k), readHighWaterMark(k)...)
}

func lockRecordAndAlive(k Keys) Writes {
	return Writes{getValue(k.Lock), getValue(k.Record), getKey(k.Alive)}
}

func lockAndHold(k Keys) Writes { return Writes{getValue(k.Lock), getValue(k.Hold)} }

// What a refusal reads, in its order. Further reads come behind these.
const (
	ReadLock = iota
	readRecord
	readPlace      // the event's own queue entry
	readOther      // the lock that a duplicate under another strategy would have
	ReadCandidates // the head of the queue, or its oldest entries

	ReadAlive = readRecord + 1
)

// What an applied transaction reads beside its writes: the queue as of then.
const (
	ReadFirstAfterClaim         = 2 // of ClaimAsHead: the head
	ReadCandidatesAfterHandOver = 3 // if it was to return the queue
)
