package session

import (
	"maps"
	"strings"
	"sync"

	"hooklock/etcdlock/protocol"
)

// Set is the set of sessions that exist, as far as this process knows. It may be late in both
// directions: the owner of a lock that is missing here is probably dead, and the transaction that
// ends its execution proves it. It is safe for concurrent use.
type Set struct {
	mu       sync.Mutex
	names    map[string]struct{}
	revision int64 // up to which the set is complete
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{names: map[string]struct{}{}} }

// Replace takes a complete list as of revision. It returns the sessions that have gone since the
// last one.
func (l *Set) Replace(names map[string]struct{}, revision int64) (gone []string) {
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

// Add adds a session that a watch has reported. An older watch may still report after a newer list
// was read; what is not in that list is gone.
func (l *Set) Add(name string, revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if revision < l.revision {
		return
	}
	l.names[name], l.revision = struct{}{}, revision
}

// Remove removes a session that has gone at revision.
func (l *Set) Remove(name string, revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.names, name)
	l.revision = max(l.revision, revision)
}

// AddFound adds a session whose key was read at revision, unless the watch is further than that.
// Names are not used again, so a session that has gone does not come back.
func (l *Set) AddFound(name string, revision int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if revision > l.revision {
		l.names[name] = struct{}{}
	}
}

// Has reports whether the session behind an alive key exists.
func (l *Set) Has(alive string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, there := l.names[strings.TrimPrefix(alive, protocol.KindSessions)]
	return there
}
