package history

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// RecordBatch is how many records are read at a time: each is 600 KiB at most, with its answer.
const RecordBatch = 32

const (
	valueBatch = 100  // queue entries, locks or arrivals that are read at a time
	minDigits  = 4    // hex digits that leave some dozens of keys among a million
	pageLooks  = 5000 // values that a page of executions reads, whatever it shows
)

// Executions returns a part of the executions, the newest first: those that wait, then those that
// run or are held, each in the order in which they came there, then those that have ended, in the
// order of their ends, with the events that were refused, if the query takes those, in the order of
// their last arrivals. An execution moves in that order too, so that none is missed that was there
// all the time; one that moves between two pages may be on both. Bodies of answers are left out. It
// returns idem.ErrCursor or idem.ErrStoreUnavailable.
func (s *Reader) Executions(ctx context.Context, q idem.ExecutionQuery) (idem.ExecutionPage, error) {
	kinds, refused := kindsOf(&q)
	behind := beginning
	if q.Cursor != "" {
		kind, text, _ := strings.Cut(q.Cursor, "/")
		i, at := slices.Index(kinds, kind+"/"), s.options.parsePlace(text)
		if i < 0 || at.revision <= 0 {
			return idem.ExecutionPage{}, idem.ErrCursor
		}
		kinds, behind = kinds[i:], at
	}
	p := &executionPage{store: s, query: q, refused: refused, limit: pageLimit(q.PageSize), left: pageLooks}
	for _, kind := range kinds {
		if err := p.showKind(ctx, kind, behind); err != nil {
			return idem.ExecutionPage{}, commit.Unavailable(err)
		}
		behind = beginning // the kinds behind the cursor's own are shown from their beginning
	}
	if err := p.showFirstTwins(ctx); err != nil {
		return idem.ExecutionPage{}, commit.Unavailable(err)
	}
	if err := p.completeFound(ctx, p.revision); err != nil {
		return idem.ExecutionPage{}, err
	}
	return idem.ExecutionPage{Executions: p.found, NextCursor: p.nextCursor()}, nil
}

// kindsOf returns the kinds of keys that may match a query; refused: arrivals beside the records,
// too.
func kindsOf(q *idem.ExecutionQuery) (kinds []string, refused bool) {
	kinds = []string{protocol.KindQueue, protocol.KindLocks, protocol.KindRecords}
	switch s := q.Status; {
	case q.Lost || q.Decision != "" || s == idem.Refused || s == idem.Released:
		return []string{protocol.KindArrivals}, false
	case s == "":
		period := !q.Since.IsZero() || !q.Until.IsZero()
		return kinds, q.Outcome == "" && (period || q.Route != "" || q.Prefix != "") || q.Workflow != "" ||
			q.EventID != "" || q.SearchText != "" || q.Key != "" || q.IDPrefix != "" || q.TraceID != "" ||
			q.Label != idem.Label{}
	case s == idem.Pending:
		return kinds[:1], false
	case s.Terminal():
		return kinds[2:], false
	}
	return kinds[1:2], false
}

type executionPage struct {
	store    *Reader
	query    idem.ExecutionQuery
	refused  bool // events are shown by their arrivals, too, among the records
	limit    int
	left     int   // values that it may still read
	revision int64 // at which the live executions are read
	found    []idem.Found
	next     string // where the next page begins, if there is one
}

func (p *executionPage) isFull() bool { return len(p.found) >= p.limit || p.left <= 0 }

// item is a value in the order of a list.
type item struct {
	place
	kv   *mvccpb.KeyValue // nil = it was written again since it was found, and is shown where it is now
	read int64            // the revision at which it was read
}

// source reads the next values of a list. more reports whether others may follow.
type source func(context.Context) (some []item, more bool, err error)

// showKind shows what there is of a kind behind a place, until the page is full.
func (p *executionPage) showKind(ctx context.Context, kind string, behind place) error {
	if p.isFull() {
		return nil
	}
	next, err := p.newSource(ctx, kind, behind)
	for more := true; err == nil && more && !p.isFull(); {
		var some []item
		if some, more, err = next(ctx); err != nil {
			return err
		}
		for i := range some {
			if err := p.showValue(ctx, kind, &some[i]); err != nil || p.isFull() {
				return err
			}
		}
	}
	return err
}

// showValue shows an execution, or an event by its arrivals. The next page goes on behind it.
func (p *executionPage) showValue(ctx context.Context, kind string, v *item) error {
	p.left--
	p.next = kind + p.store.options.formatPlace(v.place)
	switch {
	case v.kv == nil:
	case strings.HasPrefix(v.key, p.store.options.Layout.All(protocol.KindArrivals)):
		return p.showArrivals(ctx, v.kv)
	default:
		if f, ok := p.store.foundIn(v.kv); ok {
			p.addIfMatches(f, v.read)
		}
	}
	return nil
}

