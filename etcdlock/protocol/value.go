package protocol

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

// Every value is one line of JSON with its version first, so that etcdctl shows it; a record's answer body follows raw after
// the line break. A reader knows its own version and the ones below; fields may be added without a new one.
const (
	lockVersion    = 1
	recordVersion  = 1
	sessionVersion = 1
)

const (
	// maxLockBytes bounds a lock's value: a hundred of them fit into one request.
	MaxLockBytes = 64 << 10
	// maxRecordBytes bounds a record: etcd refuses requests above 1.5 MiB, and they travel in company.
	MaxRecordBytes = 600 << 10
	// maxWorkflowBytes bounds a lock's key; it is escaped, so up to three times as long in etcd.
	MaxWorkflowBytes = 4 << 10
)

var (
	ErrTooLarge = errors.New("value too large for the store")
	errCorrupt  = errors.New("not a value of Hooklock: somebody else writes below the prefix, see etcd.prefix")
)

// NewerError: a neighbour of a newer release wrote a value that this one cannot read.
type NewerError struct {
	kind         string
	version, max int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has version %d and this release reads up to %d: finish the upgrade of all replicas", e.kind, e.version, e.max)
}

type lockValue struct {
	Version      int              `json:"v"`
	Execution    idem.ExecutionID `json:"executionId"`
	Workflow     string           `json:"workflow"`
	Key          idem.Key         `json:"key"`
	PerEvent     bool             `json:"perEvent,omitempty"`
	Alive        string           `json:"alive"`
	Holder       string           `json:"holder"`
	Route        string           `json:"route"`
	EventID      string           `json:"eventId,omitempty"`
	Fingerprint  string           `json:"fingerprint"`
	Credentials  string           `json:"credentials,omitempty"`
	CallbackHash string           `json:"callbackHash,omitempty"`
	TraceParent  string           `json:"traceParent,omitempty"`
	Attempt      int              `json:"attempt"`
	Earlier      []idem.Attempt   `json:"earlier,omitempty"`
	StartedAt    time.Time        `json:"startedAt"`
	MaxDuration  time.Duration    `json:"maxDurationNs,omitempty"`
	ReleaseDelay time.Duration    `json:"releaseDelayNs,omitempty"`
	Retention    time.Duration    `json:"retentionNs"`
	ReplayBody   int              `json:"replayBody,omitempty"`
	Plan         []string         `json:"plan,omitempty"`
	Steps        []idem.Step      `json:"steps,omitempty"`
	Held         bool             `json:"held,omitempty"`
	HoldTTL      time.Duration    `json:"holdTtlNs,omitempty"`
	Limit        int64            `json:"limitLease,omitempty"`
	Cancel       *idem.Cancel     `json:"cancel,omitempty"`
	Cooling      bool             `json:"cooling,omitempty"`
	CoolUntil    *time.Time       `json:"coolUntil,omitempty"`
}

func EncodeLock(l *idem.Lock) ([]byte, error) {
	v := lockValue{
		Version: lockVersion, Execution: l.Execution, Workflow: l.Scope.Workflow, Key: l.Scope.Key, PerEvent: l.Scope.PerEvent,
		Alive: l.Alive, Holder: l.Holder, Route: l.Route, EventID: l.EventID, Fingerprint: hex.EncodeToString(l.Fingerprint[:]),
		Credentials: l.Credentials, CallbackHash: l.CallbackHash, TraceParent: l.TraceParent, Attempt: l.Attempt, Earlier: l.Earlier,
		StartedAt: l.StartedAt.UTC(), MaxDuration: l.MaxDuration, ReleaseDelay: l.ReleaseDelay, Retention: l.Retention,
		ReplayBody: l.ReplayBody, Plan: l.Plan, Steps: l.Steps, Held: l.Held, HoldTTL: l.HoldTTL, Limit: l.Limit, Cancel: l.Cancel, Cooling: l.Cooling,
	}
	if l.Cooling {
		until := l.CoolUntil.UTC()
		v.CoolUntil = &until
	}
	b, err := json.Marshal(&v)
	switch {
	case err != nil:
		return nil, fmt.Errorf("encode lock: %w", err)
	case len(b) > MaxLockBytes:
		return nil, fmt.Errorf("encode lock of %d bytes: %w", len(b), ErrTooLarge)
	}
	return b, nil
}

