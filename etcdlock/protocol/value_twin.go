package protocol

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

// Twin is what a key of TwinKeys says of an event.
type Twin struct {
	Version int      `json:"v"`
	Key     idem.Key `json:"key"`
	EventID string   `json:"event,omitempty"`
	// First is what TwinKeys.First ends in, of the alias of a first event: an erasure finds it so.
	First string `json:"first,omitempty"`
}

// EncodeTwin encodes what names an event.
func EncodeTwin(key idem.Key, eventID, first string) []byte {
	return encodeJSON(Twin{othersVersion, key, eventID, first})
}

// DecodeTwin reads what EncodeTwin returns. Without a value it returns nil.
func DecodeTwin(kv *mvccpb.KeyValue) (*Twin, error) {
	if kv == nil {
		return nil, nil
	}
	t := &Twin{}
	return t, decodeJSON("the name of a twin", kv.Value, othersVersion, t)
}

// Twins are what a refusal of NameFirst reads: nil = there is none.
type Twins struct {
	Alias, First *Twin
	FirstAt      int64 // mod revision of First
	Record       bool  // the event has one under its own key
}

// ReadTwins reads the answer to a refused NameFirst.
func ReadTwins(reads []*pb.ResponseOp) (t Twins, err error) {
	if t.Alias, err = DecodeTwin(First(reads[0])); err != nil {
		return t, err
	}
	first := First(reads[1])
	t.FirstAt, t.Record = first.GetModRevision(), First(reads[2]) != nil
	t.First, err = DecodeTwin(first)
	return t, err
}

// Twin returns the keys of an event among its twins, and what k.First ends in.
func (y Layout) Twin(t *idem.Twin) (k TwinKeys, first string) {
	sum := sha256.New()
	for _, part := range [...]string{t.Route, t.Scope.Workflow, string(t.Body[:])} {
		_, _ = sum.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part)))) //nolint:gosec // names are short
		_, _ = sum.Write([]byte(part))
	}
	first = hex.EncodeToString(sum.Sum(nil))
	return TwinKeys{First: y.FirstTwin(first), Alias: y.Alias(t.Scope.Key), Record: y.Record(t.Scope)}, first
}

// FirstTwin returns the key of the first event of a body, by what it ends in.
func (y Layout) FirstTwin(first string) string { return y.Root + kindTwins + first }

// Alias returns the key that names the event that the event of that key is.
func (y Layout) Alias(key idem.Key) string { return y.Root + KindAliases + string(key) }

// Joined returns the prefix of the events that are the event of that key.
func (y Layout) Joined(first idem.Key) string { return y.Root + kindJoined + string(first) + "/" }

// JoinedAt returns the key of the event in a key below Joined.
func JoinedAt(key []byte) idem.Key {
	text := string(key)
	return idem.Key(text[strings.LastIndexByte(text, '/')+1:])
}
