package etcdlock

import (
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
	kindCancels  = "cancels/"
	kindForgets  = "forgets/"
	kindCounts   = "duplicates/"
)

func (y layout) sessions() string                  { return y.root + kindSessions }
func (y layout) locks() string                     { return y.root + kindLocks }
func (y layout) queues() string                    { return y.root + kindQueue }
func (y layout) records() string                   { return y.root + kindRecords }
func (y layout) counts(id idem.ExecutionID) string { return y.root + kindCounts + string(id) + "/" }
func (y layout) forgets() string                   { return y.root + kindForgets }

// forget tells every process to drop what it remembers of an execution's record.
func (y layout) forget(id idem.ExecutionID) string { return y.forgets() + string(id) }

// cancels is the prefix of what the process of that session has to look at.
func (y layout) cancels(session string) string { return y.root + kindCancels + session + "/" }

// cancel is "" where no process runs what lives on alive.
func (y layout) cancel(alive string, id idem.ExecutionID) string {
	session, is := strings.CutPrefix(alive, kindSessions)
	if !is {
		return ""
	}
	return y.cancels(session) + string(id)
}

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

// queued is the event's place in the queue of its workflow, whatever the strategy of who asks.
func (y layout) queued(s idem.Scope) string {
	return y.root + kindQueue + hash16(s.Workflow) + "/" + url.PathEscape(s.Workflow) + "/" + string(s.Key)
}

// lock is the lock that s takes: the workflow's, or under strategy none the event's own.
func (y layout) lock(s idem.Scope) string {
	key := y.locks() + hash16(s.Workflow) + "/" + url.PathEscape(s.Workflow)
	if s.PerEvent {
		key += "/" + string(s.Key)
	}
	return key
}

// other is the lock that a copy of the event takes at a replica whose route has strategy none where this one's has not, or the other way.
func (y layout) other(s idem.Scope) string {
	s.PerEvent = !s.PerEvent
	return y.lock(s)
}

// queue is the prefix of everybody who comes before s. Under strategy none that is a copy of the event alone, and there is no queue: it waits
// at a replica with another strategy.
func (y layout) queue(s idem.Scope) string {
	if !s.PerEvent {
		s.Key = ""
	}
	return y.queued(s)
}

func hex16(n uint64) string {
	s := strconv.FormatUint(n, 16)
	return strings.Repeat("0", 16-len(s)) + s
}