// DecodeLock reads a lock's value; the revisions are the caller's to add.
func DecodeLock(b []byte) (*idem.Lock, error) {
	if err := checkVersion("a lock", b, lockVersion); err != nil {
		return nil, err
	}
	var v lockValue
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("read lock: %w", errCorrupt)
	}
	l := &idem.Lock{
		Execution: v.Execution, Scope: idem.Scope{Workflow: v.Workflow, Key: v.Key, PerEvent: v.PerEvent}, Alive: v.Alive, Holder: v.Holder,
		Route: v.Route, EventID: v.EventID, Credentials: v.Credentials, CallbackHash: v.CallbackHash, TraceParent: v.TraceParent,
		Attempt: v.Attempt, Earlier: v.Earlier, StartedAt: v.StartedAt, MaxDuration: v.MaxDuration, ReleaseDelay: v.ReleaseDelay,
		Retention: v.Retention, ReplayBody: v.ReplayBody, Plan: v.Plan, Steps: v.Steps, Held: v.Held, HoldTTL: v.HoldTTL, Limit: v.Limit,
		Cancel: v.Cancel, Cooling: v.Cooling,
	}
	if v.CoolUntil != nil {
		l.CoolUntil = *v.CoolUntil
	}
	if err := decodeFingerprint(&l.Fingerprint, v.Fingerprint); err != nil {
		return nil, fmt.Errorf("read lock: %w", err)
	}
	return l, nil
}

type answerValue struct {
	Status int           `json:"status"`
	Bytes  int64         `json:"bytes"`
	Whole  bool          `json:"whole,omitempty"`
	Header []headerValue `json:"header,omitempty"`
}

// headerValue is a header line of an answer. JSON cannot spell a value that is not UTF-8: its bytes are in Raw, and Value is what an
// older release makes of them.
type headerValue struct {
	Name, Value string
	Raw         []byte `json:",omitempty"`
}

func headerValues(fields []idem.HeaderField) []headerValue {
	var values []headerValue
	for _, f := range fields {
		v := headerValue{Name: f.Name, Value: f.Value}
		if !utf8.ValidString(f.Value) {
			v.Raw = []byte(f.Value)
		}
		values = append(values, v)
	}
	return values
}

func headerFields(values []headerValue) []idem.HeaderField {
	var fields []idem.HeaderField
	for _, v := range values {
		f := idem.HeaderField{Name: v.Name, Value: v.Value}
		if v.Raw != nil {
			f.Value = string(v.Raw)
		}
		fields = append(fields, f)
	}
	return fields
}

type recordValue struct {
	Version      int              `json:"v"`
	Execution    idem.ExecutionID `json:"executionId"`
	Status       idem.Status      `json:"status"`
	Outcome      idem.Outcome     `json:"outcome"`
	Workflow     string           `json:"workflow"`
	Key          idem.Key         `json:"key"`
	PerEvent     bool             `json:"perEvent,omitempty"`
	Route        string           `json:"route"`
	EventID      string           `json:"eventId,omitempty"`
	Fingerprint  string           `json:"fingerprint"`
	Credentials  string           `json:"credentials,omitempty"`
	CallbackHash string           `json:"callbackHash,omitempty"`
	TraceParent  string           `json:"traceParent,omitempty"`
	Holder       string           `json:"holder"`
	Token        int64            `json:"token"`
	Attempt      int              `json:"attempt"`
	Earlier      []idem.Attempt   `json:"earlier,omitempty"`
	StartedAt    time.Time        `json:"startedAt"`
	FinishedAt   time.Time        `json:"finishedAt"`
	ExpiresAt    time.Time        `json:"expiresAt"` // by the writer's clock: for people, and as the retention behind FinishedAt
	Error        *idem.Failure    `json:"error,omitempty"`
	Abort        *idem.Cancel     `json:"abort,omitempty"`
	Final        bool             `json:"final,omitempty"`
	Steps        []idem.Step      `json:"steps,omitempty"`
	Kept         bool             `json:"kept,omitempty"`
	Answer       *answerValue     `json:"answer,omitempty"`
	// Writer is the Store that wrote it: after a lost answer it recognises its own record.
	Writer string `json:"writer,omitempty"`
}

// EncodeRecord writes r, without the answer's head and body where it would be too large: then r.Answer says so, too.
func EncodeRecord(r *idem.Record, writer string) ([]byte, error) {
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	v := recordValue{
		Version: recordVersion, Execution: r.Execution, Status: r.Status, Outcome: r.Outcome, Workflow: r.Scope.Workflow, Key: r.Scope.Key,
		PerEvent: r.Scope.PerEvent, Route: r.Route, EventID: r.EventID, Fingerprint: hex.EncodeToString(r.Fingerprint[:]),
		Credentials: r.Credentials, CallbackHash: r.CallbackHash, TraceParent: r.TraceParent, Holder: r.Holder, Token: r.Token,
		Attempt: r.Attempt, Earlier: r.Earlier, StartedAt: r.StartedAt.UTC(), FinishedAt: r.FinishedAt.UTC(), ExpiresAt: r.FinishedAt.Add(r.Retention).UTC(),
		Error: r.Error, Abort: r.Abort, Final: r.Final, Steps: r.Steps, Kept: r.Kept, Writer: writer,
	}
	if r.Answer == nil {
		return marshalRecord(&v, nil)
	}
	v.Answer = &answerValue{Status: r.Answer.Status, Bytes: r.Answer.Bytes, Whole: r.Answer.Whole, Header: headerValues(r.Answer.Header)}
	if len(r.Answer.Body) <= MaxRecordBytes {
		b, err := marshalRecord(&v, r.Answer.Body)
		if !errors.Is(err, ErrTooLarge) {
			return b, err
		}
	}
	r.Answer = &idem.Answer{Status: r.Answer.Status, Bytes: r.Answer.Bytes}
	v.Answer = &answerValue{Status: r.Answer.Status, Bytes: r.Answer.Bytes}
	return marshalRecord(&v, nil)
}

