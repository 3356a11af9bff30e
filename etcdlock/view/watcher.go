package view

import (
	"context"
	"hash/maphash"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

// Watcher wakes waiters of this process when a key is gone: the queue entry before their own, the
// lock, or its alive key. It has one watch on queues and one on locks for all of them, and only
// while there are waiters or something is parked: a watch of etcd's client for each waiter costs
// four goroutines and 23 KiB (measured). A key wakes only the waiters that named it, so a free lock
// wakes one. Alive keys are watched with the session. It is safe for concurrent use.
//
// It also reports new queue entries, so that a queue that was read need not be read again.
// Otherwise only deletions matter: what becomes of a lock while it is held, a new session or a
// release delay, ends with a deletion that its first waiter named, too: of the old session, or of
// the hold with the execution's name.
type Watcher struct {
	view   *View
	wanted chan struct{} // there is a waiter, or something is parked, and perhaps nothing is watched

	mu          sync.Mutex
	watching    bool
	begin       int64                   // the revision at which the first waiter has read; 0 = it has to be read
	watch       int                     // number of this watch: entries of one are not continued by another
	waiterCount int                     // waiters
	waiters     map[sum][]*subscription // by key
	from        int64                   // all deletions after this revision are known
	recent      map[sum]int64           // the newest of them, for waiters that subscribe a little late
	order       []sum                   // their keys, the oldest first
	seed        maphash.Seed
}

// sum stands for a key: a hundred bytes less for each of thousands of waiters. Two keys of one sum
// cost a waiter a read too many, or a lock is handed past its waiter to the next; the seed is this
// process's own, so that names that collide cannot be chosen.
type sum uint64

func (h *Watcher) keySum(key string) sum { return sum(maphash.String(h.seed, key)) }

// maxRecent bounds the deletions that are kept for waiters that have read just before one and
// subscribe just after.
const maxRecent = 4096

// subscription lists the keys whose deletion wakes one waiter.
type subscription struct {
	keys  []sum
	woken chan struct{} // closed when one of the keys is gone, or when that is not known any more
}

func newWatcher(v *View) *Watcher {
	return &Watcher{
		view: v, wanted: make(chan struct{}, 1), watch: 1, waiters: map[sum][]*subscription{}, recent: map[sum]int64{},
		seed: maphash.MakeSeed(),
	}
}

// wakeWatch is called when something is parked.
func (h *Watcher) wakeWatch() { link.Wake(h.wanted) }

// Wait returns when one of the keys, which were there at revision, is gone, when ctx ends, over or
// news is closed, or when it cannot know: the caller reads again.
func (h *Watcher) Wait(ctx context.Context, over, news <-chan struct{}, revision int64, keys ...string) {
	n := h.subscribe(revision, keys)
	if n == nil {
		return
	}
	select {
	case <-n.woken:
		return
	case <-over:
	case <-news:
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeLocked(n)
}

// subscribe returns nil when the caller has to read again: something happened since, or nothing was
// watched yet.
func (h *Watcher) subscribe(revision int64, keys []string) *subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.watching {
		h.watching, h.begin, h.from = true, revision, max(h.from, revision)
		link.Wake(h.wanted)
	}
	if revision < h.from {
		return nil
	}
	for _, key := range keys {
		session, is := strings.CutPrefix(key, h.view.options.Layout.All(protocol.KindSessions))
		if h.recent[h.keySum(key)] > revision || is && !h.view.Sessions.Has(session) { // Died comes after the set knows
			return nil
		}
	}
	n := &subscription{keys: make([]sum, len(keys)), woken: make(chan struct{})}
	for i, key := range keys {
		n.keys[i] = h.keySum(key)
		h.waiters[n.keys[i]] = append(h.waiters[n.keys[i]], n)
	}
	h.waiterCount++
	return n
}

// removeLocked removes n. It does nothing the second time.
func (h *Watcher) removeLocked(n *subscription) {
	for _, key := range n.keys {
		rest := h.waiters[key]
		for i, other := range rest {
			if other != n {
				continue
			}
			rest[i] = rest[len(rest)-1]
			rest[len(rest)-1] = nil
			if rest = rest[:len(rest)-1]; len(rest) == 0 {
				delete(h.waiters, key)
			} else {
				h.waiters[key] = rest
			}
			break
		}
	}
	if n.keys != nil {
		n.keys = nil
		h.waiterCount--
	}
}

// tellLocked wakes the waiters for key.
func (h *Watcher) tellLocked(key sum) {
	for _, n := range append([]*subscription(nil), h.waiters[key]...) {
		h.removeLocked(n)
		close(n.woken)
	}
}

// wakeForSessions wakes the waiters for sessions that have ended.
func (h *Watcher) wakeForSessions(names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range names {
		h.tellLocked(h.keySum(h.view.options.Layout.Alive(protocol.SessionAlive(name))))
	}
}

// Waiters returns how many waiters a key has.
func (h *Watcher) Waiters(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiters[h.keySum(name)])
}

