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

// Layout makes and reads the keys below one prefix. Their shape is a promise to users of etcdctl
// and to neighbouring releases, which share them: a kind may be added, and a change of one needs a
// new layoutVersion. docs/architecture.md lists them.
type Layout struct {
	Root string // "<prefix>/v1/"
}

const layoutVersion = "v1"

// NewLayout returns the layout below prefix.
func NewLayout(prefix string) Layout {
	return Layout{strings.TrimRight(prefix, "/") + "/" + layoutVersion + "/"}
}

// The kinds of keys, each with what follows it. A name is of an event in its workflow, and
// <W>/<workflow> is that of pathOf.
const (
	KindSessions     = "sessions/"  // <session>
	KindQueue        = "queue/"     // <W>/<workflow>/<key>
	KindLocks        = "locks/"     // <W>/<workflow>, and /<key> if the lock is of one event
	KindHolds        = "holds/"     // <execution>
	KindRecords      = "r/"         // <name>
	KindOlderRecords = "keys/"      // of an earlier release, in another form
	KindAnswers      = "answers/"   // <execution>: the answer of its record, if it expires before that
	KindQuestions    = "questions/" // <execution>: its record says unknown, and the service is to be asked
	KindCancels      = "cancels/"   // <session>/<execution>: that session's process has to look at its lock
	KindForgets      = "forgets/"   // <execution>: every process has to drop a cached record of it
	KindRequests     = "requests/"  // <execution>: the stored request, if it is parked
	// <execution>: the index of what is parked, and of requests that are kept with a record
	KindParked           = "parked/"
	KindAges             = "ages/"       // <execution>: expires when it has been parked for too long
	kindDuplicates       = "duplicates/" // <execution>/<process>
	KindArrivals         = "arrivals/"   // <name><process>
	KindPauses           = "pauses/"     // route/<name> or workflow/<pattern>
	KindAcknowledgements = "seen/"       // <kind>/<route>
	KindHighWaterMarks   = "marks/"      // <W>/<workflow>/<scope>
	KindLeases           = "leases/"     // <kind>/<lease>, of leases that have keys of that kind on them
	kindIndex            = "index/"      // <kind>/<lease>/<field>
	KindAudits           = "audits/"     // <time>-<n>-<process>
	KindRefused          = "refused/"    // <time>-<n>-<process>-<token>
	KindSignatures       = "signatures/" // <time>-<n>-<process>-<route>
	KindMinutes          = "minutes/"    // <time>-<process>-<n>
	KindHours            = "hours/"      // <time>-<process>-<n>
	KindCounting         = "counting/"   // <time>-<process>-<n>: counts that are not in the two above yet
	KindReplicas         = "replicas/"   // <process>
	kindNotices          = "notices"     // the one key of the messages that people got
	KindOpenJobs         = "jobs/open/"  // <job>
	KindEndedJobs        = "jobs/ended/" // <job>, of one that has ended or is stopped
	kindJobRuns          = "jobs/runs/"  // <job>/<execution>
	KindSlots            = "slots/"      // <W>/<limit>/<n>: it is taken
	KindSlotWaiters      = "turns/"      // <W>/<limit>/<execution>, a slot waiter
	KindAliases          = "aliases/"    // <key>: the event that the event of that key is
	kindTwins            = "twins/"      // <hash of route, workflow and body>: the first event with that body
	kindJoined           = "joined/"     // <key>/<key of an event that is the first one>
)

// All returns the prefix of all keys of a kind, or of those whose keys begin with kind.
func (y Layout) All(kind string) string { return y.Root + kind }

// Of returns the key of an execution, of a kind whose keys are an execution's.
func (y Layout) Of(kind string, id idem.ExecutionID) string { return y.Root + kind + string(id) }

// OfLimit returns the prefix of the taken slots of a limit (KindSlots), or of its slot waiters
// (KindSlotWaiters).
func (y Layout) OfLimit(kind, limit string) string { return y.Root + kind + pathOf(limit) + "/" }

// Duplicates returns the prefix of the counts of duplicates of an execution, one for each process.
func (y Layout) Duplicates(id idem.ExecutionID) string {
	return y.Root + kindDuplicates + string(id) + "/"
}

