package protocol

import (
	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

// highWaterMarkValue is a stored high-water mark. etcd compares two of them byte by byte, so the
// position comes first, and everything before it is the same in all.
type highWaterMarkValue struct {
	Version   int              `json:"v"`
	At        idem.Position    `json:"at"`
	Position  string           `json:"position"` // as the sender wrote it, for operators
	Scope     string           `json:"scope,omitempty"`
	Execution idem.ExecutionID `json:"executionId"`
}

// EncodeHighWaterMark returns the value of the mark that the execution of e raises when it goes
// through; nil: none, because it has no order.
func EncodeHighWaterMark(e *idem.ExecutionFacts) []byte {
	if e.Order == nil {
		return nil
	}
	at, ok := idem.ParsePosition(e.Order.At)
	if !ok {
		return nil
	}
	return encodeJSON(highWaterMarkValue{othersVersion, at, e.Order.At, e.Order.Scope, e.Execution})
}

// DecodeHighWaterMark reads a high-water mark.
func DecodeHighWaterMark(b []byte) (*idem.HighWaterMark, error) {
	var v highWaterMarkValue
	switch err := decodeJSON("a mark", b, othersVersion, &v); {
	case err != nil:
		return nil, err
	case v.At == "":
		return nil, corruptError("a mark")
	}
	return &idem.HighWaterMark{At: v.At, Execution: v.Execution}, nil
}

// Judge compares l with the mark that was read with its lock held; kv is nil if there is none. A
// mark that cannot be read is ignored.
func Judge(l *idem.Lock, kv *mvccpb.KeyValue) {
	l.Stale = nil
	if l.Order == nil || kv == nil {
		return
	}
	if m, err := DecodeHighWaterMark(kv.Value); err == nil {
		l.Stale = l.Order.Against(m)
	}
}
