package history

import (
	"context"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// ParkedEntries is a part of the requests that are kept. The error is idem.ErrCursor or idem.ErrStoreUnavailable.
func (s *Reader) ParkedEntries(ctx context.Context, q idem.ParkedQuery) (idem.ParkedPage, error) {
	var page idem.ParkedPage
	prefix := s.o.Layout.Parked()
	keys := link.Below(prefix, LockBatch)
	if q.Cursor != "" {
		if _, _, err := idem.ExecutionID(q.Cursor).Parse(); err != nil {
			return page, idem.ErrCursor
		}
		keys.From = prefix + q.Cursor + "\x00"
	}
	limit := min(q.Limit, MaxPage)
	if q.Limit <= 0 {
		limit = defaultPage
	}
	looked := 0
	for kv, err := range s.o.Pool.All(ctx, keys) {
		if err != nil {
			return idem.ParkedPage{}, unavailable(err)
		}
		id := strings.TrimPrefix(string(kv.Key), prefix)
		if e, err := protocol.DecodeIndex(kv.Value); err == nil && takesParked(&q, e) {
			e.Execution, e.Revision = idem.ExecutionID(id), kv.ModRevision
			page.Entries = append(page.Entries, *e)
		}
		if looked++; len(page.Entries) == limit || looked == MaxPage {
			page.NextCursor = id
			break
		}
	}
	page.Revision = keys.Revision
	return page, nil
}

// takesParked reports whether a query asks for e.
func takesParked(q *idem.ParkedQuery, e *idem.ParkedEntry) bool {
	return (q.State == "" || e.State == q.State) && (q.Workflow == "" || idem.MatchPattern(q.Workflow, e.Workflow))
}

// ParkedExecutions is ParkedEntries with what stands in their places, locks and records. The error is idem.ErrCursor or idem.ErrStoreUnavailable.
func (s *Reader) ParkedExecutions(ctx context.Context, q idem.ParkedQuery) (idem.ExecutionPage, error) {
	entries, err := s.ParkedEntries(ctx, q)
	if err != nil {
		return idem.ExecutionPage{}, err
	}
	slices.SortStableFunc(entries.Entries, func(a, b idem.ParkedEntry) int { return a.Since.Compare(b.Since) })
	p := executionPage{store: s}
	for from := 0; from < len(entries.Entries); from += RecordBatch {
		some := entries.Entries[from:min(from+RecordBatch, len(entries.Entries))]
		if err := p.showParked(ctx, some, entries.Revision); err != nil {
			return idem.ExecutionPage{}, unavailable(err)
		}
	}
	if err := p.complete(ctx, entries.Revision); err != nil {
		return idem.ExecutionPage{}, err
	}
	return idem.ExecutionPage{Executions: p.found, NextCursor: entries.NextCursor}, nil
}

// showParked reads what the index says is there. Each transaction writes both, so at one revision they agree.
func (p *executionPage) showParked(ctx context.Context, entries []idem.ParkedEntry, revision int64) error {
	var ops []clientv3.Op
	for i := range entries {
		e := &entries[i]
		k := p.store.o.Layout.Keys(&idem.Lock{Entry: idem.Entry{Execution: e.Execution, Scope: e.Scope}})
		if e.State == idem.ParkDeadLetter {
			ops = append(ops, clientv3.OpGet(k.I, clientv3.WithRev(revision)))
			continue
		}
		ops = append(ops, clientv3.OpGet(k.L, clientv3.WithRev(revision)), clientv3.OpGet(k.Q, clientv3.WithRev(revision)))
	}
	answers, _, err := p.store.o.Pool.ReadEach(ctx, ops)
	if err != nil {
		return err
	}
	wanted := map[idem.ExecutionID]bool{}
	for i := range entries {
		wanted[entries[i].Execution] = true
	}
	for _, a := range answers {
		kv := protocol.First(a)
		if kv == nil {
			continue
		}
		if f, ok := p.store.foundIn(kv); ok && wanted[f.ID()] {
			wanted[f.ID()] = false
			f.Revision = revision
			p.found = append(p.found, f)
		}
	}
	return nil
}
