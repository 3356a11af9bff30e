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

// Layout makes and reads the keys below one prefix. Their shape is a promise to people with etcdctl and to neighbouring
// releases: a change needs a new version.
type Layout struct{ Root string } // "<prefix>/v1/"

const layoutVersion = "v1"

// NewLayout is the layout below prefix.
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
	KindMarks    = "marks/"
	kindLeases   = "leases/"
	kindIndex    = "index/"
	KindAudits   = "audits/"
	KindMinutes  = "minutes/"
	KindHours    = "hours/"
	kindSlots    = "slots/"
	kindTurns    = "turns/"
)

// Sessions is the prefix of all sessions.
func (y Layout) Sessions() string { return y.Root + KindSessions }

// Locks is the prefix of all locks.
func (y Layout) Locks() string { return y.Root + KindLocks }

// Queues is the prefix of all places in queues.
func (y Layout) Queues() string { return y.Root + KindQueue }

// Records is the prefix of all records.
func (y Layout) Records() string { return y.Root + KindRecords }

// Answer is the answer of an execution's record that leaves before it.
func (y Layout) Answer(id idem.ExecutionID) string { return y.Root + kindAnswers + string(id) }

// OlderRecords is where an earlier release kept its records, in another form.
func (y Layout) OlderRecords() string { return y.Root + "keys/" }

// Counts is the prefix of the counts of copies of an execution, one for each process.
func (y Layout) Counts(id idem.ExecutionID) string { return y.Root + kindCounts + string(id) + "/" }

// Arrivals is the prefix of what the processes know of the arrivals of an event, one key for each.
func (y Layout) Arrivals(s idem.Scope) string {
	return y.Root + KindArrivals + nameOf(s)
}

// Audit is where a process keeps the n-th audit that it writes. The newer it is, the earlier its key comes, so that the newest are read first; only
// people read them, so that clocks of processes differ does no harm.
func (y Layout) Audit(at time.Time, writer string, n int64) string {
	return y.Root + KindAudits + Hex16(math.MaxUint64-uint64(at.UnixMilli())) + "-" + Hex16(math.MaxUint64-uint64(n)) + "-" + writer //nolint:gosec // any order will do before 1970
}

// CountsOf is where a process keeps its n-th counts, which are of a time that begins at at. kind is KindMinutes or KindHours. The newer they are, the
// earlier their key comes.
func (y Layout) CountsOf(kind string, at time.Time, writer string, n int) string {
	return y.countsAt(kind, at) + "-" + writer + "-" + strconv.Itoa(n)
}

// CountsSince is where the keys of counts end that are not older than at.
func (y Layout) CountsSince(kind string, at time.Time) string { return y.countsAt(kind, at) + "." }

func (y Layout) countsAt(kind string, at time.Time) string {
	return y.Root + kind + Hex16(math.MaxUint64-uint64(at.Unix())) //nolint:gosec // any order will do before 1970
}

// Leases is the prefix of what says which leases have keys of that kind on them.
func (y Layout) Leases(kind string) string { return y.Root + kindLeases + kind }

// Index is a field of the index of a lease with keys of that kind.
func (y Layout) Index(kind string, lease clientv3.LeaseID, field Field) string {
	return y.Root + kindIndex + kind + strconv.FormatInt(int64(lease), 16) + "/" + string(field)
}

// Parked is the prefix of what says which executions are parked, and which requests are kept with a record.
func (y Layout) Parked() string { return y.Root + KindParked }

// Ages is the prefix of what says which of them have not been parked for too long.
func (y Layout) Ages() string { return y.Root + KindAges }

// Slots is the prefix of the slots of all limits that are taken.
func (y Layout) Slots() string { return y.Root + kindSlots }

// Turns is the prefix of the turns of those who wait for a slot, at all limits.
func (y Layout) Turns() string { return y.Root + kindTurns }

// Taken is the prefix of the slots of a limit that are taken.
func (y Layout) Taken(limit string) string { return y.Slots() + ofLimit(limit) }

// Slot is slot n of a limit.
func (y Layout) Slot(limit string, n int) string { return y.Taken(limit) + strconv.Itoa(n) }

// Line is the prefix of the turns at a limit.
func (y Layout) Line(limit string) string { return y.Turns() + ofLimit(limit) }

// Turn is the turn of an execution at a limit.
func (y Layout) Turn(limit string, id idem.ExecutionID) string { return y.Line(limit) + string(id) }

func ofLimit(limit string) string { return pathOf(limit) + "/" }

// SlotAt reads the key of a slot below Slots, or of a turn below Turns: the limit, and what is behind it.
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

// Request is what is kept of a parked execution's request.
func (y Layout) Request(id idem.ExecutionID) string { return y.Root + KindRequests + string(id) }

// Forgets is the prefix of all forgets.
func (y Layout) Forgets() string { return y.Root + KindForgets }

// Forget tells every process to drop what it remembers of an execution's record.
func (y Layout) Forget(id idem.ExecutionID) string { return y.Forgets() + string(id) }

