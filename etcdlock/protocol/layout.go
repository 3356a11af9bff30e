package protocol

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/idem"
)

// Layout makes and reads the keys below one prefix. Their shape is a promise to users of etcdctl and to neighbouring releases: a change needs a
// new version.
type Layout struct{ Root string } // "<prefix>/v1/"

const layoutVersion = "v1"

// NewLayout returns the layout below prefix.
func NewLayout(prefix string) Layout {
	return Layout{strings.TrimRight(prefix, "/") + "/" + layoutVersion + "/"}
}

// The kinds of keys.
const (
	KindSessions = "sessions/"
	KindQueue    = "queue/"
	KindLocks    = "locks/"
	KindHolds    = "holds/"
	KindRecords  = "r/"
	kindAnswers  = "answers/"
	kindCancels  = "cancels/"
	KindForgets  = "forgets/"
	kindCounts   = "duplicates/"
	KindRequests = "requests/"
	KindParked   = "parked/"
	KindAges     = "ages/"
	KindArrivals = "arrivals/"
	KindPauses   = "pauses/"
	kindSeen     = "seen/"
	KindMarks    = "marks/"
	kindLeases   = "leases/"
	kindIndex    = "index/"
	KindAudits   = "audits/"
	KindMinutes  = "minutes/"
	KindHours    = "hours/"
	kindSlots    = "slots/"
	kindTurns    = "turns/"
)

// Sessions returns the prefix of all sessions.
func (y Layout) Sessions() string { return y.Root + KindSessions }

// Locks returns the prefix of all locks.
func (y Layout) Locks() string { return y.Root + KindLocks }

// Queues returns the prefix of all queue entries.
func (y Layout) Queues() string { return y.Root + KindQueue }

// Records returns the prefix of all records.
func (y Layout) Records() string { return y.Root + KindRecords }

// Answer returns the key of the answer of an execution's record, if it expires before the record.
func (y Layout) Answer(id idem.ExecutionID) string { return y.Root + kindAnswers + string(id) }

// OlderRecords returns the prefix under which an earlier release kept its records, in another form.
func (y Layout) OlderRecords() string { return y.Root + "keys/" }

// Counts returns the prefix of the counts of duplicates of an execution, one for each process.
func (y Layout) Counts(id idem.ExecutionID) string { return y.Root + kindCounts + string(id) + "/" }

// Arrivals returns the prefix of the arrivals of an event, one key for each process.
func (y Layout) Arrivals(s idem.Scope) string {
	return y.Root + KindArrivals + nameOf(s)
}

// Audit returns the key of the n-th audit that a process writes. The newer it is, the earlier its key comes, so that the newest are read first.
// Audits are read by operators only, so clocks that differ do no harm.
func (y Layout) Audit(at time.Time, writer string, n int64) string {
	return y.Root + KindAudits + Hex16(math.MaxUint64-uint64(at.UnixMilli())) + "-" + Hex16(math.MaxUint64-uint64(n)) + "-" + writer //nolint:gosec // any order will do before 1970
}

// CountsOf returns the key of a process's n-th counts, which are of a time that begins at at. kind is KindMinutes or KindHours. The newer they
// are, the earlier their key comes.
func (y Layout) CountsOf(kind string, at time.Time, writer string, n int) string {
	return y.countsAt(kind, at) + "-" + writer + "-" + strconv.Itoa(n)
}

// CountsSince returns the end of the keys of counts that are not older than at.
func (y Layout) CountsSince(kind string, at time.Time) string { return y.countsAt(kind, at) + "." }

func (y Layout) countsAt(kind string, at time.Time) string {
	return y.Root + kind + Hex16(math.MaxUint64-uint64(at.Unix())) //nolint:gosec // any order will do before 1970
}

// Leases returns the prefix of the list of leases that have keys of that kind on them.
func (y Layout) Leases(kind string) string { return y.Root + kindLeases + kind }

// Index returns the key of a field of the index of a lease with keys of that kind.
func (y Layout) Index(kind string, lease clientv3.LeaseID, field Field) string {
	return y.Root + kindIndex + kind + strconv.FormatInt(int64(lease), 16) + "/" + string(field)
}

// Parked returns the prefix of the index of parked executions, and of requests that are kept with a record.
func (y Layout) Parked() string { return y.Root + KindParked }

