package etcdlock

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"hooklock/idem"
)

// layout makes and reads the keys below one prefix. Their shape is a promise to people with etcdctl and to neighbouring
// releases: a change needs a new version.
type layout struct{ root string } // "<prefix>/v1/"

const layoutVersion = "v1"

func newLayout(prefix string) layout {
	return layout{strings.TrimRight(prefix, "/") + "/" + layoutVersion + "/"}
}

// The kinds of keys.
const (
	kindSessions = "sessions/"
	kindQueue    = "queue/"
	kindLocks    = "locks/"
	kindHolds    = "holds/"
	kindRecords  = "keys/"
	kindForgets  = "forgets/"
)

func (y layout) sessions() string { return y.root + kindSessions }
func (y layout) locks() string    { return y.root + kindLocks }
func (y layout) forgets() string  { return y.root + kindForgets }

func (y layout) session(name string) string { return y.root + sessionAlive(name) }

// alive is the key that a lock names as the proof that its owner lives.
func (y layout) alive(name string) string { return y.root + name }

func sessionAlive(name string) string      { return kindSessions + name }
func holdAlive(id idem.ExecutionID) string { return kindHolds + string(id) }
func isHold(alive string) bool             { return strings.HasPrefix(alive, kindHolds) }
func hash16(workflow string) string        { return hex16(xxhash.Sum64String(workflow)) }
func (y layout) record(s idem.Scope) string {
	return y.root + kindRecords + hash16(s.Workflow) + "/" + string(s.Key)
}
func (y layout) queued(s idem.Scope) string { return y.queue(s) + string(s.Key) }

// lock is the lock that s takes: the workflow's, or under strategy none the event's own.
func (y layout) lock(s idem.Scope) string {
	key := y.locks() + hash16(s.Workflow) + "/" + url.PathEscape(s.Workflow)
	if s.PerEvent {
		key += "/" + string(s.Key)
	}
	return key
}

// queue is the prefix of everybody who waits for the lock of s. Nobody waits under strategy none: its prefix stays empty.
func (y layout) queue(s idem.Scope) string {
	prefix := y.root + kindQueue + hash16(s.Workflow) + "/" + url.PathEscape(s.Workflow) + "/"
	if s.PerEvent {
		prefix += string(s.Key) + "/"
	}
	return prefix
}

var errForeignKey = errors.New("not a key of this layout")

// parseLock is the scope of a lock's key. Where it is a workflow's lock, the event's key stands in the value alone.
func (y layout) parseLock(key string) (idem.Scope, error) { return y.parseScoped(y.locks(), key) }

// parseQueued is the scope of a place in the queue.
func (y layout) parseQueued(key string) (idem.Scope, error) {
	s, err := y.parseScoped(y.root+kindQueue, key)
	if err != nil || s.Key == "" {
		return idem.Scope{}, errForeignKey
	}
	s.PerEvent = false // who waits, waits for a workflow
	return s, nil
}

func (y layout) parseScoped(prefix, key string) (idem.Scope, error) {
	rest, ok := strings.CutPrefix(key, prefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) < 2 || len(parts) > 3 {
		return idem.Scope{}, errForeignKey
	}
	workflow, err := url.PathUnescape(parts[1])
	if err != nil || url.PathEscape(workflow) != parts[1] || hash16(workflow) != parts[0] {
		return idem.Scope{}, errForeignKey
	}
	s := idem.Scope{Workflow: workflow}
	if len(parts) == 3 {
		if parts[2] == "" {
			return idem.Scope{}, errForeignKey
		}
		s.Key, s.PerEvent = idem.Key(parts[2]), true
	}
	return s, nil
}

func hex16(n uint64) string {
	s := strconv.FormatUint(n, 16)
	return strings.Repeat("0", 16-len(s)) + s
}