// Cancels is the prefix of what the process of that session has to look at.
func (y Layout) Cancels(session string) string { return y.Root + kindCancels + session + "/" }

// Cancel is "" where no process runs what lives on alive.
func (y Layout) Cancel(alive string, id idem.ExecutionID) string {
	session, is := strings.CutPrefix(alive, KindSessions)
	if !is {
		return ""
	}
	return y.Root + kindCancels + session + "/" + string(id)
}

// Session is the key of the session of that name.
func (y Layout) Session(name string) string { return y.Root + SessionAlive(name) }

// Alive is the key that a lock names as the proof that its owner lives.
func (y Layout) Alive(name string) string { return y.Root + name }

// SessionAlive is what a lock names as its alive key while a session holds it; see Alive.
func SessionAlive(name string) string { return KindSessions + name }

// HoldAlive is what a lock names as its alive key while it is held, or cools; see Alive.
func HoldAlive(id idem.ExecutionID) string { return KindHolds + string(id) }

// IsHold reports whether an alive key is a hold's.
func IsHold(alive string) bool { return strings.HasPrefix(alive, KindHolds) }

// Hash16 is <W> of a key: XXH64 of the workflow, 16 hex digits.
func Hash16(workflow string) string { return Hex16(xxhash.Sum64String(workflow)) }

// pathOf is <W>/<workflow>.
func pathOf(workflow string) string { return Hash16(workflow) + "/" + url.PathEscape(workflow) }

// Record is the record of the event.
func (y Layout) Record(s idem.Scope) string { return y.Root + KindRecords + nameOf(s) }

// nameBytes is how long the name of an event is in a workflow: its key, and XXH64 of the workflow, in binary. etcd has each key in memory, twice or three
// times, so hex would cost it more than a record's fields.
const nameBytes = idem.KeyBytes + 8

// nameOf begins with the hash of what the sender calls the event.
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

// Beginning is what the names of events begin with whose keys begin with these hex digits: whole bytes of it, so a digit may be left out. Where they
// are none, no name does.
func Beginning(digits string) string {
	digits = strings.Replace(digits, "-", "", 1)
	b, err := hex.DecodeString(digits[:len(digits)&^1])
	if err != nil {
		return digits
	}
	return string(b)
}

// keyOf is the key of the event of a record, as the key of that says it.
func keyOf(record []byte) idem.Key {
	event, _, _ := EventAt(string(record[max(0, len(record)-nameBytes):]))
	return event
}

// Queued is the event's place in the queue of its workflow, whatever the strategy of who asks.
func (y Layout) Queued(s idem.Scope) string {
	return y.Root + KindQueue + pathOf(s.Workflow) + "/" + string(s.Key)
}

// LockOfPlace is the lock that is waited for in a place, as a key of Queued.
func (y Layout) LockOfPlace(place []byte) []byte {
	path := place[len(y.Root)+len(KindQueue) : max(bytes.LastIndexByte(place, '/'), len(y.Root)+len(KindQueue))]
	return append(append(append(make([]byte, 0, len(place)), y.Root...), KindLocks...), path...)
}

// Lock is the lock that s takes: the workflow's, or under strategy none the event's own.
func (y Layout) Lock(s idem.Scope) string {
	key := y.Locks() + pathOf(s.Workflow)
	if s.PerEvent {
		key += "/" + string(s.Key)
	}
	return key
}

// Other is the lock that a copy of the event takes at a replica whose route has strategy none where this one's has not, or the other way.
func (y Layout) Other(s idem.Scope) string {
	s.PerEvent = !s.PerEvent
	return y.Lock(s)
}

// Queue is the prefix of everybody who comes before s. Under strategy none that is a copy of the event alone, and there is no queue: it waits
// at a replica with another strategy.
func (y Layout) Queue(s idem.Scope) string {
	if !s.PerEvent {
		s.Key = ""
	}
	return y.Queued(s)
}

// Hex16 is n in 16 hex digits.
func Hex16(n uint64) string {
	var b [16]byte
	for i := range b {
		b[i] = "0123456789abcdef"[n>>(60-4*i)&15]
	}
	return string(b[:])
}

// Mark is the newest event of a scope of a workflow that went through; "" where the event stands in none. It is in the workflow's name, so transactions
// that write one never travel together.
func (y Layout) Mark(workflow string, o *idem.Order) string {
	if o == nil {
		return ""
	}
	return y.Root + KindMarks + pathOf(workflow) + "/" + o.Mark
}

// Keys are what the transactions about the execution of l touch.
func (y Layout) Keys(l *idem.Lock) Keys {
	// As Lock, Other, Queued and Queue say, which would hash the workflow four times.
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

// SlotsOf are the slots that l has, without what is in them. A place in a queue names its limits alone.
func (y Layout) SlotsOf(l *idem.Lock) (keys []SlotKey) {
	for _, slot := range l.Slots {
		if slot.N >= 0 {
			keys = append(keys, SlotKey{Key: y.Slot(slot.Limit, slot.N), Line: y.Line(slot.Limit)})
		}
	}
	return keys
}