// Ages returns the prefix of the keys that expire when an execution has been parked for too long.
func (y Layout) Ages() string { return y.Root + KindAges }

// Slots returns the prefix of the taken slots of all limits.
func (y Layout) Slots() string { return y.Root + kindSlots }

// Turns returns the prefix of the slot waiters of all limits.
func (y Layout) Turns() string { return y.Root + kindTurns }

// Taken returns the prefix of the taken slots of a limit.
func (y Layout) Taken(limit string) string { return y.Slots() + ofLimit(limit) }

// Slot returns the key of slot n of a limit.
func (y Layout) Slot(limit string, n int) string { return y.Taken(limit) + strconv.Itoa(n) }

// Line returns the prefix of the slot waiters of a limit.
func (y Layout) Line(limit string) string { return y.Turns() + ofLimit(limit) }

// Turn returns the key of an execution that waits for a slot of a limit.
func (y Layout) Turn(limit string, id idem.ExecutionID) string { return y.Line(limit) + string(id) }

func ofLimit(limit string) string { return pathOf(limit) + "/" }

// SlotAt reads the key of a slot below Slots, or of a slot waiter below Turns: the limit, and what is behind it.
func SlotAt(below string) (limit, rest string, ok bool) {
	_, below, ok = strings.Cut(below, "/")
	if !ok {
		return "", "", false
	}
	escaped, rest, ok := strings.Cut(below, "/")
	if !ok {
		return "", "", false
	}
	limit, err := url.PathUnescape(escaped)
	return limit, rest, err == nil
}

// Request returns the key of the stored request of a parked execution.
func (y Layout) Request(id idem.ExecutionID) string { return y.Root + KindRequests + string(id) }

// Forgets returns the prefix of all forgets.
func (y Layout) Forgets() string { return y.Root + KindForgets }

// Forget returns the key that tells every process to drop a cached record of this execution.
func (y Layout) Forget(id idem.ExecutionID) string { return y.Forgets() + string(id) }

// Cancels returns the prefix of the executions that the process of that session has to look at.
func (y Layout) Cancels(session string) string { return y.Root + kindCancels + session + "/" }

// Cancel returns the key by which the owner of alive is told to look at the execution; "" if no process runs it.
func (y Layout) Cancel(alive string, id idem.ExecutionID) string {
	session, is := strings.CutPrefix(alive, KindSessions)
	if !is {
		return ""
	}
	return y.Root + kindCancels + session + "/" + string(id)
}

// Session returns the key of the session of that name.
func (y Layout) Session(name string) string { return y.Root + SessionAlive(name) }

// Alive returns the key whose existence proves that the owner of a lock lives.
func (y Layout) Alive(name string) string { return y.Root + name }

// SessionAlive returns the alive name of a lock that a session owns; see Alive.
func SessionAlive(name string) string { return KindSessions + name }

// HoldAlive returns the alive name of a lock that is held, or cools; see Alive.
func HoldAlive(id idem.ExecutionID) string { return KindHolds + string(id) }

// IsHold reports whether an alive name is a hold's.
func IsHold(alive string) bool { return strings.HasPrefix(alive, KindHolds) }

// Hash16 returns <W> of a key: XXH64 of the workflow, 16 hex digits.
func Hash16(workflow string) string { return Hex16(xxhash.Sum64String(workflow)) }

// pathOf returns <W>/<workflow>.
func pathOf(workflow string) string { return Hash16(workflow) + "/" + url.PathEscape(workflow) }

// Record returns the key of the record of the event.
func (y Layout) Record(s idem.Scope) string { return y.Root + KindRecords + nameOf(s) }

// nameBytes is the length of the name of an event in a workflow: its key, and XXH64 of the workflow, in binary. etcd has each key in memory,
// twice or three times, so hex would cost it more than a record's fields.
const nameBytes = idem.KeyBytes + 8

// nameOf begins with the hash of the event ID.
func nameOf(s idem.Scope) string {
	key, _ := s.Key.Binary()
	return string(binary.BigEndian.AppendUint64(append(make([]byte, 0, nameBytes), key[:]...), xxhash.Sum64String(s.Workflow)))
}

// EventAt reads the name of an event: its key, and Hash16 of its workflow. name may have more behind it.
func EventAt(name string) (event idem.Key, workflow string, ok bool) {
	if len(name) < nameBytes {
		return "", "", false
	}
	return idem.KeyOf([idem.KeyBytes]byte([]byte(name))), hex.EncodeToString([]byte(name[idem.KeyBytes:nameBytes])), true
}

