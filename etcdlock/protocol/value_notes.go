package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

// Values that a Note writes, and so no transaction compares.

type pauseValue struct {
	Version int `json:"v"`
	idem.Pause
}

// Pause returns the key of the pause of that scope: pauses/route/<name>, or
// pauses/workflow/<pattern>.
func (y Layout) Pause(s idem.PauseScope) string {
	kind, what, _ := strings.Cut(s.String(), ":")
	return y.All(KindPauses) + kind + "/" + url.PathEscape(what)
}

// EncodePause encodes a pause.
func EncodePause(p *idem.Pause) ([]byte, error) {
	q := *p
	q.Since = q.Since.UTC()
	b := encodeJSON(pauseValue{othersVersion, q})
	if len(b) > maxPause {
		return nil, fmt.Errorf("a pause of %d bytes: %w", len(b), ErrTooLarge)
	}
	return b, nil
}

// maxPause bounds a pause, in bytes.
const maxPause = 16 << 10

var errPauseKey = errors.New("no key of a pause")

// PauseAt reads a pause and its key. One of a newer release is a pause all the same, of which
// nothing else is known: a paused workflow must not run because another replica was updated first.
func (y Layout) PauseAt(kv *mvccpb.KeyValue) (*idem.Pause, error) {
	kind, escaped, ok := strings.Cut(strings.TrimPrefix(string(kv.Key), y.All(KindPauses)), "/")
	what, err := url.PathUnescape(escaped)
	if !ok || err != nil || !utf8.ValidString(what) {
		return nil, fmt.Errorf("%s: %w", kv.Key, errPauseKey)
	}
	scope, err := idem.ParsePauseScope(kind + ":" + what)
	if err != nil {
		return nil, err
	}
	var v pauseValue
	_ = decodeJSON("a pause", kv.Value, othersVersion, &v) // a value that cannot be read adds nothing
	v.Scope, v.Revision = scope, kv.ModRevision
	return &v.Pause, nil
}

type questionValue struct {
	Version int `json:"v"`
	idem.OpenQuestion
}

// EncodeQuestion returns a question as it is stored.
func EncodeQuestion(q *idem.OpenQuestion) []byte { return encodeJSON(questionValue{othersVersion, *q}) }

// QuestionAt reads a question and its key.
func (y Layout) QuestionAt(kv *mvccpb.KeyValue) (*idem.OpenQuestion, error) {
	var v questionValue
	if err := decodeJSON("a question", kv.Value, othersVersion, &v); err != nil {
		return nil, err
	}
	v.Execution = idem.ExecutionID(strings.TrimPrefix(string(kv.Key), y.All(KindQuestions)))
	v.Revision, v.Lease = kv.ModRevision, kv.Lease
	return &v.OpenQuestion, nil
}

type acknowledgementValue struct {
	Version int `json:"v"`
	idem.Acknowledgement
}

// Acknowledgement is the key of what a person has looked at of a concern: seen/<kind>/<route>.
func (y Layout) Acknowledgement(c idem.Concern) string {
	return y.All(KindAcknowledgements) + string(c.Kind) + "/" + url.PathEscape(c.Route)
}

// EncodeAcknowledgement returns a mark as it is stored.
func EncodeAcknowledgement(s *idem.Acknowledgement) []byte {
	return encodeJSON(acknowledgementValue{othersVersion, *s})
}

// DecodeAcknowledgement reads a mark and its key.
func (y Layout) DecodeAcknowledgement(kv *mvccpb.KeyValue) (*idem.Acknowledgement, error) {
	var v acknowledgementValue
	if err := decodeJSON("a mark", kv.Value, othersVersion, &v); err != nil {
		return nil, err
	}
	kind, escaped, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), y.All(KindAcknowledgements)), "/")
	route, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kv.Key, err)
	}
	v.Concern = idem.Concern{Kind: idem.ConcernKind(kind), Route: route}
	return &v.Acknowledgement, nil
}

