package etcdlock

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

const (
	auditEvery = 500 * time.Millisecond // between two writes
	auditBatch = 100                    // in one request; etcd takes 128
	maxQueued  = 10_000                 // that wait to be written
	// maxAuditsRead bounds what one page looks at, whatever it shows.
	maxAuditsRead = 5000
)

// audits writes down what somebody with a token asked for, behind what was done. Each has a key of its own, which nobody compares.
type audits struct {
	store   *core
	wake    chan struct{}
	writing chan struct{} // holds a token while somebody writes: one at a time
	leases  *commit.Leases
	most    int // are kept, and a twentieth more before the oldest go
	room    int // for what waits to be written; further ones are shed

	mu    sync.Mutex
	queue []audited // the oldest first
	n     int64
	shed  int64
}

// audited is an audit that waits to be written.
type audited struct {
	key   string
	value []byte
}

func newAudits(life context.Context, s *core) *audits {
	a := &audits{store: s, wake: make(chan struct{}, 1), writing: make(chan struct{}, 1), most: idem.MaxAudits, room: maxQueued}
	a.leases = commit.NewLeases(s.pool.NewLease, s.listLease, s.clock, func(f func(context.Context)) bool {
		s.keeping.Go(func() { f(life) })
		return true
	})
	return a
}

// Audited notes what somebody with a token asked for. It never blocks; others know of it within a second, as long as the store takes it, and for
// idem.AuditKept. What a process is killed with before that is lost, and when 10,000 wait to be written, further ones are shed.
func (s *Control) Audited(a idem.Audit) {
	a.At = a.At.UTC().Round(time.Millisecond)
	q := s.audits
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) >= q.room {
		q.shed++
		return
	}
	q.n++
	q.queue = append(q.queue, audited{s.layout.Audit(a.At, s.writer, q.n), protocol.EncodeAudit(&a)})
	poke(q.wake)
}

// ShedAudits is how many audits this process has not kept.
func (s *Store) ShedAudits() int64 {
	s.audits.mu.Lock()
	defer s.audits.mu.Unlock()
	return s.audits.shed
}

// Audits is a part of what somebody with a token asked for. The error is idem.ErrCursor or idem.ErrStoreUnavailable.
func (s *Control) Audits(ctx context.Context, q idem.AuditQuery) (page idem.AuditPage, err error) {
	prefix := s.layout.Root + protocol.KindAudits
	from := prefix
	if q.Cursor != "" {
		if from = s.layout.Root + q.Cursor + "\x00"; !strings.HasPrefix(from, prefix) {
			return page, idem.ErrCursor
		}
	}
	s.audits.finish(ctx) // who has just asked for something looks for it here
	limit := min(q.Limit, maxPage)
	if q.Limit <= 0 {
		limit = defaultPage
	}
	for looked := 0; looked < maxAuditsRead; looked += maxPage {
		answers, _, err := s.read(ctx, clientv3.OpGet(from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(maxPage)))
		if err != nil {
			return idem.AuditPage{}, unavailable(err)
		}
		some := answers[0].GetResponseRange()
		for _, kv := range some.Kvs {
			a := protocol.DecodeAudit(kv.Value)
			switch {
			case a == nil:
				continue
			case a.At.Before(q.Since): // and so are all that follow
				return page, nil
			case q.Takes(a):
				page.Audits = append(page.Audits, *a)
			}
			if len(page.Audits) == limit {
				page.NextCursor = strings.TrimPrefix(string(kv.Key), s.layout.Root)
				return page, nil
			}
		}
		if !some.More || len(some.Kvs) == 0 {
			return page, nil
		}
		from = string(some.Kvs[len(some.Kvs)-1].Key) + "\x00"
	}
	page.NextCursor = strings.TrimSuffix(strings.TrimPrefix(from, s.layout.Root), "\x00")
	return page, nil
}

// run writes what is noted, until ctx ends.
func (a *audits) run(ctx context.Context) {
	for {
		select {
		case <-a.wake:
		case <-ctx.Done():
			return
		}
		for a.pending() {
			if link.Sleep(ctx, auditEvery) != nil {
				return
			}
			a.write(ctx)
		}
	}
}

func (a *audits) pending() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.queue) > 0
}

// finish writes what is left, if etcd takes it at once.
func (a *audits) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, link.TxnTimeout)
	defer cancel()
	for more := a.pending(); more; {
		more = a.write(ctx) && a.pending()
	}
}

// write writes those that have waited longest; false when etcd did not take them: they wait on. Writing twice does no harm.
func (a *audits) write(ctx context.Context) bool {
	select {
	case a.writing <- struct{}{}:
		defer func() { <-a.writing }()
	case <-ctx.Done(): // another one waits for an etcd that does not answer
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
	return a.bound(ctx) == nil
}

// next are those that are written together.
func (a *audits) next() []audited {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, size := 0, 0
	for ; n < min(len(a.queue), auditBatch); n++ {
		if size += len(a.queue[n].value); n > 0 && size > commit.MaxBatchBytes {
			break
		}
	}
	return slices.Clone(a.queue[:n])
}

// notes writes notes together, or in parts where etcd takes fewer at a time.
func (s *core) notes(ctx context.Context, ops protocol.Writes) error {
	return inParts(ops, func(part []protocol.Op) error {
		_, err := s.pool.Commit(ctx, link.AttemptTimeout, nil, part)
		return err
	})
}

func (a *audits) send(ctx context.Context, some []audited) error {
	var ops protocol.Writes
	var leases []clientv3.LeaseID
	for _, one := range some {
		lease, err := a.leases.Take(ctx, idem.AuditKept, "")
		if err != nil {
			return err
		}
		leases = append(leases, lease)
		ops = append(ops, protocol.Note(one.key, protocol.Leased{Value: one.value, Lease: lease}))
	}
	err := a.store.notes(ctx, ops)
	if err == nil {
		return nil
	}
	for _, lease := range leases {
		a.leases.DropIfGone(lease, err)
	}
	return fmt.Errorf("write audits: %w", err)
}

// bound deletes the oldest where there are too many. The count costs etcd a look at its index.
func (a *audits) bound(ctx context.Context) error {
	prefix := a.store.layout.Root + protocol.KindAudits
	end := clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix))
	err := a.store.pool.Try(ctx, link.AttemptTimeout, func(ctx context.Context, c *clientv3.Client) error {
		n, err := c.Get(ctx, prefix, end, clientv3.WithCountOnly())
		if err != nil || n.Count <= int64(a.most+a.most/20) {
			return err
		}
		newest, err := c.Get(ctx, prefix, end, clientv3.WithKeysOnly(), clientv3.WithLimit(int64(a.most)))
		if err != nil || len(newest.Kvs) == 0 {
			return err
		}
		_, err = c.Delete(ctx, string(newest.Kvs[len(newest.Kvs)-1].Key)+"\x00", end)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete old audits: %w", err)
	}
	return nil
}
