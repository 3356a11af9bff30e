package history

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// How the newest of a million keys are found. Keys that end with their retention share leases, a
// lease takes keys for a short time only, and etcd lists the keys on a lease without reading their
// values. So a list of the leases, one key for each, is a list of the times: the first page reads
// the keys on the leases that still take some, and each further one those on the leases before.
// Order and cursor are the revisions at which the keys were written, which no clock can move. A
// search goes through the same leases, and reads only the values that match by their index
// (protocol.LeaseIndex). The event ID is at the beginning of its keys, so a search for that needs
// no list at all.

const (
	clockSkew = 5 * time.Minute // clocks of processes may differ by this much, and a request takes less
	maxSpans  = 256             // leases whose keys one page reads, besides those that still take some
	spanReads = 8               // of them at a time
	fewKeys   = 100             // keys that are wanted before more leases are read at a time
)

// leaseSpan is a lease with keys, and when they were written.
type leaseSpan struct {
	lease         clientv3.LeaseID
	after, before int64     // revisions; before math.MaxInt64 = it may take more
	from, to      time.Time // by the clock of its process
	open          time.Duration

	kind  string
	index *protocol.LeaseIndex      // nil = none that can be read
	own   map[protocol.Field][]byte // the fields of that index if this process has it in memory; nil = they are in etcd
	rows  map[int]bool              // of the index, those that may match; nil = all
	names map[string]bool           // beginnings of the names of the keys that may match; nil = all keys
}