// replicaValue is what a process says of itself.
type replicaValue struct {
	Version int `json:"v"`
	idem.ReplicaNote
}

// EncodeReplica encodes what a process says of itself.
func EncodeReplica(n *idem.ReplicaNote) []byte { return encodeJSON(replicaValue{othersVersion, *n}) }

// DecodeReplica returns nil for a value that this release cannot read.
func DecodeReplica(b []byte) *idem.ReplicaNote {
	var v replicaValue
	if decodeJSON("a replica", b, othersVersion, &v) != nil {
		return nil
	}
	return &v.ReplicaNote
}

type noticesValue struct {
	Version int `json:"v"`
	idem.Notices
}

// EncodeNotices encodes the messages that people got.
func EncodeNotices(n *idem.Notices) []byte { return encodeJSON(noticesValue{othersVersion, *n}) }

// DecodeNotices returns the zero value for a value that this release cannot read.
func DecodeNotices(b []byte) idem.Notices {
	var v noticesValue
	if decodeJSON("notices", b, othersVersion, &v) != nil {
		return idem.Notices{}
	}
	return v.Notices
}

// auditValue is a stored audit.
type auditValue struct {
	Version int `json:"v"`
	idem.Audit
}

// EncodeAudit encodes an audit.
func EncodeAudit(a *idem.Audit) []byte {
	return encodeJSON(auditValue{othersVersion, *a})
}

// DecodeAudit returns nil for a value that this release cannot read: audits are for operators only.
func DecodeAudit(b []byte) *idem.Audit {
	var v auditValue
	if decodeJSON("an audit", b, othersVersion, &v) != nil || v.What == "" {
		return nil
	}
	return &v.Audit
}

type badSignatureValue struct {
	Version int `json:"v"`
	idem.BadSignature
}

// EncodeBadSignature encodes a delivery whose signature was not valid.
func EncodeBadSignature(b *idem.BadSignature) []byte {
	return encodeJSON(badSignatureValue{othersVersion, *b})
}

// DecodeBadSignature returns nil for a value that this release cannot read.
func DecodeBadSignature(b []byte) *idem.BadSignature {
	var v badSignatureValue
	if decodeJSON("a bad signature", b, othersVersion, &v) != nil || v.At.IsZero() {
		return nil
	}
	return &v.BadSignature
}

// countValue is how many duplicates of one execution one process has answered without running.
type countValue struct {
	Version int   `json:"v"`
	Count   int64 `json:"count"`
}

// EncodeCount encodes a count of duplicates.
func EncodeCount(n int64) []byte {
	return encodeJSON(countValue{othersVersion, n})
}

// DecodeCount returns 0 for a value that this release cannot read: counts are for operators only.
func DecodeCount(b []byte) int64 {
	var v countValue
	if decodeJSON("a count", b, othersVersion, &v) != nil {
		return 0
	}
	return max(0, v.Count)
}

// ListedLease says when keys were put on a lease.
type ListedLease struct {
	Version int `json:"v"` // of the form of the value
	// Chain is one process and retention: a lease of a chain takes no more keys when the next but
	// one of the chain was granted.
	Chain string    `json:"chain"`
	At    time.Time `json:"at"`     // by the clock of that process
	Open  int64     `json:"openNs"` // for how long it takes keys
	// Index is what is searched first; nil = the lease still takes keys, or its process ended
	// before it wrote one.
	Index *LeaseIndex `json:"index,omitempty"`
}

// EncodeLease encodes a listed lease.
func EncodeLease(l ListedLease) []byte {
	l.Version, l.At = othersVersion, l.At.UTC().Round(time.Millisecond)
	return encodeJSON(l)
}

// DecodeLease returns false for a value that this release cannot read.
func DecodeLease(b []byte) (l ListedLease, ok bool) {
	return l, json.Unmarshal(b, &l) == nil && l.Version == othersVersion
}
