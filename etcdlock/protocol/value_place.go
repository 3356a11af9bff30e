package protocol

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

// InLine is who waits in a queue, and may be handed the lock.
type InLine struct {
	idem.Lock
	Place int64 // create revision of the place, and its mod revision: it is not parked
	Prev  int64 // revision of the event's record that it has seen; 0 = absent
}

// EncodePlace is a place as it is stored, of an execution that may be handed the lock while its event's record is at revision prev.
func EncodePlace(l *idem.Lock, prev int64) ([]byte, error) {
	return (&lockValue{Lock: *l, Takes: &prev}).encode()
}

// FirstAt is who is in the place kv; nil: there is none, or it is to take the lock itself: it is parked, may be, or is of a release that hands
// nothing over.
func FirstAt(kv *mvccpb.KeyValue) *InLine {
	if kv == nil {
		return nil
	}
	v, err := decodeLock(kv.Value)
	if err != nil || v.Takes == nil || v.Parked != nil || kv.CreateRevision != kv.ModRevision {
		return nil
	}
	return &InLine{v.Lock, kv.CreateRevision, *v.Takes}
}

// LineAt is who waits in the places of an answer to getLine, up to the first who is to take the lock itself.
func LineAt(answer *pb.ResponseOp) (line []*InLine) {
	for _, kv := range answer.GetResponseRange().Kvs {
		next := FirstAt(kv)
		if next == nil {
			break
		}
		line = append(line, next)
	}
	return line
}

// Before is the last place before the one of create revision q in an answer to getLine, "" = there is none; false: there may be others, which it does not have.
func Before(answer *pb.ResponseOp, q int64) (key string, known bool) {
	kvs := answer.GetResponseRange().Kvs
	for _, kv := range kvs {
		if kv.CreateRevision >= q {
			return key, true
		}
		key = string(kv.Key)
	}
	return key, len(kvs) < LineLength
}
