package protocol

import (
	"encoding/json"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
)

// The values of the keys that prove the owner of a lock alive: a session's, or a hold's.

type sessionValue struct {
	Version int       `json:"v"`
	Holder  string    `json:"holder"`
	Since   time.Time `json:"since"`
	// Pauses is the revision up to which the process has acknowledged the pauses. nil: its release
	// knows no pauses.
	Pauses *int64 `json:"pauses,omitempty"`
}

// EncodeSession encodes a session, for operators and for processes that wait until its process has
// acknowledged a pause: heard is the revision up to which it has.
func EncodeSession(holder string, since time.Time, heard int64) string {
	return string(encodeJSON(sessionValue{othersVersion, holder, since.UTC(), &heard}))
}

// HeardOf returns the revision up to which the process of a session has acknowledged the pauses,
// and the process's name for operators. 0: it was sent none, as with older releases. A session
// knows all pauses that existed when it began, at its create revision.
func HeardOf(kv *mvccpb.KeyValue) (revision int64, holder string) {
	var v sessionValue
	_ = json.Unmarshal(kv.Value, &v)
	if v.Pauses == nil {
		return 0, v.Holder
	}
	return max(*v.Pauses, kv.CreateRevision), v.Holder
}

// holdValue is a stored hold. Until is for operators: etcd ends the hold when it ends the lease.
type holdValue struct {
	Version int       `json:"v"`
	Holder  string    `json:"holder"`
	Until   time.Time `json:"until"`
}

// EncodeHold encodes a hold: for operators its holder, and its end by its writer's clock.
func EncodeHold(holder string, until time.Time) []byte {
	return encodeJSON(holdValue{othersVersion, holder, until.UTC()})
}

// DecodeHold returns when a hold runs out; zero if its value does not say.
func DecodeHold(b []byte) (until time.Time, err error) {
	var v holdValue
	err = decodeJSON("a hold", b, othersVersion, &v)
	return v.Until, err
}