// Arrivals returns the prefix of the arrivals of an event, one key for each process.
func (y Layout) Arrivals(s idem.Scope) string {
	return y.Root + KindArrivals + nameOf(s)
}

// Audit returns the key of the n-th audit that a process writes. The newer it is, the earlier its
// key comes, so that the newest are read first. Audits are read by operators only, so clocks that
// differ do no harm.
func (y Layout) Audit(at time.Time, writer string, n int64) string {
	return y.Root + KindAudits + newestFirst(at.UnixMilli()) + "-" + newestFirst(n) + "-" + writer
}

// Refused is Audit of one that changed nothing. Its key ends in what GroupOf returns.
func (y Layout) Refused(at time.Time, writer string, n int64, who string) string {
	return y.Root + KindRefused + newestFirst(at.UnixMilli()) + "-" + newestFirst(n) + "-" + writer + "-" + Hash16(who)
}

// BadSignature returns the key of the n-th bad signature that a process lists. Its key is as that
// of Refused, with the route in the place of the token.
func (y Layout) BadSignature(at time.Time, writer string, n int64, route string) string {
	return y.Root + KindSignatures + newestFirst(at.UnixMilli()) + "-" + newestFirst(n) + "-" + writer + "-" +
		Hash16(route)
}

// GroupOf returns the hash of the token in a key of Refused, or of the route in one of
// BadSignature.
func GroupOf(key string) string { return key[max(0, len(key)-16):] }

// Notices returns the key of the messages that people got.
func (y Layout) Notices() string { return y.Root + kindNotices }

// Replica returns the key of what a process says of itself.
func (y Layout) Replica(writer string) string { return y.Root + KindReplicas + writer }

// Job returns the key of a job, which depends on its state.
func (y Layout) Job(id string, state idem.JobState) string {
	if state == idem.JobRunning {
		return y.Root + KindOpenJobs + id
	}
	return y.Root + KindEndedJobs + id
}

// JobRuns returns the prefix of the executions that a job follows.
func (y Layout) JobRuns(id string) string { return y.Root + kindJobRuns + id + "/" }

// CountsOf returns the key of a process's n-th counts, which are of a time that begins at at. kind
// is KindMinutes, KindHours or KindCounting. The newer they are, the earlier their key comes.
func (y Layout) CountsOf(kind string, at time.Time, writer string, n int) string {
	return y.Root + kind + newestFirst(at.Unix()) + "-" + writer + "-" + strconv.Itoa(n)
}

// IsCountsOf reports whether a key of CountsOf is of that process.
func IsCountsOf(key, writer string) bool {
	at := strings.LastIndexByte(key, '-')
	return at > 0 && strings.HasSuffix(key[:at], "-"+writer)
}

// CountsSince returns the end of the keys of counts that are not older than at.
func (y Layout) CountsSince(kind string, at time.Time) string {
	return y.Root + kind + newestFirst(at.Unix()) + "."
}

// newestFirst returns n so that a larger one comes earlier in the order of keys. Of negative ones,
// such as times before 1970, any order will do.
func newestFirst(n int64) string { return Hex16(math.MaxUint64 - uint64(n)) } //nolint:gosec // see there

// Index returns the key of a field of the index of a lease with keys of that kind.
func (y Layout) Index(kind string, lease clientv3.LeaseID, field Field) string {
	return y.Root + kindIndex + kind + strconv.FormatInt(int64(lease), 16) + "/" + string(field)
}

// Slot returns the key of slot n of a limit.
func (y Layout) Slot(limit string, n int) string {
	return y.OfLimit(KindSlots, limit) + strconv.Itoa(n)
}

// SlotWaiter returns the key of an execution that waits for a slot of a limit.
func (y Layout) SlotWaiter(limit string, id idem.ExecutionID) string {
	return y.OfLimit(KindSlotWaiters, limit) + string(id)
}

// SlotAt reads the key of a slot, or of a slot waiter, below its kind: the limit, and what is
// behind it.
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

// Cancel returns the key that makes the owner of alive look at the execution; "" if no
// process runs it.
func (y Layout) Cancel(alive string, id idem.ExecutionID) string {
	session, is := strings.CutPrefix(alive, KindSessions)
	if !is {
		return ""
	}
	return y.Of(KindCancels+session+"/", id)
}

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

