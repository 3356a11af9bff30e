package history

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// wanted is what a query matches, as far as the index of a lease can tell.
type wanted struct {
	query *idem.ExecutionQuery
	// probes: for each element, one of its probes must find a row that matches.
	probes [][]protocol.Probe
}

func newWanted(q *idem.ExecutionQuery) *wanted {
	w := &wanted{query: q}
	add := func(some ...protocol.Probe) { w.probes = append(w.probes, some) }
	if one := q.OneWorkflow(); one != "" {
		add(protocol.ProbeWorkflow(one))
	} else if beginning, _, _ := strings.Cut(q.Workflow, "*"); beginning != "" {
		add(protocol.ProbeName(beginning))
	}
	if q.Prefix != "" {
		add(protocol.ProbeName(q.Prefix))
	}
	if digits, _ := idem.HashesOfPrefix(q.IDPrefix); digits != "" {
		add(protocol.ProbeHash16(digits))
	}
	if q.TraceID != "" {
		add(protocol.ProbeTrace(q.TraceID))
	}
	if q.Label.Value != "" {
		add(protocol.ProbeLabel(q.Label.Value))
	}
	if q.SearchText != "" {
		some := []protocol.Probe{protocol.ProbeName(q.SearchText), protocol.ProbeEvent(q.SearchText)}
		for _, label := range q.SearchLabels() {
			some = append(some, protocol.ProbeLabel(label.Value))
		}
		if len(q.SearchText) == hex.EncodedLen(len(idem.TraceContext{}.Trace)) {
			some = append(some, protocol.ProbeTrace(q.SearchText))
		}
		add(some...)
	}
	return w
}

// mayMatchSpan reports whether something on a lease may match.
func (w *wanted) mayMatchSpan(st *leaseSpan) bool {
	from, to := st.from.Add(-clockSkew), st.to.Add(clockSkew)
	if st.index != nil {
		from, to = st.index.From, st.index.To
	}
	return w.isAfterSince(to) && w.isBeforeUntil(st.kind, from) && (st.index == nil || w.mayMatchSomeClass(st))
}

// mayMatchSomeClass reports whether one of the classes on a lease with an index may match.
func (w *wanted) mayMatchSomeClass(st *leaseSpan) bool {
	for i := range st.index.Classes {
		if w.mayMatchClass(st.kind, &st.index.Classes[i]) {
			return true
		}
	}
	return st.index.Classes == nil
}

// matchesEveryClass reports whether class and time of all on a lease with an index match.
func (w *wanted) matchesEveryClass(st *leaseSpan) bool {
	for i := range st.index.Classes {
		if !w.mayMatchClass(st.kind, &st.index.Classes[i]) {
			return false
		}
	}
	return st.index.Classes != nil && w.isAfterSince(st.index.From) && w.isBeforeUntil(st.kind, st.index.To)
}

func (w *wanted) isAfterSince(at time.Time) bool {
	return w.query.Since.IsZero() || !at.Before(w.query.Since)
}

// isBeforeUntil reports whether at is not after the query's end. Of arrivals it is not asked: a key
// that is written again moves, and shows what came before.
func (w *wanted) isBeforeUntil(kind string, at time.Time) bool {
	return w.query.Until.IsZero() || kind == protocol.KindArrivals || !at.After(w.query.Until)
}

// mayMatchClass reports whether rows of a class may match; nil = it is not known.
func (w *wanted) mayMatchClass(kind string, c *protocol.Class) bool {
	q := w.query
	switch {
	case c == nil:
		return true
	case kind == protocol.KindArrivals:
		return (!q.Lost || strings.Contains(","+c.Decisions, ","+protocol.ClassLost+",")) &&
			(q.Decision == "" || strings.Contains(","+c.Decisions, ","+string(q.Decision)+",")) &&
			(q.Status != idem.Released || c.Forgotten) && (q.Status != idem.Refused || !c.Forgotten)
	}
	return (q.Route == "" || c.Route == q.Route) && (q.Status == "" || c.Status == q.Status) &&
		(q.Outcome == "" || c.Outcome == q.Outcome)
}

