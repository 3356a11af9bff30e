package link

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// With a user name, each request shows a token. etcd forgets one that was not used for five
// minutes, and all of them when it restarts or its users change. The client has fetched a new one
// by the time that it reports this, but does not repeat the request: it was told to make one
// attempt.

// staleToken reports whether a request was refused for its token, so that the next attempt may
// pass. Nothing of it was applied.
func staleToken(err error) bool {
	return Says(err, rpctypes.ErrInvalidAuthToken) || Says(err, rpctypes.ErrAuthOldRevision) ||
		Says(err, rpctypes.ErrUserEmpty)
}

// TurnedAway reports whether etcd answers and refuses these credentials. Other members refuse them,
// too, each attempt may cost etcd a password hash, and only an operator can change it: so there is
// no hurry to ask again.
func TurnedAway(err error) bool {
	return staleToken(err) || Says(err, rpctypes.ErrAuthFailed) || Says(err, rpctypes.ErrPermissionDenied)
}

// openWatcher returns the watcher for the watches of waiters at this member. Watches share a
// stream, and a stream has the token that it was opened with for as long as it lives: when that has
// expired, new watches on it are refused for ever. So with a user name these watches have a watcher
// of their own, which closeWatcher ends.
func (m *member) openWatcher(c *clientv3.Client) clientv3.Watcher {
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

// closeWatcher ends the watcher old, if it is still the one in use: the next one opens a stream
// with a new token. The owners of its watches read again, as after any watch that breaks.
func (m *member) closeWatcher(old clientv3.Watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waits != nil && m.waits == old {
		_ = m.waits.Close() // its stream was refused
		m.waits = nil
	}
}

// brokenPause is the pause between two attempts to watch while watches are refused.
const brokenPause = 100 * time.Millisecond

// Stream says which of the streams of a client a watch is on.
type Stream int

const (
	// OfSession is for watches that live as long as a session. If it breaks its owner has to read
	// everything again.
	OfSession Stream = iota
	// OfWaits is for watches that come and go with waiters.
	OfWaits
)

// Watch is one range of keys to watch, and the function that gets its events.
type Watch struct {
	Key  string                // the key, or the beginning of the range
	Opts []clientv3.OpOption   // the end of the range, the revision to begin at
	News func(*clientv3.Event) // must not block
	// Batch is called with several events at once, in place of News: of a revision all or nothing.
	// It must not block either.
	Batch func([]*clientv3.Event)
}

// Watch reports events until one of the watches ends, the pool leaves the member that they are at,
// or ctx ends: then no function is called any more, and the caller reads what it may have missed.
// It returns etcd's error, after a pause, because what was refused would be refused at once again.
func (p *Pool) Watch(ctx context.Context, on Stream, watches ...Watch) error {
	client, at, err := p.Current()
	if err != nil {
		p.failOverFrom(at)
		_ = Sleep(ctx, brokenPause)
		return err
	}
	member, watcher := p.members[at], clientv3.Watcher(client)
	if on == OfWaits {
		watcher = member.openWatcher(client)
	}
	if err = p.runWatches(ctx, p.memberLeft(at), watcher, watches); err == nil ||
		errors.Is(err, rpctypes.ErrCompacted) ||
		ctx.Err() != nil {
		return err
	}
	if member.noteWatchEnd(err); staleToken(err) {
		member.closeWatcher(watcher)
	}
	_ = Sleep(ctx, brokenPause)
	return err
}

// runWatches ends its watches before it returns. At a member that hangs a watch does not even
// begin: each has a goroutine, and ctx cancels it.
func (p *Pool) runWatches(ctx context.Context, left <-chan struct{}, watcher clientv3.Watcher, watches []Watch) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	ended := make(chan error, len(watches))
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	for _, w := range watches {
		following.Go(func() { ended <- w.deliverEvents(ctx, watcher, p.noteRevision) })
	}
	select {
	case err := <-ended:
		return err
	case <-left:
	case <-ctx.Done():
	}
	return nil
}

func (w *Watch) deliverEvents(ctx context.Context, watcher clientv3.Watcher, note func(revision int64)) error {
	for news := range watcher.Watch(ctx, w.Key, w.Opts...) {
		if err := news.Err(); err != nil {
			return err
		}
		note(news.Header.Revision)
		if w.Batch != nil {
			w.Batch(news.Events)
			continue
		}
		for _, e := range news.Events {
			w.News(e)
		}
	}
	return nil
}

// AwaitChange returns when one of the keys has changed after revision, and also when it cannot know
// any more: the caller reads again.
func (p *Pool) AwaitChange(ctx context.Context, revision int64, keys ...string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watches := make([]Watch, len(keys))
	for i, key := range keys {
		watches[i] = Watch{Key: key, Opts: []clientv3.OpOption{clientv3.WithRev(revision + 1)},
			News: func(*clientv3.Event) {
				cancel()
			}}
	}
	_ = p.Watch(ctx, OfWaits, watches...)
}
