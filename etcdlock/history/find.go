package history

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// FindValues is how many values a search reads at a time: a record may be large.
const FindValues = 16

// findKeys is the same for keys alone.
const findKeys = 1000

// Scope finds the scope of an execution, which never changes. The ID tells where to look: at the
// records of its event, at the locks and in the queues of its workflow. It holds hashes of these
// only, so each value found there is compared with the whole ID. All is read at one revision: an
// execution that moves meanwhile is not missed.
func (s *Reader) Scope(ctx context.Context, id idem.ExecutionID) (idem.Scope, error) {
	workflow, half, err := id.Parse()
	if err != nil {
		return idem.Scope{}, fmt.Errorf("%w: %w", idem.ErrNoExecution, err)
	}
	w := protocol.Hex16(workflow) + "/"
	prefixes := []string{s.options.Layout.All(protocol.KindRecords) + protocol.Beginning(protocol.Hex16(half)),
		s.options.Layout.All(protocol.KindLocks) + w, s.options.Layout.All(protocol.KindQueue) + w}
	ops := make([]clientv3.Op, len(prefixes))
	for i, p := range prefixes {
		ops[i] = clientv3.OpGet(p, clientv3.WithPrefix(), clientv3.WithLimit(FindValues))
	}
	answers, revision, err := s.options.Pool.Read(ctx, ops...)
	if err != nil {
		return idem.Scope{}, commit.Unavailable(err)
	}
	search := &search{store: s, id: id, workflow: protocol.Hex16(workflow), half: protocol.Hex16(half),
		revision: revision}
	for _, a := range answers {
		if slices.ContainsFunc(a.GetResponseRange().Kvs, search.matchesExecution) {
			return search.scope, nil
		}
	}
	for i, a := range answers {
		if page := a.GetResponseRange(); page.More {
			if err := search.readOn(ctx, prefixes[i], page.Kvs[len(page.Kvs)-1].Key); err != nil {
				return idem.Scope{}, commit.Unavailable(err)
			}
			if search.found {
				return search.scope, nil
			}
		}
	}
	if search.unread != nil {
		return idem.Scope{}, commit.Unavailable(search.unread)
	}
	return idem.Scope{}, idem.ErrNoExecution
}

// search is the search for the scope of one execution.
type search struct {
	store    *Reader
	id       idem.ExecutionID
	workflow string // its hash, in hex
	half     string // of the key, in hex
	revision int64

	found  bool
	scope  idem.Scope
	unread error // a value that may match and cannot be read
}

// matchesExecution reports whether kv is about the execution.
func (f *search) matchesExecution(kv *mvccpb.KeyValue) bool {
	found, err := f.store.executionIn(kv)
	if err != nil {
		f.unread = fmt.Errorf("%q: %w", kv.Key, err)
		return false
	}
	e := found.Facts()
	if e.Execution == f.id || findAttempt(e.Earlier, f.id) != nil {
		f.found, f.scope = true, e.Scope
	}
	return f.found
}

func findAttempt(attempts []idem.Attempt, id idem.ExecutionID) *idem.Attempt {
	i := slices.IndexFunc(attempts, func(a idem.Attempt) bool { return a.Execution == id })
	if i < 0 {
		return nil
	}
	return &attempts[i]
}

// readOn searches the keys after last. It reads the keys alone: that of an event shows whether it
// may be the one.
func (f *search) readOn(ctx context.Context, prefix string, last []byte) error {
	pool := f.store.options.Pool
	keys := &link.Scan{From: string(last) + "\x00", End: clientv3.GetPrefixRangeEnd(prefix), Batch: findKeys,
		KeysOnly: true, Revision: f.revision}
	for kv, err := range pool.All(ctx, keys) {
		if err != nil {
			return err
		}
		if !f.mayMatch(string(kv.Key)) {
			continue
		}
		whole, _, err := pool.Keys(ctx, string(kv.Key), clientv3.WithRev(f.revision))
		if err != nil || len(whole) > 0 && f.matchesExecution(whole[0]) {
			return err
		}
	}
	return nil
}

// mayMatch reports whether a key may belong to the execution: a record of its workflow, a
// workflow's own lock, or a key that ends with the key of an event that begins right.
func (f *search) mayMatch(key string) bool {
	if name, is := strings.CutPrefix(key, f.store.options.Layout.All(protocol.KindRecords)); is {
		_, workflow, _ := protocol.EventAt(name)
		return workflow == f.workflow
	}
	parts := strings.Split(strings.TrimPrefix(key, f.store.options.Layout.Root), "/") // kind, workflow's hash, the rest
	return parts[0]+"/" == protocol.KindLocks && len(parts) == 3 || strings.HasPrefix(parts[len(parts)-1], f.half)
}

// AddArrivals adds the other arrivals of the event of an execution.
func (s *Reader) AddArrivals(ctx context.Context, f *idem.Found, event idem.Scope) error {
	answers, _, err := s.options.Pool.Read(ctx, s.readArrivals(event))
	if err != nil {
		return commit.Unavailable(err)
	}
	f.Arrivals = s.counts.arrivalsOf(event, answers[0].GetResponseRange().Kvs)
	return nil
}