func marshalRecord(v *recordValue, body []byte) ([]byte, error) {
	line, err := json.Marshal(v)
	switch {
	case err != nil:
		return nil, fmt.Errorf("encode record: %w", err)
	case len(line)+1+len(body) > MaxRecordBytes:
		return nil, fmt.Errorf("encode record of %d bytes: %w", len(line)+1+len(body), ErrTooLarge)
	}
	return append(append(line, '\n'), body...), nil
}

// DecodeRecord reads a record and who wrote it. The record's body aliases b; its revision is the caller's to add.
func DecodeRecord(b []byte) (*idem.Record, string, error) {
	if err := checkVersion("a record", b, recordVersion); err != nil {
		return nil, "", err
	}
	line, body, ok := bytes.Cut(b, []byte{'\n'})
	var v recordValue
	if err := json.Unmarshal(line, &v); err != nil || !ok {
		return nil, "", fmt.Errorf("read record: %w", errCorrupt)
	}
	r := &idem.Record{
		Execution: v.Execution, Scope: idem.Scope{Workflow: v.Workflow, Key: v.Key, PerEvent: v.PerEvent}, Route: v.Route, EventID: v.EventID,
		Credentials: v.Credentials, CallbackHash: v.CallbackHash, TraceParent: v.TraceParent, Holder: v.Holder, Token: v.Token,
		Attempt: v.Attempt, Earlier: v.Earlier, Status: v.Status, Outcome: v.Outcome, StartedAt: v.StartedAt, FinishedAt: v.FinishedAt,
		Retention: v.ExpiresAt.Sub(v.FinishedAt), Error: v.Error, Abort: v.Abort, Steps: v.Steps, Kept: v.Kept,
		Final: v.Final || v.Abort != nil && v.Abort.Final, // an older release said it in the abort alone
	}
	if a := v.Answer; a != nil {
		r.Answer = &idem.Answer{Status: a.Status, Bytes: a.Bytes, Whole: a.Whole, Header: headerFields(a.Header)}
		if len(body) > 0 {
			r.Answer.Body = body
		}
	}
	if err := decodeFingerprint(&r.Fingerprint, v.Fingerprint); err != nil {
		return nil, "", fmt.Errorf("read record: %w", err)
	}
	return r, v.Writer, nil
}

type sessionValue struct {
	Version int       `json:"v"`
	Holder  string    `json:"holder"`
	Since   time.Time `json:"since"`
}

func EncodeSession(holder string, since time.Time) string {
	b, _ := json.Marshal(sessionValue{sessionVersion, holder, since.UTC()}) // strings, numbers and times always encode
	return string(b)
}

// checkVersion comes before everything else: a newer release may have changed any other field.
func checkVersion(kind string, b []byte, known int) error { //nolint:unparam // each kind has a version of its own
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

func decodeFingerprint(to *idem.Fingerprint, text string) error {
	if len(text) != hex.EncodedLen(len(to)) {
		return errCorrupt
	}
	if _, err := hex.Decode(to[:], []byte(text)); err != nil {
		return errCorrupt
	}
	return nil
}

// RecordOf is the record of an execution that ended with e. A cancel that was asked is why an execution ended whose effect is not
// known to have happened; that it was for good stays true whatever became of the execution.
func RecordOf(l *idem.Lock, e idem.End) *idem.Record {
	r := &idem.Record{
		Execution: l.Execution, Scope: l.Scope, Route: l.Route, EventID: l.EventID, Fingerprint: l.Fingerprint, Credentials: l.Credentials,
		CallbackHash: l.CallbackHash, TraceParent: l.TraceParent, Holder: l.Holder, Token: l.Token, Attempt: l.Attempt, Earlier: l.Earlier,
		Status: e.Status, Outcome: e.Outcome, StartedAt: l.StartedAt, FinishedAt: e.FinishedAt, Retention: l.Retention,
		Error: e.Error, Abort: e.Abort, Kept: e.Kept, Answer: e.Answer,
	}
	if l.Cancel != nil && e.Outcome != idem.Executed && (e.Abort == nil || !e.Abort.Forced) {
		r.Status, r.Abort, r.Error = idem.Aborted, l.Cancel, nil
	}
	r.Final = l.Cancel != nil && l.Cancel.Final || r.Abort != nil && r.Abort.Final
	r.Steps = l.EndSteps(r.Status, r.FinishedAt)
	return r
}

// LockAt is the lock in kv.
func LockAt(kv *mvccpb.KeyValue) (*idem.Lock, error) {
	l, err := DecodeLock(kv.Value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kv.Key, err)
	}
	l.Token, l.Revision = kv.CreateRevision, kv.ModRevision
	return l, nil
}