// Watching returns how many waiters there are, and whether keys are watched for them.
func (h *Watcher) Watching() (waiters int, watching bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiterCount, h.watching
}

// GoneAt returns the revision after since at which the key name has gone; 0 = none is known.
func (h *Watcher) GoneAt(name string, since int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := h.recent[h.keySum(name)]; at > since {
		return at
	}
	return 0
}

// WakeFor wakes the waiters for the key name, which is gone since revision.
func (h *Watcher) WakeFor(name string, revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := h.keySum(name)
	if _, there := h.recent[key]; !there {
		h.order = append(h.order, key)
	}
	h.recent[key] = revision
	if len(h.order) > maxRecent {
		h.from = max(h.from, h.recent[h.order[0]])
		delete(h.recent, h.order[0])
		h.order = h.order[1:]
	}
	h.tellLocked(key)
}

// round is how often it is checked whether a watch is needed.
const round = time.Second

// run watches while there are waiters or something is parked, until ctx ends.
func (h *Watcher) run(ctx context.Context) {
	keys := &link.Reflector{Pool: h.view.options.Pool, On: link.OfWaits, Source: &watched{h}, Round: round}
	for link.AwaitWake(ctx, h.wanted) {
		if !h.isIdle() {
			keys.Run(ctx, h.startRevision())
		}
		h.restartWatch(0)
	}
}

// watched are the keys of a Watcher.
type watched struct{ watcher *Watcher }

// Idle implements link.Source.
func (w *watched) Idle() bool { return w.watcher.isIdle() }

// List reads at which revision the next watch begins. The waiters read the rest.
func (w *watched) List(ctx context.Context) (int64, error) {
	_, revision, err := w.watcher.view.options.Pool.Read(ctx,
		clientv3.OpGet(w.watcher.view.options.Layout.All(protocol.KindLocks), clientv3.WithCountOnly()))
	if err == nil {
		w.watcher.restartWatch(revision)
		w.watcher.view.Parked.MakeAllReady()
	}
	return revision, err
}

func (h *Watcher) isIdle() bool {
	if h.view.Parked.Any() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiterCount == 0
}

// startRevision returns the revision at which the first waiter has read; 0 = there is none, or what
// is parked was not looked at then.
func (h *Watcher) startRevision() int64 {
	if h.view.Parked.Any() {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.begin
}

// Watches implements link.Source.
func (w *watched) Watches(from int64) []link.Watch {
	h := w.watcher
	h.mu.Lock()
	n := h.watch
	h.mu.Unlock()
	gone := func(e *clientv3.Event) {
		h.WakeFor(string(e.Kv.Key), e.Kv.ModRevision)
		h.view.Parked.MakeReadyBehind(string(e.Kv.Key))
	}
	entries := func(events []*clientv3.Event) {
		var came []*mvccpb.KeyValue
		for _, e := range events {
			if e.IsCreate() {
				came = append(came, e.Kv)
			}
		}
		if len(came) > 0 {
			h.view.Queues.AddReported(came, n)
		}
		for _, e := range events {
			if e.Type == clientv3.EventTypeDelete {
				gone(e)
			}
		}
	}
	opts := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithRev(from)}
	return []link.Watch{
		{Key: h.view.options.Layout.All(protocol.KindQueue), Opts: opts, Batch: entries},
		{Key: h.view.options.Layout.All(protocol.KindLocks), Opts: append(opts, clientv3.WithFilterPut()), News: gone},
	}
}

// Break wakes all waiters, which then read again: something up to revision may have been missed. So
// may have those that read before that, and do not wait yet.
func (h *Watcher) Break(revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.breakLocked(revision)
}

func (h *Watcher) breakLocked(revision int64) {
	h.from = max(h.from, revision)
	for _, waiting := range h.waiters {
		for _, n := range waiting {
			if n.keys != nil {
				n.keys = nil
				close(n.woken)
			}
		}
	}
	clear(h.waiters)
	h.waiterCount = 0
}

// forgetAll is Break where all that is known by a revision is worth nothing: etcd has gone back to
// an earlier one.
func (h *Watcher) forgetAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.breakLocked(0)
	h.from, h.begin, h.order = 0, 0, nil
	clear(h.recent)
}

// restartWatch is Break before another watch begins, at a revision; 0 = none does. What is known
// stays: of holds, the session's watch goes on to tell.
func (h *Watcher) restartWatch(revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.breakLocked(revision)
	h.watch++
	h.watching, h.begin = revision != 0, 0
}
