package protocol

import (
	"bytes"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

// Candidate is a queue entry that may be handed the lock.
type Candidate struct {
	Key      string // of the entry
	Revision int64  // its create revision, and its mod revision: it is not parked
	Prev     int64  // revision of the event's record that it has seen; 0 = absent

	lock  *idem.Lock // nil = not decoded yet
	value []byte
}

// NewCandidate returns an entry whose lock this process knows.
func NewCandidate(key string, place, prev int64, l *idem.Lock) *Candidate {
	return &Candidate{Key: key, Revision: place, Prev: prev, lock: l}
}

// Lock returns the execution of the entry; nil: a newer release wrote it, or it is damaged. It is
// decoded on demand, because other processes hand the lock to most entries that are seen here.
func (l *Candidate) Lock() *idem.Lock {
	if l.lock != nil {
		return l.lock
	}
	v, err := decodeLock(l.value)
	if err != nil || v.Parked != nil {
		return nil
	}
	return &v.Lock
}

// Candidates is the queue entries that may be handed the lock, in their order. The first of them
// was the head of the queue.
type Candidates struct {
	Entries []*Candidate // in the order of the queue
	// Upto: every entry that was made up to this revision is in it, or was before its first. 0 =
	// it is not complete.
	Upto int64
}

// EncodePlace encodes a queue entry whose execution may be handed the lock while its event's record
// is at revision prev.
func EncodePlace(l *idem.Lock, prev int64) ([]byte, error) {
	return (&lockValue{Lock: *l, Takes: &prev}).encode()
}

// takesName is the beginning of the last field of an entry that may be handed the lock. Text has no
// bare quotes in JSON, so nothing else reads like this.
var takesName = []byte(`,"takes":`)

// parseSeenRecord returns the revision of the record that the entry's execution has seen; false:
// the lock is not to be handed to it.
func parseSeenRecord(value []byte) (prev int64, ok bool) {
	at := bytes.LastIndex(value, takesName)
	if at < 0 {
		return 0, false
	}
	digits, ok := bytes.CutSuffix(value[at+len(takesName):], []byte{'}'})
	if !ok {
		return 0, false
	}
	prev, err := strconv.ParseInt(string(digits), 10, 64)
	return prev, err == nil
}

// CandidateAt returns the entry in kv; nil: it must claim the lock itself, because it is parked,
// may be, or is of a release without hand-offs.
func CandidateAt(kv *mvccpb.KeyValue) *Candidate {
	prev, ok := parseSeenRecord(kv.Value)
	if !ok || kv.CreateRevision != kv.ModRevision {
		return nil
	}
	return &Candidate{Key: string(kv.Key), Revision: kv.CreateRevision, Prev: prev, value: kv.Value}
}

// CandidatesAt returns the entries of an answer to getCandidates or getFirst, up to the first that
// must claim the lock itself, as of a revision of the store. Entries of that revision may be
// missing: the request that has read them has written, too.
func CandidatesAt(answer *pb.ResponseOp, revision int64) (line Candidates) {
	places := answer.GetResponseRange()
	for _, kv := range places.GetKvs() {
		next := CandidateAt(kv)
		if next == nil {
			return line
		}
		line.Entries = append(line.Entries, next)
	}
	if places != nil && !places.More {
		line.Upto = revision - 1
	}
	return line
}

// Before returns the last entry before the one of create revision q in an answer to getCandidates,
// "" = there is none; false: there may be others, which it does not have.
func Before(answer *pb.ResponseOp, q int64) (key string, known bool) {
	places := answer.GetResponseRange()
	for _, kv := range places.GetKvs() {
		if kv.CreateRevision >= q {
			return key, true
		}
		key = string(kv.Key)
	}
	return key, !places.GetMore()
}
