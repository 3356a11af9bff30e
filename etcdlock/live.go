package etcdlock

import (
	"maps"
	"strings"
	"sync"

	"hooklock/etcdlock/protocol"
)

// live is the set of sessions that exist, as this process has heard. It may be late in both directions: a lock whose owner is
// missing here is probably dead, and the burying transaction proves it.
type live struct {
	mu       sync.Mutex
	names    map[string]struct{}
	revision int64 // up to which the watch has told us everything
}

func newLive() *live { return &live{names: map[string]struct{}{}} }

// replace is after a fresh list. It returns the sessions that have gone since.
func (l *live) replace(names map[string]struct{}, revision int64) (gone []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.names {
		if _, there := names[name]; !there {
			gone = append(gone, name)
		}
	}
	l.names, l.revision = maps.Clone(names), revision
	return gone
}

// appeared is told by a watch. That of the session before may still be telling when a newer list has been read, and who is not in that is gone.
func (l *live) appeared(name string, revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if revision < l.revision {
		return
	}
	l.names[name], l.revision = struct{}{}, revision
}

func (l *live) disappeared(name string, revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, name)
	l.revision = max(l.revision, revision)
}

// met says that the session's key was there at revision. The watch may not have told of it yet; where it is further than that,
// it knows better. Names are not used again, so a session that has gone does not come back through this.
func (l *live) met(name string, revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if revision > l.revision {
		l.names[name] = struct{}{}
	}
}

// has reports whether the session behind an alive key exists.
func (l *live) has(alive string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, there := l.names[strings.TrimPrefix(alive, protocol.KindSessions)]
	return there
}