// Beginning returns the beginning of the names of events whose keys begin with these hex digits: whole bytes of it, so a digit may be left out.
// If they are not hex, no name begins so.
func Beginning(digits string) string {
	digits = strings.Replace(digits, "-", "", 1)
	b, err := hex.DecodeString(digits[:len(digits)&^1])
	if err != nil {
		return digits
	}
	return string(b)
}

// keyOf returns the key of the event from the key of its record.
func keyOf(record []byte) idem.Key {
	event, _, _ := EventAt(string(record[max(0, len(record)-nameBytes):]))
	return event
}

// Queued returns the key of the event's entry in the queue of its workflow. It is the same under every strategy.
func (y Layout) Queued(s idem.Scope) string {
	return y.Root + KindQueue + pathOf(s.Workflow) + "/" + string(s.Key)
}

// LockOfPlace returns the lock that a queue entry, a key of Queued, waits for.
func (y Layout) LockOfPlace(place []byte) []byte {
	path := place[len(y.Root)+len(KindQueue) : max(bytes.LastIndexByte(place, '/'), len(y.Root)+len(KindQueue))]
	return append(append(append(make([]byte, 0, len(place)), y.Root...), KindLocks...), path...)
}

// Lock returns the key of the lock that s takes: the workflow's, or under strategy none the event's own.
func (y Layout) Lock(s idem.Scope) string {
	key := y.Locks() + pathOf(s.Workflow)
	if s.PerEvent {
		key += "/" + string(s.Key)
	}
	return key
}

// Other returns the lock that a duplicate takes at a replica whose route has strategy none if this one's has not, or the other way.
func (y Layout) Other(s idem.Scope) string {
	s.PerEvent = !s.PerEvent
	return y.Lock(s)
}

// Queue returns the prefix of all entries before s. Under strategy none that is an entry of the event alone, and there is no queue: it waits at
// a replica with another strategy.
func (y Layout) Queue(s idem.Scope) string {
	if !s.PerEvent {
		s.Key = ""
	}
	return y.Queued(s)
}

// Hex16 returns n in 16 hex digits.
func Hex16(n uint64) string {
	var b [16]byte
	for i := range b {
		b[i] = "0123456789abcdef"[n>>(60-4*i)&15]
	}
	return string(b[:])
}

// Mark returns the key of the high-water mark of an event's scope; "" if the event has no order. It is in the workflow's name, so transactions
// that write one never travel in one batch.
func (y Layout) Mark(workflow string, o *idem.Order) string {
	if o == nil {
		return ""
	}
	return y.Root + KindMarks + pathOf(workflow) + "/" + o.Mark
}

// Keys returns the keys of the transactions about the execution of l.
func (y Layout) Keys(l *idem.Lock) Keys {
	// These are Lock, Other, Queued and Queue, which would hash the workflow four times.
	alive, workflow, event := y.Alive(l.Alive), pathOf(l.Scope.Workflow), "/"+string(l.Scope.Key)
	other, queued := y.Locks()+workflow+event, y.Root+KindQueue+workflow+event
	lock, queue := strings.TrimSuffix(other, event), strings.TrimSuffix(queued, event[1:])
	if l.Scope.PerEvent {
		lock, other, queue = other, lock, queued
	}
	return Keys{
		Slots: y.SlotsOf(l),
		S:     alive, A: alive, H: y.Root + KindHolds + string(l.Execution), L: lock, O: other,
		Q: queued, W: queue, I: y.Record(l.Scope),
		C: y.Cancel(l.Alive, l.Execution), F: y.Forget(l.Execution),
		R: y.Request(l.Execution), P: y.Root + KindParked + string(l.Execution), G: y.Root + KindAges + string(l.Execution),
		M: y.Mark(l.Scope.Workflow, l.Order),
	}
}

// SlotsOf returns the keys of the slots that l has, without their values. A queue entry names its limits alone.
func (y Layout) SlotsOf(l *idem.Lock) (keys []SlotKey) {
	for _, slot := range l.Slots {
		if slot.N >= 0 {
			keys = append(keys, SlotKey{Key: y.Slot(slot.Limit, slot.N), Line: y.Line(slot.Limit)})
		}
	}
	return keys
}
