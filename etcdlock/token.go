package etcdlock

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// With a user name, each request shows a token. etcd forgets one that was not used for five minutes, and all of them when it
// restarts or its users change. The client has fetched a new one by the time that it reports this, but does not repeat the request:
// it was told to make one attempt.

// staleToken reports whether a request was refused for its token, so that the next attempt may pass. Nothing of it was applied.
func staleToken(err error) bool {
	return says(err, rpctypes.ErrInvalidAuthToken) || says(err, rpctypes.ErrAuthOldRevision) || says(err, rpctypes.ErrUserEmpty)
}

// turnedAway reports whether etcd answers and wants somebody else. Another member says the same, each attempt may cost etcd a password hash,
// and only a person can change it: so there is no hurry to ask again.
func turnedAway(err error) bool {
	return staleToken(err) || says(err, rpctypes.ErrAuthFailed) || says(err, rpctypes.ErrPermissionDenied)
}

// watcher is where waits at this member watch. Watches share a stream, and a stream shows the token that it was opened with for as
// long as it lives: when that has run out, new watches on it are refused for ever. So with a user name waits have a watcher of their
// own, which refresh replaces.
func (m *member) watcher(c *clientv3.Client) clientv3.Watcher {
	if c.Username == "" {
		return c
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waits == nil {
		m.waits = clientv3.NewWatcher(c)
	}
	return m.waits
}

// refresh ends the watcher old, if it is still the one in use: the next one opens a stream with a new token. Those who watch on the
// old one read again, as after any watch that breaks.
func (m *member) refresh(old clientv3.Watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waits != nil && m.waits == old {
		_ = m.waits.Close() // its stream was refused
		m.waits = nil
	}
}

// brokenPause is between two reads of who waits while its watches are refused.
const brokenPause = 100 * time.Millisecond

// afterWatch is after a watch ended with err, nil for news. A watch that is refused is refused at once, and so would be the next one.
func (m *member) afterWatch(ctx context.Context, w clientv3.Watcher, err error) {
	if err == nil || errors.Is(err, rpctypes.ErrCompacted) {
		return
	}
	if staleToken(err) {
		m.refresh(w)
	}
	_ = sleep(ctx, brokenPause)
}