// nameBytes is the length of the name of an event in a workflow: its key, and XXH64 of the
// workflow, in binary. etcd has each key in memory, twice or three times, so hex would cost it more
// than a record's fields.
const nameBytes = idem.KeyBytes + 8

// nameOf begins with the hash of the event ID.
func nameOf(s idem.Scope) string {
	key, _ := s.Key.Binary()
	return string(binary.BigEndian.AppendUint64(append(make([]byte, 0, nameBytes), key[:]...),
		xxhash.Sum64String(s.Workflow)))
}

// EventAt reads the name of an event: its key, and Hash16 of its workflow. name may have more
// behind it.
func EventAt(name string) (event idem.Key, workflow string, ok bool) {
	if len(name) < nameBytes {
		return "", "", false
	}
	return idem.KeyOf([idem.KeyBytes]byte([]byte(name))), hex.EncodeToString([]byte(name[idem.KeyBytes:nameBytes])),
		true
}

// Beginning returns the beginning of the names of events whose keys begin with these hex digits:
// whole bytes of it, so a digit may be left out. If they are not hex, no name begins so.
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

// Queued returns the key of the event's entry in the queue of its workflow. It is the same under
// every strategy.
func (y Layout) Queued(s idem.Scope) string {
	return y.Root + KindQueue + pathOf(s.Workflow) + "/" + string(s.Key)
}

// LockOfPlace returns the lock that a queue entry, a key of Queued, waits for.
func (y Layout) LockOfPlace(place []byte) []byte {
	path := place[len(y.Root)+len(KindQueue) : max(bytes.LastIndexByte(place, '/'), len(y.Root)+len(KindQueue))]
	return append(append(append(make([]byte, 0, len(place)), y.Root...), KindLocks...), path...)
}

// Lock returns the key of the lock that s takes: the workflow's, or under strategy none the event's
// own.
func (y Layout) Lock(s idem.Scope) string {
	key := y.Root + KindLocks + pathOf(s.Workflow)
	if s.PerEvent {
		key += "/" + string(s.Key)
	}
	return key
}

// Queue returns the prefix of all entries before s. Under strategy none that is an entry of the
// event alone, and there is no queue: it waits at a replica with another strategy.
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

// HighWaterMark returns the key of the high-water mark of an event's scope; "" if the event has no
// order. It is in the workflow's name, so transactions that write one never travel in one batch.
func (y Layout) HighWaterMark(workflow string, o *idem.Order) string {
	if o == nil {
		return ""
	}
	return y.Root + KindHighWaterMarks + pathOf(workflow) + "/" + o.ScopeKey
}

// Keys returns the keys of the transactions about the execution of l.
func (y Layout) Keys(l *idem.Lock) Keys {
	// These are Lock, that of the other strategy, Queued and Queue, which would hash the workflow
	// four times.
	alive, workflow, event := y.Alive(l.Alive), pathOf(l.Scope.Workflow), "/"+string(l.Scope.Key)
	other, queued := y.Root+KindLocks+workflow+event, y.Root+KindQueue+workflow+event
	lock, queue := strings.TrimSuffix(other, event), strings.TrimSuffix(queued, event[1:])
	if l.Scope.PerEvent {
		lock, other, queue = other, lock, queued
	}
	return Keys{
		Slots:   y.SlotsOf(l),
		Session: alive, Alive: alive, Hold: y.Of(KindHolds, l.Execution), Lock: lock, OtherLock: other,
		Entry: queued, Queue: queue, Record: y.Record(l.Scope),
		Cancel: y.Cancel(l.Alive, l.Execution), Forget: y.Of(KindForgets, l.Execution),
		Request: y.Of(KindRequests, l.Execution), Index: y.Of(KindParked, l.Execution),
		Age:           y.Of(KindAges, l.Execution),
		HighWaterMark: y.HighWaterMark(l.Scope.Workflow, l.Order),
	}
}

// SlotsOf returns the keys of the slots that l has, without their values. A queue entry names its
// limits alone.
func (y Layout) SlotsOf(l *idem.Lock) (keys []SlotKey) {
	for _, slot := range l.Slots {
		if slot.Index >= 0 {
			keys = append(keys, SlotKey{Key: y.Slot(slot.LimitName, slot.Index),
				Waiters: y.OfLimit(KindSlotWaiters, slot.LimitName)})
		}
	}
	return keys
}
