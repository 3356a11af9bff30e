package history

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

// ListLease implements commit.List. It repeats until the answer is definite; writing twice does no
// harm.
func (o *Options) ListLease(ctx context.Context, kind string, lease clientv3.LeaseID, retention time.Duration) error {
	value := protocol.EncodeLease(protocol.ListedLease{Chain: o.Writer + "/" + retention.String(), At: o.Clock.Now(),
		Open: int64(commit.OpenFor(retention))})
	note := protocol.Note(o.Layout.All(protocol.KindLeases+kind)+strconv.FormatInt(int64(lease), 16),
		protocol.Leased{Value: value, Lease: lease})
	for pause := link.NewBackoff(); ; {
		_, err := o.Pool.Commit(ctx, o.Pool.Attempt, nil, protocol.Writes{note})
		switch {
		case err == nil:
			return nil
		case link.Definite(err), link.Refuses(err), pause.Wait(ctx) != nil:
			return fmt.Errorf("list a lease: %w", err)
		}
	}
}

// indexTries bounds how often an index is sent.
const indexTries = 3

// IndexLease implements commit.List.
func (o *Options) IndexLease(ctx context.Context, kind string, lease clientv3.LeaseID, rows []protocol.Row) {
	index, fields := protocol.EncodeLeaseIndex(rows)
	pause := link.NewBackoff()
	for range indexTries {
		err := o.writeIndex(ctx, kind, lease, index, fields)
		if err == nil || link.Definite(err) || pause.Wait(ctx) != nil {
			return
		}
	}
}

func (o *Options) writeIndex(ctx context.Context, kind string, lease clientv3.LeaseID, index *protocol.LeaseIndex,
	fields map[protocol.Field][]byte) error {
	key := o.Layout.All(protocol.KindLeases+kind) + strconv.FormatInt(int64(lease), 16)
	kvs, _, err := o.Pool.Keys(ctx, key)
	if err != nil || len(kvs) == 0 { // it has run out
		return err
	}
	listed, ok := protocol.DecodeLease(kvs[0].Value)
	if !ok {
		return nil
	}
	listed.Index = index
	writes := protocol.Writes{protocol.Note(key, protocol.Leased{Value: protocol.EncodeLease(listed), Lease: lease})}
	for field, value := range fields {
		writes = append(writes, protocol.Note(o.Layout.Index(kind, lease, field),
			protocol.Leased{Value: value, Lease: lease}))
	}
	_, err = o.Pool.Commit(ctx, o.Pool.Attempt, nil, writes)
	return err
}

// leaseIndexes are the leases with records and arrivals, as an index of these.
type leaseIndexes struct {
	options *Options
	counts  *Duplicates
	// busy holds a token while missing indexes are written.
	busy chan struct{}
}

// unwrittenRows returns the rows of a lease of this process whose index is not written yet; nil =
// there are none.
func (s *leaseIndexes) unwrittenRows(kind string, lease clientv3.LeaseID) []protocol.Row {
	if kind == protocol.KindRecords {
		return s.options.Rows(lease)
	}
	return s.counts.leases.Rows(lease)
}

// writeMissingIndexes writes, in the background, the index of leases whose processes have ended
// without writing it, from what is on them. One search at a time does so.
func (s *leaseIndexes) writeMissingIndexes(spans []leaseSpan) {
	now := s.options.Clock.Now()
	spans = slices.DeleteFunc(slices.Clone(spans),
		func(st leaseSpan) bool { return st.index != nil || !st.isOver(now) })
	if len(spans) == 0 {
		return
	}
	select {
	case s.busy <- struct{}{}:
	default:
		return
	}
	if !s.options.Tasks.Help(func(ctx context.Context) {
		defer func() { <-s.busy }()
		for i := range spans {
			if rows, whole := s.rowsOn(ctx, &spans[i]); whole {
				s.options.IndexLease(ctx, spans[i].kind, spans[i].lease, rows)
			}
		}
	}) {
		<-s.busy
	}
}

// isOver reports whether nothing can be written on the lease any more, by requests on their way
// included.
func (st *leaseSpan) isOver(now time.Time) bool {
	return st.before < math.MaxInt64 && st.to.Add(clockSkew).Before(now)
}

// rowsOn reads what is on a lease. whole is false if a part cannot be read: what an index lacks is
// not found.
func (s *leaseIndexes) rowsOn(ctx context.Context, st *leaseSpan) (rows []protocol.Row, whole bool) {
	attached, err := s.options.Pool.Lease(ctx, st.lease, clientv3.WithAttachedKeys())
	if err != nil {
		return nil, false
	}
	root := s.options.Layout.All(st.kind)
	var ops []clientv3.Op
	for _, key := range attached.Keys {
		if strings.HasPrefix(string(key), root) {
			ops = append(ops, clientv3.OpGet(string(key)))
		}
	}
	for some := range slices.Chunk(ops, RecordBatch) {
		answers, _, err := s.options.Pool.ReadEach(ctx, some)
		if err != nil {
			return nil, false
		}
		for _, a := range answers {
			kv := protocol.First(a)
			switch {
			case kv == nil:
			case st.kind == protocol.KindRecords:
				r, _, err := protocol.DecodeRecord(kv)
				if err != nil {
					return nil, false
				}
				rows = append(rows, protocol.RowOf(r))
			default:
				h := protocol.DecodeHistory(kv.Value)
				if h == nil {
					return nil, false
				}
				rows = append(rows, protocol.RowOfArrivals(h))
			}
		}
	}
	return rows, true
}
