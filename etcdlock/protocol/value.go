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

// Every value but a record is one line of JSON with its version first, so that etcdctl shows it. A reader knows its own version and the ones below; fields may be added without a new one.
const (
	lockVersion    = 1
	parkedVersion  = 2 // of a lock: a release that knows nothing of parked executions would bury it
	slotsVersion   = 3 // of a lock: a release that knows nothing of slots would free it and not them
	sessionVersion = 1
)

const (
	// MaxLockBytes bounds a lock's value: a hundred of them fit into one request.
	MaxLockBytes = 64 << 10
	// MaxRecordBytes bounds a record: etcd refuses requests above 1.5 MiB, and they travel in company.
	MaxRecordBytes = 600 << 10
	// MaxWorkflowBytes bounds a lock's key; it is escaped, so up to three times as long in etcd.
	MaxWorkflowBytes = 4 << 10
)

var (
	// ErrTooLarge says that a value does not fit: the record keeps less of its answer then.
	ErrTooLarge = errors.New("value too large for the store")
	// ErrOlder says that a value has a form which this release does not read.
	ErrOlder   = errors.New("it has the form of an earlier release, which this one does not read: give etcd.prefix another value, or delete what is below it")
	errCorrupt = errors.New("not a value of Hooklock: another program writes below etcd.prefix; give each its own prefix")
)

// NewerError says that a neighbour of a newer release wrote a value that this one cannot read.
type NewerError struct {
	kind         string
	version, max int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has version %d and this release reads up to %d: finish the upgrade of all replicas", e.kind, e.version, e.max)
}

// lockValue is a lock as it is stored.
type lockValue struct {
	Version int `json:"v"`
	idem.Lock
	RetentionNs time.Duration `json:"retentionNs"`
	// The fencing token is the create revision of the key, or this one, or, where it is Fresh, the mod revision of the put.
	OwnToken int64 `json:"token,omitempty"`
	Fresh    bool  `json:"fresh,omitempty"`
	// Takes, in a place: whoever waits there may be handed the lock, as long as the event's record is at this revision, 0 = absent.
	Takes *int64 `json:"takes,omitempty"`
}

// EncodeLock is a lock as it is stored. The error is ErrTooLarge, or a bug.
func EncodeLock(l *idem.Lock) ([]byte, error) {
	v := lockValue{Lock: *l}
	if l.Created != 0 && l.Token != l.Created {
		v.OwnToken = l.Token
	}
	return v.encode()
}

// EncodeFresh is a lock whose token is the revision at which it is put.
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
	b, err := v.spell()
	switch {
	case err != nil:
		return nil, fmt.Errorf("encode lock: %w", err)
	case len(b) > MaxLockBytes:
		return nil, fmt.Errorf("encode lock of %d bytes: %w", len(b), ErrTooLarge)
	}
	return b, nil
}

// DecodeLock reads a lock's value; its revisions, and a token that is one of them, are with the key: see LockAt.
func DecodeLock(b []byte) (*idem.Lock, error) {
	v, err := decodeLock(b)
	if err != nil {
		return nil, err
	}
	return &v.Lock, nil
}

func decodeLock(b []byte) (*lockValue, error) {
	if err := checkVersion("a lock", b, slotsVersion); err != nil {
		return nil, err
	}
	var v lockValue
	if err := json.Unmarshal(b, &v); err != nil || v.Execution == "" {
		return nil, fmt.Errorf("read lock: %w", errCorrupt)
	}
	v.Retention = v.RetentionNs
	return &v, nil
}

type sessionValue struct {
	Version int       `json:"v"`
	Holder  string    `json:"holder"`
	Since   time.Time `json:"since"`
	// Pauses is the revision up to which the process has acknowledged the pauses. nil: it is of a release that knows none.
	Pauses *int64 `json:"pauses,omitempty"`
}

// EncodeSession is a session as it is stored, for people, and for who waits until its process has heard of a pause: heard is the revision up to
// which it has.
func EncodeSession(holder string, since time.Time, heard int64) string {
	b, _ := json.Marshal(sessionValue{sessionVersion, holder, since.UTC(), &heard}) // strings, numbers and times always encode
	return string(b)
}

// checkVersion comes before everything else: a newer release may have changed any other field.
func checkVersion(kind string, b []byte, known int) error {
	line, _, _ := bytes.Cut(b, []byte{'\n'})
	var v struct {
		Version int `json:"v"`
	}
	switch err := json.Unmarshal(line, &v); {
	case err != nil || v.Version < 1:
		return fmt.Errorf("read %s: %w", kind, errCorrupt)
	case v.Version > known:
		return &NewerError{kind, v.Version, known}
	}
	return nil
}

// RecordOf is the record of an execution that ended with e. A cancel that was asked is why an execution ended whose effect is not
// known to have happened; that it was for good stays true whatever became of the execution.
func RecordOf(l *idem.Lock, e idem.End) *idem.Record {
	r := &idem.Record{Entry: l.Entry, End: e}
	if l.Cancel != nil && e.Outcome != idem.Executed && (e.Abort == nil || !e.Abort.Forced) {
		r.Status, r.Abort, r.Error = idem.Aborted, l.Cancel, nil
	}
	if l.Parked != nil {
		endParked(r, l)
	}
	r.Final = l.Cancel != nil && l.Cancel.Final || r.Abort != nil && r.Abort.Final
	r.Steps = l.EndSteps(r.Status, r.FinishedAt)
	return r
}

// LockAt is the lock in kv.
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
