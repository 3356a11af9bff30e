package history

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// NoteBatch notes are written in one request; etcd takes 128.
const NoteBatch = 100

const (
	writeEvery = 700 * time.Millisecond // between two writes: readers are to see a note within a second
	writeMost  = 1000                   // notes in one write, the rest comes with the next
)

// writer writes notes in the background, each with what it says at that time. Those that etcd does
// not take wait for the next write; writing twice does no harm. It is safe for concurrent use.
type writer struct {
	options *Options
	wake    chan struct{}
	// writing holds a token during a write: one at a time.
	writing chan struct{}
	// leases are apart from those of records, so that closing the store does not wait for them.
	leases *commit.Leases
	// after is called after notes were written, here or by a transaction; nil = nothing is.
	after func(context.Context) error

	mu      sync.Mutex // guards what notes say, too
	queue   []*note    // those that are not written yet, the oldest first
	out     int        // those that are being written
	written bool       // a transaction has written some, and after was not called since
}

// note is a key of this process alone, which others read and no transaction compares.
type note struct {
	retention time.Duration // from its last write on
	// says returns the key and the value now, and the row by which it is found if it is of
	// KindArrivals, else nil. It is called with mu locked.
	says   func() (key string, value []byte, row *protocol.Row)
	queued bool // it is in the queue; while it is being written, only if it has changed since

	// The fields below are guarded by writing.
	lease     clientv3.LeaseID // that it was written with, 0 = none
	leased    link.Instant
	leasedFor time.Duration // the retention that the lease was taken for
}

func newWriter(o *Options) *writer {
	w := &writer{options: o, wake: make(chan struct{}, 1), writing: make(chan struct{}, 1)}
	w.leases = commit.NewLeases(o.Pool.NewLease, o, o.Clock, o.Tasks)
	return w
}

// enqueueLocked has a note written that is new or has changed.
func (w *writer) enqueueLocked(n *note) {
	if !n.queued {
		n.queued = true
		w.queue = append(w.queue, n)
		link.Wake(w.wake)
	}
}

// Run writes, until ctx ends.
func (w *writer) Run(ctx context.Context) {
	for {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		}
		for w.hasWork() {
			if link.Sleep(ctx, writeEvery) != nil {
				return
			}
			w.Write(ctx)
		}
	}
}

// afterLater has after called soon, because a transaction has written notes.
func (w *writer) afterLater() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = true
	link.Wake(w.wake)
}

// hasWork reports whether there is something to do: notes to be written, or a call of after.
func (w *writer) hasWork() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pendingLocked() > 0 || w.written
}

// Pending reports whether some notes are not written yet, also those that are being written.
func (w *writer) Pending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pendingLocked() > 0
}

func (w *writer) pendingLocked() int { return len(w.queue) + w.out }

// Finish writes what is left, if etcd takes it at once.
func (w *writer) Finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, w.options.Pool.Txn)
	defer cancel()
	for w.Pending() {
		if !w.Write(ctx) {
			return
		}
	}
}

// Write writes the notes that have waited longest. It returns false if etcd did not take them: they
// wait on.
func (w *writer) Write(ctx context.Context) bool {
	select {
	case w.writing <- struct{}{}:
		defer func() { <-w.writing }()
	case <-ctx.Done(): // the other one waits for an etcd that does not answer
		return false
	}
	some, after := w.takeBatch()
	var err error
	for batch := range slices.Chunk(some, NoteBatch) {
		if err == nil {
			err = w.sendBatch(ctx, batch)
		}
		w.endRequest(batch, err != nil)
	}
	if err == nil && after && w.after != nil {
		err = w.after(ctx)
	}
	return err == nil
}

// takeBatch returns the notes to write now, and whether after is to be called.
func (w *writer) takeBatch() (some []*note, after bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	after, w.written = w.written || len(w.queue) > 0, false
	w.out = min(len(w.queue), writeMost)
	some = w.queue[:w.out:w.out]
	w.queue = w.queue[w.out:]
	for _, n := range some {
		n.queued = false
	}
	return some, after
}

func (w *writer) endRequest(some []*note, again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out -= len(some)
	for _, n := range some {
		if again {
			// once: etcd takes no request that writes a key twice, and would refuse it again and
			// again
			w.enqueueLocked(n)
		}
	}
}

// sendBatch writes a batch, usually in one request. A note that changes meanwhile is queued again.
func (w *writer) sendBatch(ctx context.Context, batch []*note) error {
	var ops protocol.Writes
	size := 0
	err := error(nil)
	for _, n := range batch {
		w.mu.Lock()
		key, value, row := n.says()
		retention := n.retention
		w.mu.Unlock()
		if err = w.prolongNote(ctx, n, retention, row); err != nil {
			break
		}
		if size += len(value); len(ops) > 0 && size > commit.MaxBatchBytes {
			if err = w.options.Pool.CommitParts(ctx, ops); err != nil {
				break
			}
			ops, size = nil, len(value)
		}
		ops = append(ops, protocol.Note(key, protocol.Leased{Value: value, Lease: n.lease}))
	}
	if err == nil {
		err = w.options.Pool.CommitParts(ctx, ops)
	}
	if err == nil {
		return nil
	}
	for _, n := range batch {
		w.leases.DropIfGone(n.lease, err)
		n.lease = 0
	}
	return fmt.Errorf("write notes: %w", err)
}

// prolongNote lets a note live for its retention from now on, and takes a new lease only if it has
// to. What is found by its age is on the lease of the time of its last write.
func (w *writer) prolongNote(ctx context.Context, n *note, retention time.Duration, row *protocol.Row) (err error) {
	switch {
	case row != nil:
		n.lease, err = w.leases.Take(ctx, retention, protocol.KindArrivals, row)
	case n.lease == 0 || retention > n.leasedFor || w.options.Clock.Since(n.leased) >= idem.ExtraRetention(retention):
		n.leased, n.leasedFor = w.options.Clock.Instant(), retention
		n.lease, err = w.leases.Take(ctx, retention, "", nil)
	}
	return err
}

// deleteOldest deletes the oldest of the keys of a kind if there are a twentieth more than most;
// the newest come first. The count costs etcd a look at its index.
func (w *writer) deleteOldest(ctx context.Context, kind string, most int) error {
	prefix := w.options.Layout.All(kind)
	end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix))
	n, err := w.options.Pool.Get(ctx, prefix, end, clientv3.WithCountOnly())
	if err != nil || n.Count <= int64(most+most/20) {
		return err
	}
	newest, err := w.options.Pool.Get(ctx, prefix, end, clientv3.WithKeysOnly(), clientv3.WithLimit(int64(most)))
	if err != nil || len(newest.Kvs) == 0 {
		return err
	}
	return w.options.Pool.Delete(ctx, string(newest.Kvs[len(newest.Kvs)-1].Key)+"\x00", end)
}