// newSource returns what there is of a kind behind a place, the newest first: queue entries and
// locks by when they were created, records and arrivals by when they were written.
func (p *executionPage) newSource(ctx context.Context, kind string, behind place) (source, error) {
	root, digits := p.store.options.Layout.Root, keyBeginning(&p.query)
	if kind == protocol.KindQueue || kind == protocol.KindLocks {
		if one := p.query.OneWorkflow(); one != "" {
			kind += protocol.Hash16(one) + "/"
		}
		return p.sortedSource([]string{root + kind}, byCreation, valueBatch, behind), nil
	}
	kinds, batch := []string{kind}, valueBatch
	if kind == protocol.KindRecords {
		batch = RecordBatch
	}
	if p.refused {
		kinds = append(kinds, protocol.KindArrivals)
	}
	if len(digits) < minDigits {
		return p.pastSource(ctx, kinds, batch, behind)
	}
	for i := range kinds {
		kinds[i] = root + kinds[i] + protocol.Beginning(digits)
	}
	return p.sortedSource(kinds, byWrite, batch, behind), nil
}

// revisions is an order of keys: by one of their revisions, the newest first.
type revisions clientv3.SortTarget

const (
	byCreation = revisions(clientv3.SortByCreateRevision)
	byWrite    = revisions(clientv3.SortByModRevision)
)

func (r revisions) revisionOf(kv *mvccpb.KeyValue) int64 {
	if r == byCreation {
		return kv.CreateRevision
	}
	return kv.ModRevision
}

func (r revisions) atMost(revision int64) clientv3.OpOption {
	if r == byCreation {
		return clientv3.WithMaxCreateRev(revision)
	}
	return clientv3.WithMaxModRev(revision)
}

// sortedSource returns the values of prefixes in that order, behind a place.
func (p *executionPage) sortedSource(prefixes []string, order revisions, batch int, behind place) source {
	return func(ctx context.Context) (some []item, more bool, err error) {
		some, more, err = p.readNewest(ctx, prefixes, order, batch, behind)
		if len(some) == 0 {
			batch *= 2 // all of them have one revision
		} else {
			behind = some[len(some)-1].place
		}
		return some, more, err
	}
}

func (r revisions) placeOf(kv *mvccpb.KeyValue) place { return place{r.revisionOf(kv), string(kv.Key)} }

// readNewest reads the first values of all prefixes together, at most batch below each; more
// reports whether others follow. Those of the last revision are left out unless all of them were
// read.
func (p *executionPage) readNewest(ctx context.Context, prefixes []string, order revisions, batch int,
	behind place) (items []item, more bool, err error) {
	options := []clientv3.OpOption{
		clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortTarget(order), clientv3.SortDescend),
		clientv3.WithLimit(int64(batch)), clientv3.WithRev(p.revision),
	}
	if behind.revision < math.MaxInt64 {
		options = append(options, order.atMost(behind.revision))
	}
	var reads []clientv3.Op
	for _, prefix := range prefixes {
		reads = append(reads, clientv3.OpGet(prefix, options...))
	}
	answers, revision, err := p.store.options.Pool.Read(ctx, reads...)
	if err != nil {
		return nil, false, err
	}
	p.revision = cmp.Or(p.revision, revision)
	unread := int64(0) // some prefix may have more before this revision
	for _, answer := range answers {
		kvs := answer.GetResponseRange().Kvs
		for _, kv := range kvs {
			items = append(items, item{order.placeOf(kv), kv, p.revision})
		}
		if len(kvs) == batch {
			unread = max(unread, order.revisionOf(kvs[batch-1]))
		}
	}
	items = slices.DeleteFunc(items, func(v item) bool { return v.revision <= unread || !behind.isBefore(v.place) })
	slices.SortFunc(items, func(a, b item) int { return a.compare(b.place) })
	return items, unread > 0, nil
}

// addIfMatches adds f if it matches the query.
func (p *executionPage) addIfMatches(f idem.Found, revision int64) {
	if p.query.Matches(&f) {
		f.Revision = revision
		p.found = append(p.found, f)
	}
}

