package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// AuditBatch audits are written in one request; etcd takes 128.
const AuditBatch = 100

const (
	auditEvery = 500 * time.Millisecond // between two writes
	maxQueued  = 10_000                 // that wait to be written
	// maxAuditsRead bounds what one page looks at, whatever it shows.
	maxAuditsRead = 5000
)

// Audits writes audits in the background. Each audit has a key of its own, which no transaction compares.
type Audits struct {
	o       *Options
	wake    chan struct{}
	writing chan struct{} // holds a token during a write: one at a time
	leases  *commit.Leases
	Most    int // the audits that are kept; the oldest go when there are a twentieth more
	Room    int // for audits that wait to be written; further ones are shed

	mu    sync.Mutex
	queue []pendingAudit // the oldest first
	n     int64
	shedN int64
}

// pendingAudit is an audit that waits to be written.
type pendingAudit struct {
	key   string
	value []byte
}

// NewAudits returns an empty log. Run writes it.
func NewAudits(o *Options) *Audits {
	a := &Audits{o: o, wake: make(chan struct{}, 1), writing: make(chan struct{}, 1), Most: idem.MaxAudits, Room: maxQueued}
	a.leases = commit.NewLeases(o.Pool.NewLease, o, o.Clock, o.Spawn)
	return a
}

// Add adds an audit. It never blocks. Other replicas see it within a second, as long as etcd takes it, and for idem.AuditKept. A process that
// is killed before that loses it, and when 10,000 audits wait to be written, further ones are dropped and counted.
func (a *Audits) Add(one idem.Audit) {
	one.At = one.At.UTC().Round(time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) >= a.Room {
		a.shedN++
		return
	}
	a.n++
	a.queue = append(a.queue, pendingAudit{a.o.Layout.Audit(one.At, a.o.Writer, a.n), protocol.EncodeAudit(&one)})
	link.Wake(a.wake)
}

// Shed returns how many audits this process has dropped.
func (a *Audits) Shed() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shedN
}

// List returns a page of audits, the newest first. It returns idem.ErrCursor for an invalid cursor and idem.ErrStoreUnavailable if etcd cannot be read.
func (a *Audits) List(ctx context.Context, q idem.AuditQuery) (page idem.AuditPage, err error) {
	keys := link.Below(a.o.Layout.All(protocol.KindAudits), MaxPage)
	if q.Cursor != "" {
		from := a.o.Layout.Root + q.Cursor + "\x00"
		if !strings.HasPrefix(from, keys.From) {
			return page, idem.ErrCursor
		}
		keys.From = from
	}
	a.Finish(ctx) // the caller may look for what it has just done
	limit := min(q.Limit, MaxPage)
	if q.Limit <= 0 {
		limit = defaultPage
	}
	looked, last := 0, ""
	for kv, err := range a.o.Pool.All(ctx, keys) {
		if err != nil {
			return idem.AuditPage{}, commit.Unavailable(err)
		}
		if len(page.Audits) == limit || looked == maxAuditsRead {
			page.NextCursor = last
			return page, nil
		}
		looked, last = looked+1, strings.TrimPrefix(string(kv.Key), a.o.Layout.Root)
		switch one := protocol.DecodeAudit(kv.Value); {
		case one == nil:
		case one.At.Before(q.Since): // and so are all that follow
			return page, nil
		case q.Takes(one):
			page.Audits = append(page.Audits, *one)
		}
	}
	return page, nil
}

// Run writes audits, until ctx ends.
func (a *Audits) Run(ctx context.Context) {
	for {
		select {
		case <-a.wake:
		case <-ctx.Done():
			return
		}
		for a.Pending() {
			if link.Sleep(ctx, auditEvery) != nil {
				return
			}
			a.Write(ctx)
		}
	}
}

// Pending reports whether some are not written yet.
func (a *Audits) Pending() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queue) > 0
}

// Finish writes what is left, if etcd takes it at once.
func (a *Audits) Finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, link.TxnTimeout)
	defer cancel()
	for more := a.Pending(); more; {
		more = a.Write(ctx) && a.Pending()
	}
}

// Write writes the audits that have waited longest. It returns false if etcd did not take them: they wait on. Writing twice does no harm.
func (a *Audits) Write(ctx context.Context) bool {
	select {
	case a.writing <- struct{}{}:
		defer func() { <-a.writing }()
	case <-ctx.Done(): // the other one waits for an etcd that does not answer
		return false
	}
	some := a.next()
	if len(some) == 0 {
		return true
	}
	if err := a.send(ctx, some); err != nil {
		return false
	}
	a.mu.Lock()
	a.queue = a.queue[len(some):]
	a.mu.Unlock()
	return deleteOldest(ctx, a.o.Pool, a.o.Layout.All(protocol.KindAudits), a.Most) == nil
}

// next returns the audits for one write.
func (a *Audits) next() []pendingAudit {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, size := 0, 0
	for ; n < min(len(a.queue), AuditBatch); n++ {
		if size += len(a.queue[n].value); n > 0 && size > commit.MaxBatchBytes {
			break
		}
	}
	return slices.Clone(a.queue[:n])
}

func (a *Audits) send(ctx context.Context, some []pendingAudit) error {
	var ops protocol.Writes
	var leases []clientv3.LeaseID
	for _, one := range some {
		lease, err := a.leases.Take(ctx, idem.AuditKept, "", nil)
		if err != nil {
			return err
		}
		leases = append(leases, lease)
		ops = append(ops, protocol.Note(one.key, protocol.Leased{Value: one.value, Lease: lease}))
	}
	err := a.o.Pool.CommitParts(ctx, ops)
	if err == nil {
		return nil
	}
	for _, lease := range leases {
		a.leases.DropIfGone(lease, err)
	}
	return fmt.Errorf("write audits: %w", err)
}

// deleteOldest deletes the oldest of the keys with that prefix if there are a twentieth more than most; the newest come first. The count costs
// etcd a look at its index.
func deleteOldest(ctx context.Context, pool *link.Pool, prefix string, most int) error {
	end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix))
	n, err := pool.Get(ctx, prefix, end, clientv3.WithCountOnly())
	if err != nil || n.Count <= int64(most+most/20) {
		return err
	}
	newest, err := pool.Get(ctx, prefix, end, clientv3.WithKeysOnly(), clientv3.WithLimit(int64(most)))
	if err != nil || len(newest.Kvs) == 0 {
		return err
	}
	return pool.Delete(ctx, string(newest.Kvs[len(newest.Kvs)-1].Key)+"\x00", end)
}
