package history

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// ParkedEntries returns a part of the stored requests. It returns idem.ErrCursor or
// idem.ErrStoreUnavailable.
func (s *Reader) ParkedEntries(ctx context.Context, q idem.ParkedQuery) (page idem.ParkedPage, err error) {
	const kind = protocol.KindParked
	cursor := ""
	if q.Cursor != "" {
		if _, _, err := idem.ExecutionID(q.Cursor).Parse(); err != nil {
			return page, idem.ErrCursor
		}
		cursor = kind + q.Cursor
	}
	next, revision, err := s.readPage(ctx, kind, cursor, q.PageSize, func(kv *mvccpb.KeyValue) bool {
		e, ok := s.parkedIn(kv, &q)
		if ok {
			page.Entries = append(page.Entries, *e)
		}
		return ok
	})
	page.NextCursor, page.Revision = strings.TrimPrefix(next, kind), revision
	return page, err
}

// parkedIn returns the stored request in kv, and whether it matches the query.
func (s *Reader) parkedIn(kv *mvccpb.KeyValue, q *idem.ParkedQuery) (*idem.ParkedEntry, bool) {
	e, err := protocol.DecodeIndex(kv.Value)
	if err != nil {
		return nil, false
	}
	e.Execution, e.Revision = idem.ExecutionID(strings.TrimPrefix(string(kv.Key),
		s.options.Layout.All(protocol.KindParked))),
		kv.ModRevision
	return e, (q.State == "" || e.State == q.State) && (q.Route == "" || e.Route == q.Route) &&
		(q.Workflow == "" || idem.MatchPattern(q.Workflow, e.Workflow))
}

// ParkedExecutions returns a part of the executions whose request is stored, those first that have
// waited for longest, with their queue entries, locks and records. It returns idem.ErrCursor or
// idem.ErrStoreUnavailable.
func (s *Reader) ParkedExecutions(ctx context.Context, q idem.ParkedQuery) (idem.ExecutionPage, error) {
	behind, err := parseParked(q.Cursor)
	if err != nil {
		return idem.ExecutionPage{}, err
	}
	keys := link.Below(s.options.Layout.All(protocol.KindParked), parkedBatch)
	var entries []idem.ParkedEntry
	for kv, err := range s.options.Pool.All(ctx, keys) {
		if err != nil {
			return idem.ExecutionPage{}, commit.Unavailable(err)
		}
		if e, ok := s.parkedIn(kv, &q); ok && parkedOrder(*e, behind) > 0 {
			entries = append(entries, *e)
		}
	}
	slices.SortFunc(entries, parkedOrder)
	p := executionPage{store: s, limit: pageLimit(q.PageSize), left: pageLooks}
	for len(entries) > 0 && !p.isFull() {
		some := entries[:min(RecordBatch, p.limit-len(p.found), len(entries))]
		if err := p.showParked(ctx, some, keys.Revision, q.Matches); err != nil {
			return idem.ExecutionPage{}, commit.Unavailable(err)
		}
		p.left -= len(some)
		p.next, entries = formatParked(&some[len(some)-1]), entries[len(some):]
	}
	if len(entries) == 0 {
		p.next = ""
	}
	if err := p.completeFound(ctx, keys.Revision); err != nil {
		return idem.ExecutionPage{}, err
	}
	return idem.ExecutionPage{Executions: p.found, NextCursor: p.next}, nil
}

// parkedBatch is how many entries are read at a time: each is usually half a KiB.
const parkedBatch = 1000

// parkedOrder sorts those first that have been parked for longest.
func parkedOrder(a, b idem.ParkedEntry) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Execution, b.Execution))
}

func formatParked(e *idem.ParkedEntry) string {
	return strconv.FormatInt(e.Since.UnixNano(), 10) + "/" + string(e.Execution)
}

// parseParked returns the entry that a cursor names; the zero value, before all others, for none.
func parseParked(cursor string) (e idem.ParkedEntry, err error) {
	if cursor == "" {
		return e, nil
	}
	since, id, _ := strings.Cut(cursor, "/")
	n, err := strconv.ParseInt(since, 10, 64)
	if e.Since, e.Execution = time.Unix(0, n), idem.ExecutionID(id); err == nil {
		_, _, err = e.Execution.Parse()
	}
	if err != nil {
		return e, idem.ErrCursor
	}
	return e, nil
}

// showParked shows what the index names, if it takes it; nil = all. Each transaction writes both,
// so at one revision they agree.
func (p *executionPage) showParked(ctx context.Context, entries []idem.ParkedEntry, revision int64,
	takes func(*idem.Found) bool) error {
	var ops []clientv3.Op
	for i := range entries {
		e := &entries[i]
		k := p.store.options.Layout.Keys(&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: e.Execution,
			Scope: e.Scope}})
		if e.State == idem.ParkDeadLetter {
			ops = append(ops, clientv3.OpGet(k.Record, clientv3.WithRev(revision)))
			continue
		}
		ops = append(ops, clientv3.OpGet(k.Lock, clientv3.WithRev(revision)),
			clientv3.OpGet(k.Entry, clientv3.WithRev(revision)))
	}
	answers, _, err := p.store.options.Pool.ReadEach(ctx, ops)
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
			if f.Revision = revision; takes == nil || takes(&f) {
				p.found = append(p.found, f)
			}
		}
	}
	return nil
}

// ListForgotten returns the executions whose records were forgotten within the last minute, or a
// little longer ago. It returns idem.ErrStoreUnavailable.
func (s *Reader) ListForgotten(ctx context.Context) (ids []idem.ExecutionID, err error) {
	under := s.options.Layout.All(protocol.KindForgets)
	for kv, err := range s.options.Pool.All(ctx, link.Below(under, RecordBatch)) {
		if err != nil {
			return nil, commit.Unavailable(err)
		}
		ids = append(ids, idem.ExecutionID(strings.TrimPrefix(string(kv.Key), under)))
	}
	return ids, nil
}

// WithoutRequest returns those of these executions whose request is not stored: they are not
// parked, and have left no dead letter. ids is at most as long as a request to etcd may be; see
// parked.Known.
func (s *Reader) WithoutRequest(ctx context.Context, ids []idem.ExecutionID) (without []idem.ExecutionID, err error) {
	ops := make([]clientv3.Op, len(ids))
	for i, id := range ids {
		ops[i] = clientv3.OpGet(s.options.Layout.Of(protocol.KindParked, id), clientv3.WithKeysOnly())
	}
	answers, _, err := s.options.Pool.ReadEach(ctx, ops)
	if err != nil {
		return nil, commit.Unavailable(err)
	}
	for i, id := range ids {
		if protocol.First(answers[i]) == nil {
			without = append(without, id)
		}
	}
	return without, nil
}