// siftSpans reads the indexes of some leases and returns those that may have a match, with the
// names of the keys that may match.
func (p *past) siftSpans(ctx context.Context, spans []leaseSpan) (left []leaseSpan, err error) {
	p.store.leases.writeMissingIndexes(spans)
	var asked []*leaseSpan
	for i := range spans {
		if p.store.leases.useOwnIndex(&spans[i]); spans[i].index != nil {
			asked = append(asked, &spans[i])
		}
	}
	for _, some := range p.want.probes {
		if asked, err = p.runProbes(ctx, asked, some); err != nil {
			return nil, err
		}
	}
	asked = slices.DeleteFunc(asked, func(st *leaseSpan) bool { return st.rows == nil && p.want.matchesEveryClass(st) })
	fields, err := p.readFields(ctx, asked, protocol.FieldRows)
	if err != nil {
		return nil, err
	}
	for i, st := range asked {
		st.noteMatchingNames(p.want, fields[i])
	}
	return slices.DeleteFunc(spans, func(st leaseSpan) bool { return st.names != nil && len(st.names) == 0 }), nil
}

// runProbes runs some probes of which one must find a row, and returns the leases that have such
// rows.
func (p *past) runProbes(ctx context.Context, asked []*leaseSpan, some []protocol.Probe) (left []*leaseSpan,
	err error) {
	found := make([]map[int]bool, len(asked))
	for i := range found {
		found[i] = map[int]bool{}
	}
	read, err := p.readProbedFields(ctx, asked, some)
	if err != nil {
		return nil, err
	}
	for _, probe := range some {
		for i, st := range asked {
			if found[i] == nil {
				continue
			}
			hit := func(row int) {
				if st.rows == nil || st.rows[row] {
					found[i][row] = true
				}
			}
			if probe.Search(read[probe.Field][i], hit) != nil {
				found[i] = nil // the lease has run out, or the field is not what it should be
			}
		}
	}
	for i, st := range asked {
		switch {
		case found[i] == nil:
		case len(found[i]) == 0:
			st.names = map[string]bool{}
		default:
			st.rows = found[i]
			left = append(left, st)
		}
	}
	return left, nil
}

// readProbedFields reads the fields that probes search.
func (p *past) readProbedFields(ctx context.Context, of []*leaseSpan,
	some []protocol.Probe) (map[protocol.Field][][]byte,
	error) {
	read := map[protocol.Field][][]byte{}
	for _, probe := range some {
		if read[probe.Field] != nil {
			continue
		}
		fields, err := p.readFields(ctx, of, probe.Field)
		if err != nil {
			return nil, err
		}
		read[probe.Field] = fields
	}
	return read, nil
}

// noteMatchingNames notes the names of the rows that may match.
func (st *leaseSpan) noteMatchingNames(w *wanted, field []byte) {
	rows, err := st.index.DecodeRows(field)
	if err != nil {
		return // as above
	}
	st.names = map[string]bool{}
	for i := range rows {
		if r := &rows[i]; (st.rows == nil || st.rows[i]) && w.mayMatchClass(st.kind, r.Class) &&
			w.isAfterSince(r.At.Add(time.Second)) && w.isBeforeUntil(st.kind, r.At) {
			st.names[r.Name] = true
		}
	}
}

// mayHave reports whether a key of that name on the lease may match.
func (st *leaseSpan) mayHave(name string) bool {
	return st.names == nil || st.names[name[:min(len(name), protocol.RowBytes)]]
}

// useOwnIndex takes the index of a lease from memory if this process has it.
func (s *leaseIndexes) useOwnIndex(st *leaseSpan) {
	if st.index != nil {
		return
	}
	if rows := s.unwrittenRows(st.kind, st.lease); len(rows) > 0 {
		st.index, st.own = protocol.EncodeLeaseIndex(rows)
	}
}

// readFields reads a field of the index of each lease; nil = it is gone.
func (p *past) readFields(ctx context.Context, of []*leaseSpan, field protocol.Field) ([][]byte, error) {
	all := make([][]byte, len(of))
	var ops []clientv3.Op
	var places []int
	for i, st := range of {
		if st.own != nil {
			all[i] = st.own[field]
			continue
		}
		ops, places = append(ops, clientv3.OpGet(p.store.options.Layout.Index(st.kind, st.lease, field))),
			append(places, i)
	}
	answers, _, err := p.store.options.Pool.ReadEach(ctx, ops)
	if err != nil {
		return nil, err
	}
	for i, a := range answers {
		if kv := protocol.First(a); kv != nil {
			all[places[i]] = kv.Value
		}
	}
	return all, nil
}
