package protocol

import (
	"bytes"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

// InLine is who waits in a queue, and may be handed the lock.
type InLine struct {
	Key   string // of the place
	Place int64  // its create revision, and its mod revision: it is not parked
	Prev  int64  // revision of the event's record that it has seen; 0 = absent

	lock  *idem.Lock // nil = it is to be read
	value []byte
}

// NewInLine is who waits in a place, of which this process knows what it says.
func NewInLine(key string, place, prev int64, l *idem.Lock) *InLine {
	return &InLine{Key: key, Place: place, Prev: prev, lock: l}
}

// Lock is what the place says of the execution; nil: a newer release wrote it, or it is damaged. It is read where somebody asks, because of those who are
// seen to wait most are handed the lock by other processes.
func (l *InLine) Lock() *idem.Lock {
	if l.lock != nil {
		return l.lock
	}
	v, err := decodeLock(l.value)
	if err != nil || v.Parked != nil {
		return nil
	}
	return &v.Lock
}

// Line is who waits in a queue and may be handed the lock, in the order in which they came. Nobody was before the first of them.
type Line struct {
	Places []*InLine
	// Upto: every place that was taken up to this revision is one of them, or was before the first of them. 0 = they are not all.
	Upto int64
}

// EncodePlace is a place as it is stored, of an execution that may be handed the lock while its event's record is at revision prev.
func EncodePlace(l *idem.Lock, prev int64) ([]byte, error) {
	return (&lockValue{Lock: *l, Takes: &prev}).encode()
}

// takesName is how the last field of a place begins whose execution may be handed the lock. Text has no bare quotes in JSON, so nothing else reads like this.
var takesName = []byte(`,"takes":`)

// takes is what a place says of the record that its execution has seen; false: it is not to be handed the lock.
func takes(value []byte) (prev int64, ok bool) {
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

// InLineAt is who is in the place kv; nil: whoever it is, is to take the lock itself: it is parked, may be, or is of a release that hands nothing over.
func InLineAt(kv *mvccpb.KeyValue) *InLine {
	prev, ok := takes(kv.Value)
	if !ok || kv.CreateRevision != kv.ModRevision {
		return nil
	}
	return &InLine{Key: string(kv.Key), Place: kv.CreateRevision, Prev: prev, value: kv.Value}
}

// LineAt is who waits in the places of an answer to getLine or getFirst, up to the first who is to take the lock itself, as it was at a revision of the store.
// Places of that revision may be missing: the request that has read them has written, too.
func LineAt(answer *pb.ResponseOp, revision int64) (line Line) {
	places := answer.GetResponseRange()
	for _, kv := range places.GetKvs() {
		next := InLineAt(kv)
		if next == nil {
			return line
		}
		line.Places = append(line.Places, next)
	}
	if places != nil && !places.More {
		line.Upto = revision - 1
	}
	return line
}

// Before is the last place before the one of create revision q in an answer to getLine, "" = there is none; false: there may be others, which it does not have.
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