// pastSource returns records, or events by their arrivals, the newest first, behind a place. The
// page is full when it has searched enough.
func (p *executionPage) pastSource(ctx context.Context, kinds []string, batch int, behind place) (source, error) {
	keys, err := p.store.newPast(ctx, kinds, &p.query, behind)
	return func(ctx context.Context) ([]item, bool, error) {
		some, over, err := keys.nextKeys(ctx, min(batch, p.limit-len(p.found)+1))
		if err != nil || over {
			return nil, false, err
		}
		if len(some) == 0 {
			p.left, p.next = 0, kinds[0]+p.store.options.formatPlace(keys.resumePlace())
		}
		items, err := p.store.readUnmoved(ctx, some)
		return items, true, err
	}, err
}

// readUnmoved reads the values of keys that were not written again since they were found.
func (s *Reader) readUnmoved(ctx context.Context, keys []place) ([]item, error) {
	ops := make([]clientv3.Op, len(keys))
	for i := range keys {
		ops[i] = clientv3.OpGet(keys[i].key)
	}
	answers, revision, err := s.options.Pool.ReadEach(ctx, ops)
	items := make([]item, len(answers))
	for i, a := range answers {
		items[i] = item{keys[i], nil, revision}
		if kv := protocol.First(a); kv != nil && kv.ModRevision == keys[i].revision {
			items[i].kv = kv
		}
	}
	return items, err
}

// showArrivals shows the event of arrivals that were written last: with its execution, where there
// is one.
func (p *executionPage) showArrivals(ctx context.Context, kv *mvccpb.KeyValue) error {
	takes := func(h *idem.History) bool { // an index finds a release where it was written
		if p.query.Lost {
			return h != nil && !h.Lost.IsZero()
		}
		return h != nil && p.query.Arrived(h) && (p.query.Status != idem.Released || h.Forgotten != nil)
	}
	h := protocol.DecodeHistory(kv.Value)
	if !takes(h) {
		return nil
	}
	f, written, err := p.store.eventOf(ctx, h.Scope)
	if err != nil || f.Arrivals == nil {
		return err
	}
	for _, other := range written { // several processes may know of it
		if other.ModRevision > kv.ModRevision && takes(protocol.DecodeHistory(other.Value)) {
			return nil
		}
	}
	// it was shown among the events that have an execution
	if p.query.Decision == "" && !p.query.Lost && f.Facts() != nil {
		return nil
	}
	p.addIfMatches(f, f.Revision)
	return nil
}

// executionIn decodes a record, a lock or a queue entry.
func (s *Reader) executionIn(kv *mvccpb.KeyValue) (f idem.Found, err error) {
	if strings.HasPrefix(string(kv.Key), s.options.Layout.All(protocol.KindRecords)) {
		r, _, err := protocol.DecodeRecord(kv)
		if err != nil {
			return f, err
		}
		r.Revision = kv.ModRevision
		r.DropBody()
		return idem.Found{Record: r}, nil
	}
	l, err := protocol.LockAt(kv)
	if err != nil {
		return f, err
	}
	waits := strings.HasPrefix(string(kv.Key), s.options.Layout.All(protocol.KindQueue))
	if waits {
		l.Token, l.Revision = 0, 0 // it has no lock
	}
	return idem.Found{Lock: l, InQueue: waits}, nil
}

// foundIn is executionIn without what a newer release has written, and without a cooling lock,
// whose execution has ended and is in its record.
func (s *Reader) foundIn(kv *mvccpb.KeyValue) (f idem.Found, ok bool) {
	f, err := s.executionIn(kv)
	return f, err == nil && (f.Lock == nil || !f.Lock.Cooling)
}

// completeFound adds what is stored elsewhere than in the values, which were read at revision.
func (p *executionPage) completeFound(ctx context.Context, revision int64) error {
	var locks []*idem.Lock
	for _, f := range p.found {
		if f.Lock != nil && !f.InQueue {
			locks = append(locks, f.Lock)
		}
	}
	if err := p.store.setLiveness(ctx, locks, revision); err != nil {
		return commit.Unavailable(err)
	}
	counts := make([]clientv3.Op, len(p.found))
	for i := range p.found {
		counts[i] = p.store.ReadCounts(p.found[i].ID())
	}
	answers, _, err := p.store.options.Pool.ReadEach(ctx, counts)
	if err != nil {
		return commit.Unavailable(err)
	}
	for i := range p.found {
		p.found[i].Duplicates = p.store.counts.Count(p.found[i].ID(), answers[i].GetResponseRange().Kvs)
	}
	return nil
}

// nextCursor returns what the next page begins behind, "" if there is none: a kind of keys, and a
// revision.
func (p *executionPage) nextCursor() string {
	if !p.isFull() {
		return ""
	}
	return p.next
}
