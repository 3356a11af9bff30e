package idem

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ExecutionID names one attempt to run one delivery: "exec_" and 32 letters. It carries the hashes
// of its workflow and of its idempotency key, so that its keys in the ledger are found without a
// pointer. See NewExecutionID.
type ExecutionID string

// Key is an idempotency key: 16 hex digits of XXH64, "-", 32 hex digits of SHA-256. The second half
// is over route, workflow and event, and makes collisions impossible to forge. The first half is
// the short name in logs, picks the shard, and is over the event ID alone (HashEventID).
type Key string

// Short returns the first half: enough for a log line, not an identity.
func (k Key) Short() string {
	if len(k) < 16 {
		return string(k)
	}
	return string(k[:16])
}

// Fingerprint is half of the SHA-256 of method, host, path, query and raw body of a delivery. As
// text it is 32 hex digits.
type Fingerprint [sha256.Size / 2]byte

// Hex returns f as text; "" for a lock without a delivery.
func (f Fingerprint) Hex() string {
	if f == (Fingerprint{}) {
		return ""
	}
	return hex.EncodeToString(f[:])
}

// MarshalText implements encoding.TextMarshaler.
func (f Fingerprint) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, f[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It takes the whole hash, too, as locks of
// earlier releases have it.
func (f *Fingerprint) UnmarshalText(text []byte) error {
	if len(text) == 2*sha256.Size {
		text = text[:sha256.Size]
	}
	if len(text) != hex.EncodedLen(len(f)) {
		return fmt.Errorf("a fingerprint has %d hex digits, not %d", hex.EncodedLen(len(f)), len(text))
	}
	_, err := hex.Decode(f[:], text)
	return err
}

// Scope says what one lock covers.
type Scope struct {
	Workflow string `json:"workflow"` // what must not overlap: a customer, an order
	Key      Key    `json:"key"`      // the event in it
	// PerEvent is set by strategy none: the lock covers the event alone, not its workflow.
	PerEvent bool `json:"perEvent,omitempty"`
}

// OfLock returns the scope without the fields that do not tell locks apart.
func (s Scope) OfLock() Scope {
	if !s.PerEvent {
		s.Key = ""
	}
	return s
}

// ExecutionFacts are what the ledger stores of an execution, in its lock first, and then in its
// record. The tags of ExecutionFacts, Lock, End and Record are the stored names; every output of an
// execution uses them.
type ExecutionFacts struct {
	Execution ExecutionID `json:"executionId"` // never used for another execution
	Scope
	Holder      string      `json:"holder"`            // host/pid/session of the owner, for operators
	Route       string      `json:"route"`             // "" for a lock of the lock API
	EventID     string      `json:"eventId,omitempty"` // the sender's; "" = the payload is the event
	Labels      Labels      `json:"labels,omitempty"`  // what it is found by, beside its IDs
	Fingerprint Fingerprint `json:"fingerprint"`       // of the request, to tell whether a duplicate is another one
	// Parts tell a mismatching delivery what differs, in 27 bytes of each lock and record. Older
	// releases did not write them.
	Parts Parts `json:"parts,omitzero"`
	// Credentials is CredentialsDigest of the delivery that runs; empty when it came with none.
	Credentials string `json:"credentials,omitempty"`
	// CallbackHash is 80 bits of the SHA-256 of the execution's callback key, in hex.
	CallbackHash string    `json:"callbackHash,omitempty"`
	TraceParent  string    `json:"traceParent,omitempty"`
	Attempt      int       `json:"attempt"`           // 1 for the first execution of the key
	Earlier      []Attempt `json:"earlier,omitempty"` // the attempts before, oldest first, at most maxEarlier
	StartedAt    time.Time `json:"startedAt"`
	// nil = its route does not judge order, or the position is not known
	Order *Order `json:"order,omitempty"`
	// nil = when it took its lock, nothing newer had gone through, or the two cannot be compared
	Stale *Stale `json:"stale,omitempty"`
	// those that the upstream has begun, and in a record those that were skipped
	Steps []Step `json:"steps,omitempty"`

	// Slots are those of the limits that the execution counts against. It has them for as long as
	// its lock, but not while it is parked and rests; its record says which it had.
	Slots []Slot `json:"slots,omitempty"`

	// Lock and record store the next two in ways of their own: a lock's token is the revision that
	// its key was created at, and a record says when it expires.

	Token int64 `json:"-"` // the fencing token; 0 = it never had the lock
	// Retention is how long the record answers duplicates, from its end. The ledger ends it, up to
	// ExtraRetention later: clocks of processes differ.
	Retention time.Duration `json:"-"`
}

// Lock is a running execution as the ledger keeps it, in its workflow's lock.
type Lock struct {
	ExecutionFacts

	// Alive is the ledger's name for the key that proves the owner alive; opaque to idem.
	Alive string `json:"alive"`

	// The fields that another process needs to end this execution, besides the retention.
	MaxDuration time.Duration `json:"maxDurationNs,omitempty"` // 0 = none
	// 0 = the lock is free at once after an unknown outcome
	ReleaseDelay time.Duration `json:"releaseDelayNs,omitempty"`
	// ReplayBody is the policy's, for the process that completes a held execution; bytes.
	ReplayBody int `json:"replayBody,omitempty"`
	// ReplayFor is the policy's ReplayRetention, for the same process; 0 = the kept answer stays as
	// long as its record.
	ReplayFor time.Duration `json:"replayForNs,omitempty"`

	Cancel *Cancel `json:"cancel,omitempty"` // a cancel that was requested and not yet carried out

	Parked *Parked `json:"parked,omitempty"` // nil = its sender waits for the answer, or had it

	Latest *Series `json:"latest,omitempty"` // of a queue entry, under strategy latest; else nil

	// Question is asked if its outcome becomes unknown; nil = there is none.
	Question *Question `json:"question,omitempty"`

	Plan []string `json:"plan,omitempty"` // the steps that the upstream means to take, as last reported

	// Held says that the lock outlives the answer of its delivery, or never had one, and lives
	// until HoldUntil unless it is renewed.
	Held      bool          `json:"held,omitempty"`
	HoldTTL   time.Duration `json:"holdTtlNs,omitempty"` // what a renewal without a TTL means
	HoldUntil time.Time     `json:"-"`                   // as read with the hold; zero when it is not known
	// DeadlineLease is the ledger's name for the lease that ends when a held execution reaches
	// MaxDuration, by the ledger's own clock; opaque to idem. 0 = none.
	DeadlineLease int64 `json:"limitLease,omitempty"`

	// Cooling says that the execution has ended, outcome unknown, and the lock stays closed until
	// CoolUntil. Such a lock has no owner.
	Cooling   bool      `json:"cooling,omitempty"`
	CoolUntil time.Time `json:"coolUntil,omitzero"`

	MayPark  bool  `json:"-"` // of a queue entry: it may be parked, so the lock is not handed to it
	Created  int64 `json:"-"` // create revision of its key, which no other lock or entry shares
	Revision int64 `json:"-"` // mod revision
	// Dead says that the key that Alive names is gone, as far as this process knows. The
	// transaction that reaps the execution proves it.
	Dead bool `json:"-"`
}

// Series is the state of a queue entry under strategy latest: the events of the workflow that
// replaced each other there.
type Series struct {
	Since    time.Time `json:"since"`              // when the first of them came
	Replaced int       `json:"replaced,omitempty"` // how many did not run, because of the one that waits
	// NotBefore says that it does not run before then, because a newer one may come. The zero
	// value: it runs when the lock is free.
	NotBefore time.Time `json:"notBefore,omitzero"`

	// For the ledger: how long nothing newer must come before it runs, and how long all of them
	// wait at most. 0 = they do not wait for that.
	Quiet   time.Duration `json:"-"`
	MaxWait time.Duration `json:"-"`
}

// Slot is a unit of a limit: at most so many executions have one at a time, over all workflows,
// routes and replicas.
type Slot struct {
	// LimitName is the name with the delivery's values in it: tenant/acme. It is OwnLimit for the
	// limit of a workflow.
	LimitName string `json:"limit"`
	// Rule is the name in limits.shared: tenant/{path.account}. "" = the limit is the workflow's
	// own, and its route says how many slots there are.
	Rule  string `json:"rule,omitempty"`
	Index int    `json:"n"` // from 0; -1 = it has none yet
}

// OwnLimit returns the name of the limit of a workflow whose route has a lock.limit. No shared
// limit has such a name.
func OwnLimit(workflow string) string { return "workflow:" + workflow }

// OwnSlot returns the number of its slot in the limit of its workflow; -1 = there is no such limit.
func (e *ExecutionFacts) OwnSlot() int {
	for _, slot := range e.Slots {
		if slot.Rule == "" {
			return slot.Index
		}
	}
	return -1
}

// OwnLimit reports whether it counts against the limit of its workflow.
func (e *ExecutionFacts) OwnLimit() bool {
	return slices.ContainsFunc(e.Slots, func(s Slot) bool { return s.Rule == "" })
}

// HasSlot reports whether it has a slot of a limit. A parked execution has one only while it is
// tried.
func (e *ExecutionFacts) HasSlot() bool {
	for i := range e.Slots {
		if e.Slots[i].Index >= 0 {
			return true
		}
	}
	return false
}

// IsParked reports whether l is the lock of a parked execution. It is not reaped when its owner
// dies: another process takes it over.
func (l *Lock) IsParked() bool { return l.Parked != nil && !l.Cooling }

// expectedRemaining returns how long the lock is expected to stay as it is: for the rest of a hold
// or of a delay, unless it is renewed. The duration of a call is not known; the guess that needs no
// memory is that it takes as long again as it has taken, so a sender that follows Retry-After asks
// a few times, and not each second of a long call. At most 0: it may be over at any time, or the
// clock of the holder is ahead.
func (l *Lock) expectedRemaining(now time.Time) time.Duration {
	switch {
	case l.Cooling:
		return l.CoolUntil.Sub(now)
	case l.Held && !l.HoldUntil.IsZero():
		return l.HoldUntil.Sub(now)
	case l.StartedAt.IsZero():
		return 0
	}
	return now.Sub(l.StartedAt)
}

// ClosedLockText says why the lock of an execution that has ended is closed, and until when.
func ClosedLockText(id ExecutionID, until time.Time) string {
	return string(id) + " has ended with an unknown outcome, and its upstream may still be at work: the lock stays " +
		"closed until " +
		until.Add(time.Second-1).UTC().Format(time.RFC3339)
}

// Cancel is a request to stop an execution: who, why, when. By and Reason have at most MaxReason
// bytes each; longer ones are refused where they come in.
type Cancel struct {
	By     string    `json:"by"`               // the name of a token, "policy", or the upstream's text
	Reason string    `json:"reason,omitempty"` // for operators
	At     time.Time `json:"at"`               // when it was asked for
	Final  bool      `json:"final,omitempty"`  // the event never runs again
	Forced bool      `json:"forced,omitempty"` // the lock was taken away, by a force release
	// the execution is parked, and becomes a dead letter: its request is kept
	Skip bool `json:"skip,omitempty"`
	// Successor is the newer execution of its scope because of which the route's policy ended it;
	// "" = that is not why it ended.
	Successor ExecutionID `json:"successor,omitempty"`
	// Erase, of a forget: what shows the event goes, too. False: that it was forgotten stays known,
	// and how it arrived.
	Erase bool `json:"-"`
	// Only is the status in which the caller has seen the execution: in another one nothing is
	// done. "" = in any.
	Only Status `json:"-"`
}

// MaxReason bounds By and Reason of a Cancel; bytes.
const MaxReason = 1024

// maxEarlier bounds the earlier attempts that a record keeps; the oldest go first.
const maxEarlier = 16

// maxAttemptDetail bounds an error's detail, By and Reason in an Attempt, each; bytes. All attempts
// have to fit into a lock.
const maxAttemptDetail = 160

// Attempt is an ended execution in short.
type Attempt struct {
	Execution  ExecutionID `json:"executionId"` // the execution that it shortens
	Status     Status      `json:"status"`      // SUCCESS, FAILED or ABORTED
	Outcome    Outcome     `json:"outcome"`     // what is known of its effect
	StartedAt  time.Time   `json:"startedAt"`   // as the execution's
	FinishedAt time.Time   `json:"finishedAt"`  // as the execution's
	// Error is why it is FAILED; its detail says how far the exchange with the upstream went.
	Error *Failure `json:"error,omitempty"`
	Abort *Cancel  `json:"abort,omitempty"` // by whom and why it was ended, if it is ABORTED
	// AnswerStatus is the upstream's; 0 = no whole answer came.
	AnswerStatus int    `json:"answerStatus,omitempty"`
	TraceParent  string `json:"traceParent,omitempty"`
	Tries        int    `json:"tries,omitempty"` // of the upstream, where it was parked
	// FailedTries are those of its Tries that failed, or may have; earlier releases did not write
	// them.
	FailedTries int `json:"failedTries,omitempty"`
	// Settled says that it settled the event, or one before it did. What came after it was let run
	// by a person.
	Settled bool `json:"settled,omitempty"`
	// NextDiffers are the parts in which the request of the attempt after it differs; nil = none,
	// or they are not known.
	NextDiffers []string `json:"nextDiffers,omitempty"`
}

// End is how an execution ended.
type End struct {
	Status     Status    `json:"status"`          // SUCCESS, FAILED or ABORTED
	Outcome    Outcome   `json:"outcome"`         // what is known of its effect
	FinishedAt time.Time `json:"finishedAt"`      // by the clock of the process that ended it
	Error      *Failure  `json:"error,omitempty"` // FAILED only
	Abort      *Cancel   `json:"abort,omitempty"` // ABORTED only
	// Remembered says that the answer settles the event; duplicates get it. Otherwise the event may
	// run again.
	Remembered bool    `json:"kept,omitempty"`
	Answer     *Answer `json:"-"` // nil when no whole answer came; the ledger stores its body as it is
	// RequestKept says that it is a dead letter. Its request is kept as long as the record, and can
	// be run again. The ledger ignores it in an execution that was not parked, or has not failed.
	RequestKept bool `json:"requestKept,omitempty"`
	// Asked is what the service said when the outcome was unknown; nil = it was not asked.
	Asked *Asked `json:"asked,omitempty"`
	// ProvenAt is when this end was recorded late: another process found it in the file of the one
	// that ran it, which had died, or that one had stood still and corrected what another had
	// recorded meanwhile. Zero: it was recorded when it ended.
	ProvenAt time.Time `json:"provenAt,omitzero"`
	// Tried is the try of a parked execution that this ends with, if it is not written down yet;
	// nil: there is none.
	Tried *Evidence `json:"-"`
}

// Record is the ended execution of an event, and what its duplicates get.
type Record struct {
	ExecutionFacts
	End
	// Final says that the event was cancelled for good, whatever became of this execution. It never
	// runs again.
	Final bool `json:"final,omitempty"`
	// Tries counts the calls of the upstream of a parked execution; 0 = it was not parked.
	Tries int `json:"tries,omitempty"`
	// FailedTries are those of its Tries that failed, or may have; earlier releases did not write
	// them.
	FailedTries int `json:"failedTries,omitempty"`
	// ParkedOn is what it was parked for; "" = it was not parked, or an older release wrote the
	// record.
	ParkedOn ParkOn `json:"parkedOn,omitempty"`
	// Failed are the newest answers that said that a try of a parked execution failed, the newest
	// last.
	Failed []FailedAnswer `json:"failed,omitempty"`

	Revision int64 `json:"-"` // mod revision
	Size     int   `json:"-"` // bytes in the ledger, as this process wrote it; 0 = not known
}

// ExtraRetention returns how much longer than its retention a ledger may keep a record, because
// records share leases, and how long a process may trust one that it has read without reading
// again.
func ExtraRetention(retention time.Duration) time.Duration {
	return min(max(retention/16, 5*time.Second), 6*time.Hour)
}

// Superseded returns the newer execution because of which this one did not run; "" = that is not
// why it ended.
func (r *Record) Superseded() ExecutionID {
	if r.Abort == nil {
		return ""
	}
	return r.Abort.Successor
}

// Failure says why an execution is FAILED.
type Failure struct {
	Code   string `json:"code"`             // for programs, such as CodeUpstreamStatus
	Detail string `json:"detail,omitempty"` // for operators; "" = none
}

// Answer is the upstream's answer as far as it is kept for duplicates.
type Answer struct {
	Status int `json:"status"` // the HTTP status
	// Bytes is the length of the body as the first sender got it, kept or not.
	Bytes int64 `json:"bytes"`
	// Whole says that Header and Body are here. Otherwise duplicates get the status alone: the
	// answer was too long, or has left.
	Whole bool `json:"whole,omitempty"`
	// Apart says that Header and Body are in the ledger, apart from the record, and were not read;
	// see Ledger.ReadAnswer.
	Apart bool `json:"-"`
	// Left: they were stored apart, and have expired.
	Left bool `json:"-"`
	// Hash is half of the SHA-256 of the body, in hex, where that is apart or has left; else "".
	Hash string `json:"-"`

	Header []HeaderField `json:"-"` // this and the body are bytes, which JSON cannot spell
	Body   []byte        `json:"-"`
}

// HeaderField is one header line of an answer, spelled as the upstream spelled it.
type HeaderField struct {
	Name, Value string
}

// AsAttempt returns r as an Attempt.
func (r *Record) AsAttempt() Attempt {
	a := Attempt{
		Execution: r.Execution, Status: r.Status, Outcome: r.Outcome, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
		TraceParent: r.TraceParent, Tries: r.Tries, FailedTries: r.FailedTries,
		Settled: r.Settled(),
	}
	if r.Error != nil {
		a.Error = &Failure{Code: r.Error.Code, Detail: clipDetail(r.Error.Detail)}
	}
	if r.Abort != nil {
		by := *r.Abort
		by.By, by.Reason = clipDetail(by.By), clipDetail(by.Reason)
		a.Abort = &by
	}
	if r.Answer != nil && (r.Remembered || !r.SettledBefore()) {
		a.AnswerStatus = r.Answer.Status
	}
	return a
}

// clipDetail cuts text to what an Attempt stores, between two letters.
func clipDetail(text string) string {
	if len(text) <= maxAttemptDetail {
		return text
	}
	return strings.ToValidUTF8(text[:maxAttemptDetail], "")
}

// DropBody removes the body of the answer, which may keep the whole buffer that it was read into in
// memory.
func (r *Record) DropBody() {
	if r.Answer != nil {
		r.Answer.Body = nil
	}
}

// EarlierForNext returns the attempts before r and r in short, for the next attempt, whose request
// has these parts.
func (r *Record) EarlierForNext(next Parts) []Attempt {
	n, last := len(r.Earlier), r.AsAttempt()
	last.NextDiffers = r.Parts.Differ(next)
	return append(r.Earlier[max(0, n-maxEarlier+1):n:n], last)
}

// AttemptDroppedNext returns the attempt that e is the last to name, because the next one drops it;
// nil: the next one will name all that e does.
func (e *ExecutionFacts) AttemptDroppedNext() *Attempt {
	if len(e.Earlier) < maxEarlier {
		return nil
	}
	return &e.Earlier[0]
}

// Settled reports whether the event of r never runs again, unless a person lets it: duplicates get
// the kept answer. An attempt that a person lets run does not change that, whatever becomes of it.
func (r *Record) Settled() bool { return r.Remembered && r.Outcome == Executed || r.SettledBefore() }

// SettledBefore reports whether an attempt before e has settled the event, so that a person has let
// this one run.
func (e *ExecutionFacts) SettledBefore() bool {
	return len(e.Earlier) > 0 && e.Earlier[len(e.Earlier)-1].Settled
}

// InheritAnswer sets what duplicates get if an attempt before r has settled the event and r has
// not: the status of that attempt alone.
func (r *Record) InheritAnswer() {
	if r.Remembered || !r.SettledBefore() {
		return
	}
	r.Answer = &Answer{Status: 200} // of attempts that are too old to be in Earlier
	for i := range r.Earlier {
		if a := &r.Earlier[i]; a.Settled && a.AnswerStatus != 0 {
			r.Answer.Status = a.AnswerStatus
		}
	}
}
