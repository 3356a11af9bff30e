package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

const pauseVersion = 1

type pauseValue struct {
	Version int `json:"v"`
	idem.Pause
}

// Pause returns the key of the pause of that scope: pauses/route/<name>, or pauses/workflow/<pattern>.
func (y Layout) Pause(s idem.PauseScope) string {
	kind, what, _ := strings.Cut(s.String(), ":")
	return y.All(KindPauses) + kind + "/" + url.PathEscape(what)
}

// EncodePause encodes a pause.
func EncodePause(p *idem.Pause) ([]byte, error) {
	q := *p
	q.Since = q.Since.UTC()
	b, err := json.Marshal(pauseValue{pauseVersion, q})
	if err == nil && len(b) > maxPause {
		err = fmt.Errorf("a pause of %d bytes: %w", len(b), ErrTooLarge)
	}
	return b, err
}

// maxPause bounds a pause, in bytes.
const maxPause = 16 << 10

var errPauseKey = errors.New("no key of a pause")

// PauseAt reads a pause and its key. One of a newer release is a pause all the same, of which nothing else is known: a paused workflow must not
// run because another replica was updated first.
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
	if checkVersion("a pause", kv.Value, pauseVersion) == nil {
		_ = json.Unmarshal(kv.Value, &v) // a value that cannot be read adds nothing
	}
	v.Scope, v.Revision = scope, kv.ModRevision
	return &v.Pause, nil
}

// HeardOf returns the revision up to which the process of a session has acknowledged the pauses, and the process's name for operators. 0: it
// was sent none, as with older releases. A session knows all pauses that existed when it began, at its create revision.
func HeardOf(kv *mvccpb.KeyValue) (revision int64, holder string) {
	var v sessionValue
	_ = json.Unmarshal(kv.Value, &v)
	if v.Pauses == nil {
		return 0, v.Holder
	}
	return max(*v.Pauses, kv.CreateRevision), v.Holder
}
