package etcdlock

import (
	"context"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// recordBatch records are read at a time: each is 600 KiB at most, with the answer that it keeps.
const recordBatch = 32

// Executions is a part of the executions: those that wait, then those that run or are held, then those that have ended, each in the order of
// their keys. An execution moves in that order too, so that none is missed that was there all the time; one that moves between two
// pages may be on both. Bodies of answers are left out. The error is idem.ErrCursor or idem.ErrStoreUnavailable.
func (s *Control) Executions(ctx context.Context, q idem.ExecutionQuery) (idem.ExecutionPage, error) {
	kinds := kindsOf(q.Status)
	if q.Cursor != "" {
		i := slices.IndexFunc(kinds, func(kind string) bool { return strings.HasPrefix(q.Cursor, kind) })
		if i < 0 {
			return idem.ExecutionPage{}, idem.ErrCursor
		}
		kinds = kinds[i:]
	}
	p := &executionPage{store: s, q: q, walk: s.newWalk(q.Limit, recordBatch)}
	for _, kind := range kinds {
		keys, err := s.pageRange(kind, q.Workflow, q.Cursor)
		if err != nil {
			return idem.ExecutionPage{}, err
		}
		if err := p.walk.through(ctx, keys, p.show); err != nil {
			return idem.ExecutionPage{}, unavailable(err)
		}
		q.Cursor = "" // the kinds behind its own are shown from their beginning
	}
	if err := p.complete(ctx, p.walk.revision); err != nil {
		return idem.ExecutionPage{}, err
	}
	return idem.ExecutionPage{Executions: p.found, NextCursor: p.walk.cursor()}, nil
}

// kindsOf are the kinds of keys in which an execution of that status can be.
func kindsOf(s idem.Status) []string {
	switch {
	case s == "":
		return []string{protocol.KindQueue, protocol.KindLocks, protocol.KindRecords}
	case s == idem.Pending:
		return []string{protocol.KindQueue}
	case s.Terminal():
		return []string{protocol.KindRecords}
	}
	return []string{protocol.KindLocks}
}

type executionPage struct {
	store *Control
	q     idem.ExecutionQuery
	walk  *walk
	found []idem.Found
}

// show takes what the query asks for. A value of a newer release is not shown.
func (p *executionPage) show(kv *mvccpb.KeyValue) bool {
	f, ok := p.store.foundIn(kv)
	if !ok || p.q.Workflow != "" && f.Workflow() != p.q.Workflow || p.q.Status != "" && f.Status() != p.q.Status {
		return false
	}
	f.Revision = p.walk.revision
	p.found = append(p.found, f)
	return true
}

// foundIn is the execution in kv; not that of a cooling lock, which has ended and is in its record.
func (s *Control) foundIn(kv *mvccpb.KeyValue) (f idem.Found, ok bool) {
	if strings.HasPrefix(string(kv.Key), s.layout.Records()) {
		r, _, err := protocol.DecodeRecord(kv.Value)
		if err != nil {
			return f, false
		}
		r.Revision = kv.ModRevision
		if r.Answer != nil {
			r.Answer.Body = nil // it keeps all of kv in memory
		}
		return idem.Found{Record: r}, true
	}
	l, err := protocol.LockAt(kv)
	if err != nil || l.Cooling {
		return f, false
	}
	waits := strings.HasPrefix(string(kv.Key), s.layout.Queues())
	if waits {
		l.Token, l.Revision = 0, 0 // it has no lock
	}
	return idem.Found{Lock: l, Place: waits}, true
}

// complete adds what stands elsewhere than in the values, which were read at revision.
func (p *executionPage) complete(ctx context.Context, revision int64) error {
	var locks []*idem.Lock
	for _, f := range p.found {
		if f.Lock != nil && !f.Place {
			locks = append(locks, f.Lock)
		}
	}
	if err := p.store.vouch(ctx, locks, revision); err != nil {
		return unavailable(err)
	}
	counts := make([]clientv3.Op, len(p.found))
	for i := range p.found {
		counts[i] = p.store.readCounts(p.found[i].ID())
	}
	answers, err := p.store.readEach(ctx, counts)
	if err != nil {
		return unavailable(err)
	}
	for i := range p.found {
		p.found[i].Duplicates = p.store.duplicates.of(p.found[i].ID(), answers[i].GetResponseRange().Kvs)
	}
	return nil
}