// readSpans returns all leases with keys of that kind; those first that may have the newest.
func (s *leaseIndexes) readSpans(ctx context.Context, kind string) ([]leaseSpan, error) {
	prefix := s.options.Layout.All(protocol.KindLeases + kind)
	kvs, _, err := s.options.Pool.Keys(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	var all []leaseSpan
	chains := map[string][]int{}
	for _, kv := range kvs {
		l, ok := protocol.DecodeLease(kv.Value)
		id, err := strconv.ParseInt(strings.TrimPrefix(string(kv.Key), prefix), 16, 64)
		if !ok || err != nil {
			continue
		}
		chains[l.Chain] = append(chains[l.Chain], len(all))
		span := leaseSpan{lease: clientv3.LeaseID(id), after: kv.CreateRevision, before: math.MaxInt64, from: l.At,
			to: l.At.Add(time.Duration(l.Open)), open: time.Duration(l.Open), kind: kind}
		if l.Index.Known() {
			span.index = l.Index
		}
		all = append(all, span)
	}
	for _, chain := range chains {
		slices.SortFunc(chain, func(a, b int) int { return cmp.Compare(all[a].after, all[b].after) })
		for i := 2; i < len(chain); i++ { // it is requested while the one before it still takes keys
			old, next := &all[chain[i-2]], &all[chain[i]]
			old.before, old.to = next.after, earlierTime(old.to, next.from)
		}
	}
	closeByTime(all, chains)
	slices.SortFunc(all, newerFirst)
	return all, nil
}

func earlierTime(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// closeByTime finds the end of the leases of processes that have ended: a process that has granted
// a later lease must have let more time pass than they take keys for. Two leases of that process
// prove it, so that the clocks of two processes are not compared.
func closeByTime(all []leaseSpan, chains map[string][]int) {
	for i := range all {
		old := &all[i]
		if old.before < math.MaxInt64 { // its own chain is more precise
			continue
		}
		enough := old.open + clockSkew
		for _, chain := range chains {
			first, _ := slices.BinarySearchFunc(chain, old.after, func(j int, after int64) int {
				return cmp.Compare(all[j].after, after)
			})
			for _, j := range chain[first:] {
				if all[j].from.Sub(all[chain[first]].from) >= enough {
					old.before = min(old.before, all[j].after)
					break
				}
			}
		}
	}
}

// past goes through the keys of some kinds, the newest first.
type past struct {
	store  *Reader
	kinds  []string
	may    func(key string) bool
	want   *wanted
	behind place // only what follows it

	spans     []leaseSpan // those that are left
	sifted    int         // the first of them whose indexes were read
	siftChunk int
	opened    int // besides those that may take more
	chunk     int
	found     []place // of those that were opened; the newest first
}

// newPast returns the past of the keys that may match q; each is searched below the root of its
// kind.
func (s *Reader) newPast(ctx context.Context, kinds []string, q *idem.ExecutionQuery, behind place) (*past, error) {
	p := &past{store: s, kinds: kinds, may: keyFilter(q), want: newWanted(q), behind: behind, siftChunk: 16, chunk: 1}
	for _, kind := range kinds {
		all, err := s.leases.readSpans(ctx, kind)
		if err != nil {
			return nil, err
		}
		for _, st := range all {
			if st.after < behind.revision && p.want.mayMatchSpan(&st) {
				p.spans = append(p.spans, st)
			}
		}
	}
	slices.SortStableFunc(p.spans, newerFirst)
	return p, nil
}

// newerFirst sorts those first that may have the newest.
func newerFirst(a, b leaseSpan) int {
	return cmp.Or(cmp.Compare(b.before, a.before), cmp.Compare(b.after, a.after))
}

// keyFilter returns which keys of records and arrivals may match a query: they begin with the key
// of the event and the hash of its workflow.
func keyFilter(q *idem.ExecutionQuery) func(key string) bool {
	workflow := ""
	if one := q.OneWorkflow(); one != "" {
		workflow = protocol.Hash16(one)
	}
	ofID, _ := idem.HashesOfPrefix(q.IDPrefix)
	beginning := keyBeginning(q)
	return func(key string) bool {
		event, w, ok := protocol.EventAt(key)
		return ok && strings.HasPrefix(string(event), beginning) && strings.HasPrefix(w, workflow) &&
			strings.HasPrefix(w, ofID)
	}
}

// keyBeginning returns the beginning of the keys of records and arrivals that match a query, as far
// as it is known.
func keyBeginning(q *idem.ExecutionQuery) string {
	_, beginning := idem.HashesOfPrefix(q.IDPrefix)
	if half := protocol.Hex16(idem.HashEventID(q.EventID)); q.EventID != "" {
		beginning = half
	}
	if len(q.Key) > len(beginning) {
		beginning = q.Key
	}
	return beginning
}

// nextKeys returns at most n keys, the newest before those that it returned before. None, and over
// false: the page has read enough.
func (p *past) nextKeys(ctx context.Context, n int) (some []place, over bool, err error) {
	for len(p.spans) > 0 && (len(p.found) == 0 || p.spans[0].before > p.found[0].revision) {
		// otherwise the next page would begin at the same place
		if p.opened >= maxSpans && p.spans[0].before < p.behind.revision {
			return nil, false, nil
		}
		if err := p.openLeases(ctx); err != nil {
			return nil, false, err
		}
	}
	for len(some) < n && len(p.found) > 0 && (len(p.spans) == 0 || p.spans[0].before <= p.found[0].revision) {
		some, p.found = append(some, p.found[0]), p.found[1:]
	}
	if len(some) > 0 {
		p.behind = some[len(some)-1]
	}
	return some, len(some) == 0, nil
}

// resumePlace returns the place that the next page goes on behind: everything found but not
// returned follows it, too.
func (p *past) resumePlace() place {
	if len(p.spans) > 0 && p.spans[0].before < p.behind.revision {
		return place{p.spans[0].before, lastKey}
	}
	return p.behind
}

// siftNext reads the indexes of the next leases, of more at a time the longer it goes on.
func (p *past) siftNext(ctx context.Context) error {
	n := 0
	for n < len(p.spans) && (n < p.siftChunk || p.spans[n].before == math.MaxInt64) {
		n++
	}
	some, err := p.siftSpans(ctx, p.spans[:n])
	p.spans, p.sifted, p.siftChunk = slices.Concat(some, p.spans[n:]), len(some), min(2*p.siftChunk, maxSpans)
	return err
}

// openLeases reads the keys of the next leases: of all that may have something newer than what was
// found, of those with few keys that may match, and of more at a time the longer none is found.
func (p *past) openLeases(ctx context.Context) error {
	if p.sifted == 0 {
		if err := p.siftNext(ctx); err != nil || p.sifted == 0 {
			return err
		}
	}
	n, few := 0, 0
	for n < p.sifted && (n < p.chunk || p.spans[n].before == math.MaxInt64 ||
		few < fewKeys && p.spans[n].names != nil) {
		few += len(p.spans[n].names)
		n++
	}
	some := p.spans[:n]
	p.spans, p.sifted, p.chunk = p.spans[n:], p.sifted-n, min(2*p.chunk, maxSpans/4)
	for i := range some {
		if some[i].before < math.MaxInt64 {
			p.opened++
		}
	}
	found, errs := make([][]place, len(some)), make([]error, len(some))
	var wg sync.WaitGroup
	turns := make(chan struct{}, spanReads)
	for i := range some {
		turns <- struct{}{}
		wg.Go(func() {
			found[i], errs[i] = p.keysOn(ctx, &some[i])
			<-turns
		})
	}
	wg.Wait()
	p.found = slices.Concat(p.found, slices.Concat(found...))
	if len(p.found) > 0 {
		p.chunk = 1
	}
	slices.SortFunc(p.found, place.compare)
	return cmp.Or(errs...)
}

// keysOn returns the keys on a lease that the search is for.
func (p *past) keysOn(ctx context.Context, span *leaseSpan) ([]place, error) {
	attached, err := p.store.options.Pool.Lease(ctx, span.lease, clientv3.WithAttachedKeys())
	if err != nil {
		return nil, err
	}
	var ops []clientv3.Op
	for _, key := range attached.Keys { // none if it has expired
		for _, kind := range p.kinds {
			if below, is := strings.CutPrefix(string(key), p.store.options.Layout.All(kind)); is && p.may(below) &&
				span.mayHave(below) {
				ops = append(ops, clientv3.OpGet(string(key), clientv3.WithKeysOnly()))
			}
		}
	}
	answers, _, err := p.store.options.Pool.ReadEach(ctx, ops)
	if err != nil {
		return nil, err
	}
	var found []place
	for _, a := range answers {
		if kv := protocol.First(a); kv != nil {
			if at := (place{kv.ModRevision, string(kv.Key)}); p.behind.isBefore(at) {
				found = append(found, at)
			}
		}
	}
	return found, nil
}
