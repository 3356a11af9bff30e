package etcdlock

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

const (
	defaultPage = 100
	maxPage     = 500 // and so many keys a page looks at, whatever it shows
	readOps     = 100 // etcd takes 128 in one request
)

// walk makes one page of a list: it goes through keys in order, all at one revision, until the page is full.
type walk struct {
	store    *Control
	limit    int // of what is shown
	shown    int
	left     int    // keys that it may still look at
	batch    int    // values that it reads at a time
	last     string // the last key that it has looked at
	revision int64
}

func (s *Control) newWalk(limit, batch int) *walk {
	if limit <= 0 {
		limit = defaultPage
	}
	return &walk{store: s, limit: min(limit, maxPage), left: maxPage, batch: batch}
}

func (w *walk) full() bool { return w.shown >= w.limit || w.left <= 0 }

// through shows the keys of a range to show, which reports whether it took one. It returns early when the page is full.
func (w *walk) through(ctx context.Context, keys *windows, show func(*mvccpb.KeyValue) bool) error {
	for !w.full() && !keys.over() {
		n, end := min(w.batch, w.left), keys.next()
		answers, revision, err := w.store.read(ctx, clientv3.OpGet(keys.from, clientv3.WithRange(end), clientv3.WithLimit(int64(n)), clientv3.WithRev(w.revision)))
		if err != nil {
			return err
		}
		if w.revision == 0 {
			w.revision = revision
		}
		page := answers[0].GetResponseRange()
		for _, kv := range page.Kvs {
			if w.full() {
				return nil
			}
			w.last = string(kv.Key)
			w.left--
			if show(kv) {
				w.shown++
			}
		}
		last := ""
		if page.More && len(page.Kvs) > 0 {
			last = string(page.Kvs[len(page.Kvs)-1].Key)
		}
		keys.found(end, last, page.Count)
	}
	return nil
}

// readEach asks many things, in few requests. They were so at revision or later.
func (s *core) readEach(ctx context.Context, ops []clientv3.Op) (answers []*pb.ResponseOp, revision int64, err error) {
	revision = math.MaxInt64
	for some := range slices.Chunk(ops, readOps) {
		err := inParts(some, func(part []clientv3.Op) error {
			a, at, err := s.read(ctx, part...)
			if err == nil {
				answers, revision = append(answers, a...), min(revision, at)
			}
			return err
		})
		if err != nil {
			return nil, 0, err
		}
	}
	return answers, revision, nil
}

// inParts calls send with all of some, or with parts of them where etcd takes no request that long: --max-txn-ops is the operator's.
func inParts[T any](some []T, send func([]T) error) error {
	err := send(some)
	if len(some) < 2 || !errors.Is(err, rpctypes.ErrTooManyOps) {
		return err
	}
	half := len(some) / 2
	if err := inParts(some[:half], send); err != nil {
		return err
	}
	return inParts(some[half:], send)
}

// cursor is what the next page begins behind, "" where there is none: the last key that was looked at, below the root. It names a workflow, so
// whoever hands it out to somebody who may not see all of them seals it.
func (w *walk) cursor() string {
	if !w.full() {
		return ""
	}
	return strings.TrimPrefix(w.last, w.store.layout.Root)
}

// pageRange is the range of one kind of keys, or of those of one workflow; behind the cursor, if one is given. The error is idem.ErrCursor where
// that is outside of it.
func (s *Control) pageRange(kind, workflow, cursor string) (*windows, error) {
	root := s.layout.Root + kind
	from := root
	if workflow != "" {
		from += protocol.Hash16(workflow) + "/"
	}
	end := clientv3.GetPrefixRangeEnd(from)
	if cursor == "" {
		return newWindows(root, from, end), nil
	}
	at := s.layout.Root + cursor
	if !strings.HasPrefix(at, from) {
		return nil, idem.ErrCursor
	}
	return newWindows(root, at+"\x00", end), nil
}
