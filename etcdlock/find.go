package etcdlock

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

const (
	findValues = 16   // values that a search reads at a time: a record may be large
	findKeys   = 1000 // keys alone
)

// scopeOf finds the scope of an execution, which never changes. The ID says where to look: at the records of its event, at the locks and in
// the queues of its workflow. It holds hashes of these only, so each value found there is asked for the whole ID. All is read
// at one revision: an execution that moves meanwhile is not missed.
func (s *Control) scopeOf(ctx context.Context, id idem.ExecutionID) (idem.Scope, error) {
	workflow, half, err := id.Parse()
	if err != nil {
		return idem.Scope{}, fmt.Errorf("%w: %w", idem.ErrNoExecution, err)
	}
	w := protocol.Hex16(workflow) + "/"
	prefixes := []string{s.layout.Records() + protocol.Hex16(half), s.layout.Locks() + w, s.layout.Queues() + w}
	ops := make([]clientv3.Op, len(prefixes))
	for i, p := range prefixes {
		ops[i] = clientv3.OpGet(p, clientv3.WithPrefix(), clientv3.WithLimit(findValues))
	}
	answers, revision, err := s.read(ctx, ops...)
	if err != nil {
		return idem.Scope{}, unavailable(err)
	}
	search := &search{store: s, id: id, workflow: protocol.Hex16(workflow), half: protocol.Hex16(half), revision: revision}
	for _, a := range answers {
		for _, kv := range a.GetResponseRange().Kvs {
			if search.asks(kv) {
				return search.scope, nil
			}
		}
	}
	for i, a := range answers {
		if page := a.GetResponseRange(); page.More {
			if err := search.goOn(ctx, prefixes[i], page.Kvs[len(page.Kvs)-1].Key); err != nil {
				return idem.Scope{}, unavailable(err)
			}
			if search.found {
				return search.scope, nil
			}
		}
	}
	if search.unread != nil {
		return idem.Scope{}, unavailable(search.unread)
	}
	return idem.Scope{}, idem.ErrNoExecution
}

// search is for the scope of one execution.
type search struct {
	store    *Control
	id       idem.ExecutionID
	workflow string // its hash, in hex
	half     string // of the key, in hex
	revision int64

	found  bool
	scope  idem.Scope
	unread error // a value that may be it and cannot be read
}

// asks reports whether kv knows the execution.
func (f *search) asks(kv *mvccpb.KeyValue) bool {
	var scope idem.Scope
	var execution idem.ExecutionID
	var earlier []idem.Attempt
	var err error
	if strings.HasPrefix(string(kv.Key), f.store.layout.Records()) {
		var r *idem.Record
		if r, _, err = protocol.DecodeRecord(kv.Value); err == nil {
			scope, execution, earlier = r.Scope, r.Execution, r.Earlier
		}
	} else {
		var l *idem.Lock
		if l, err = protocol.DecodeLock(kv.Value); err == nil {
			scope, execution, earlier = l.Scope, l.Execution, l.Earlier
		}
	}
	if err != nil {
		f.unread = fmt.Errorf("%s: %w", kv.Key, err)
		return false
	}
	if execution == f.id || short(earlier, f.id) != nil {
		f.found, f.scope = true, scope
	}
	return f.found
}

func short(attempts []idem.Attempt, id idem.ExecutionID) *idem.Attempt {
	i := slices.IndexFunc(attempts, func(a idem.Attempt) bool { return a.Execution == id })
	if i < 0 {
		return nil
	}
	return &attempts[i]
}

// goOn searches the keys after last. It reads the keys alone: that of an event shows whether it may be the one.
func (f *search) goOn(ctx context.Context, prefix string, last []byte) error {
	for from, end := string(last)+"\x00", clientv3.GetPrefixRangeEnd(prefix); ; {
		answers, _, err := f.store.read(ctx, clientv3.OpGet(from, clientv3.WithRange(end), clientv3.WithLimit(findKeys), clientv3.WithKeysOnly(), clientv3.WithRev(f.revision)))
		if err != nil {
			return err
		}
		page := answers[0].GetResponseRange()
		for _, kv := range page.Kvs {
			if !f.mayBe(string(kv.Key)) {
				continue
			}
			answers, _, err := f.store.read(ctx, clientv3.OpGet(string(kv.Key), clientv3.WithRev(f.revision)))
			if err != nil {
				return err
			}
			if whole := protocol.First(answers[0]); whole != nil && f.asks(whole) {
				return nil
			}
		}
		if !page.More || len(page.Kvs) == 0 {
			return nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}

// mayBe reports whether a key may belong to the execution: a record of its workflow, a workflow's own lock, or what ends with the key of an event
// that begins right.
func (f *search) mayBe(key string) bool {
	if strings.HasPrefix(key, f.store.layout.Records()) {
		return strings.HasSuffix(key, "/"+f.workflow)
	}
	parts := strings.Split(strings.TrimPrefix(key, f.store.layout.Root), "/") // kind, workflow's hash, the rest
	return parts[0]+"/" == protocol.KindLocks && len(parts) == 3 || strings.HasPrefix(parts[len(parts)-1], f.half)
}

// Execution is where an execution is now. What it meets dead it buries first, so that the answer is the truth; where etcd takes no burial now,
// the lock says that it is Dead. The error is idem.ErrNoExecution or idem.ErrStoreUnavailable.
func (s *Control) Execution(ctx context.Context, id idem.ExecutionID) (*idem.Found, error) {
	scope, err := s.scopeOf(ctx, id)
	if err != nil {
		return nil, err
	}
	for buried := int64(0); ; {
		at, err := s.stateOf(ctx, id, scope)
		if err != nil {
			return nil, err
		}
		if at.Runs(id) && at.Lock.Dead && at.Lock.Revision != buried {
			buried = at.Lock.Revision
			if s.bury(ctx, at.Lock) == nil {
				continue
			}
		}
		found, err := at.found()
		if err != nil {
			return nil, err
		}
		found.Attempts = at.attempts()
		return found, s.addArrivals(ctx, found, scope)
	}
}

// attempts are all executions of the event in short, the oldest first: the newest knows those before it.
func (at *executionState) attempts() []idem.Attempt {
	newest := at.CopyRuns(at.scope.Key)
	if newest == nil {
		newest = at.Copied
	}
	switch {
	case newest != nil:
		return append(slices.Clone(newest.Earlier), idem.Attempt{
			Execution: newest.Execution, Status: (&idem.Found{Lock: newest, Place: newest == at.Copied}).Status(), StartedAt: newest.StartedAt,
			Abort: newest.Cancel, TraceParent: newest.TraceParent,
		})
	case at.Record != nil:
		return append(slices.Clone(at.Record.Earlier), at.Record.Short())
	}
	return nil
}

// addArrivals adds how the event of an execution arrived besides.
func (s *Control) addArrivals(ctx context.Context, f *idem.Found, event idem.Scope) error {
	answers, _, err := s.read(ctx, s.readArrivals(event))
	if err != nil {
		return unavailable(err)
	}
	f.Arrivals = s.duplicates.arrivalsOf(event, answers[0].GetResponseRange().Kvs)
	return nil
}
