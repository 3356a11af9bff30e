package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

// A value is one line of JSON with its version first, so that etcdctl shows it. Records, answers,
// arrivals, counts, proofs, requests and the index are binary, with a version, too. A reader knows
// its own version and the ones below. A field is added without a new version; a new one is for what
// an older release must refuse.
const (
	lockVersion   = 1
	parkedVersion = 2 // of a lock: a release that does not know parked executions would reap it
	slotsVersion  = 3 // of a lock: a release that does not know slots would free it without them
	othersVersion = 1 // of every other value in JSON
)

const (
	// MaxLockBytes bounds a lock's value: a hundred of them fit into one request.
	MaxLockBytes = 64 << 10
	// MaxRecordBytes bounds a record: etcd refuses requests above 1.5 MiB, and records travel in
	// batches.
	MaxRecordBytes = 600 << 10
	// MaxWorkflowBytes bounds a lock's key; it is escaped, so up to three times as long in etcd.
	MaxWorkflowBytes = 4 << 10
)

var (
	// ErrTooLarge says that a value does not fit: the record then keeps less of its answer.
	ErrTooLarge = errors.New("value too large for the store")
	// ErrOlder says that a value has a form which this release does not read.
	ErrOlder = errors.New("it has the form of an earlier release, which this one does not read: give etcd.prefix " +
		"another value, or delete what is below it")
	errCorrupt = errors.New("not a value of Hooklock: another program writes below etcd.prefix; give each its own " +
		"prefix")
)

// NewerError says that a neighbour of a newer release wrote a value that this one cannot read.
type NewerError struct {
	kind         string
	version, max int
}

// Error says what is of which version, and that this process has to be updated.
func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has version %d and this release reads up to %d: finish the upgrade of all replicas", e.kind,
		e.version, e.max)
}

// encodeJSON returns v in JSON.
func encodeJSON(v any) []byte {
	b, _ := json.Marshal(v) // strings, numbers and times always encode
	return b
}

// decodeJSON reads a value in JSON whose version is at most known into v. The version comes first:
// a newer release may have changed any other field.
func decodeJSON(kind string, b []byte, known int, v any) error {
	line, _, _ := bytes.Cut(b, []byte{'\n'})
	var is struct {
		Version int `json:"v"`
	}
	switch err := json.Unmarshal(line, &is); {
	case err != nil || is.Version < 1:
		return corruptError(kind)
	case is.Version > known:
		return &NewerError{kind, is.Version, known}
	}
	if json.Unmarshal(b, v) != nil {
		return corruptError(kind)
	}
	return nil
}

func corruptError(kind string) error { return fmt.Errorf("read %s: %w", kind, errCorrupt) }

// lockValue is a stored lock.
type lockValue struct {
	Version int `json:"v"`
	idem.Lock
	RetentionNs time.Duration `json:"retentionNs"`
	// The fencing token is the create revision of the key, or this one, or, if it is Fresh, the mod
	// revision of the put.
	OwnToken int64 `json:"token,omitempty"`
	Fresh    bool  `json:"fresh,omitempty"`
	// Takes, in a queue entry: it may be handed the lock as long as the event's record is at this
	// revision, 0 = absent.
	Takes *int64 `json:"takes,omitempty"`
}

// EncodeLock encodes a lock. It returns ErrTooLarge; any other error is a bug.
func EncodeLock(l *idem.Lock) ([]byte, error) {
	v := lockValue{Lock: *l}
	if l.Created != 0 && l.Token != l.Created {
		v.OwnToken = l.Token
	}
	return v.encode()
}

// EncodeFresh encodes a lock whose token is the revision at which it is put.
func EncodeFresh(l *idem.Lock) ([]byte, error) { return (&lockValue{Lock: *l, Fresh: true}).encode() }

func (v *lockValue) encode() ([]byte, error) {
	if v.Version = lockVersion; v.Parked != nil {
		v.Version = parkedVersion
	}
	if len(v.Slots) > 0 {
		v.Version = slotsVersion
	}
	v.RetentionNs = v.Retention
	v.StartedAt, v.CoolUntil = v.StartedAt.UTC(), v.CoolUntil.UTC()
	b, err := json.Marshal(v)
	switch {
	case err != nil:
		return nil, fmt.Errorf("encode lock: %w", err)
	case len(b) > MaxLockBytes:
		return nil, fmt.Errorf("encode lock of %d bytes: %w", len(b), ErrTooLarge)
	}
	return b, nil
}

// DecodeLock reads a lock's value; its revisions, and a token that is one of them, are with the
// key: see LockAt.
func DecodeLock(b []byte) (*idem.Lock, error) {
	v, err := decodeLock(b)
	if err != nil {
		return nil, err
	}
	return &v.Lock, nil
}

func decodeLock(b []byte) (*lockValue, error) {
	var v lockValue
	switch err := decodeJSON("a lock", b, slotsVersion, &v); {
	case err != nil:
		return nil, err
	case v.Execution == "":
		return nil, corruptError("a lock")
	}
	v.Retention = v.RetentionNs
	return &v, nil
}

// RecordOf returns the record of an execution that ended with e. A requested cancel is the reason
// of the end if the effect is not known to have happened; that it was for good stays true whatever
// became of the execution.
func RecordOf(l *idem.Lock, e idem.End) *idem.Record {
	r := &idem.Record{ExecutionFacts: l.ExecutionFacts, End: e}
	if l.Cancel != nil && e.Outcome != idem.Executed && (e.Abort == nil || !e.Abort.Forced) {
		r.Status, r.Abort, r.Error = idem.Aborted, l.Cancel, nil
	}
	if l.Parked != nil {
		setEndOfParked(r, l)
	}
	r.RequestKept = r.RequestKept && l.Parked != nil && r.Status == idem.Failed
	r.Final = l.Cancel != nil && l.Cancel.Final || r.Abort != nil && r.Abort.Final
	r.Steps = l.EndSteps(r.Status, r.FinishedAt)
	r.InheritAnswer()
	return r
}

// LockAt returns the lock in kv.
func LockAt(kv *mvccpb.KeyValue) (*idem.Lock, error) {
	v, err := decodeLock(kv.Value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kv.Key, err)
	}
	l := &v.Lock
	l.Created, l.Revision = kv.CreateRevision, kv.ModRevision
	switch {
	case v.Fresh:
		l.Token = kv.ModRevision
	case v.OwnToken != 0:
		l.Token = v.OwnToken
	default:
		l.Token = kv.CreateRevision
	}
	return l, nil
}
