package history

import (
	"context"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/idem"
)

// MaxPage bounds what a page shows, and the keys that it reads.
const MaxPage = 500

const defaultPage = 100

// walk makes one page of a list: it goes through keys in order, all at one revision, until the page is full.
type walk struct {
	store    *Reader
	limit    int // of what is shown
	shown    int
	left     int    // keys that it may still read
	batch    int    // values that it reads at a time
	last     string // the last key that it has read
	revision int64
}

func (s *Reader) newWalk(limit, batch int) *walk {
	if limit <= 0 {
		limit = defaultPage
	}
	return &walk{store: s, limit: min(limit, MaxPage), left: MaxPage, batch: batch}
}

func (w *walk) full() bool { return w.shown >= w.limit || w.left <= 0 }

// through passes the keys of a range to show, which reports whether it took one. It returns early when the page is full.
func (w *walk) through(ctx context.Context, keys *windows, show func(*mvccpb.KeyValue) bool) error {
	for !w.full() && !keys.over() {
		n, end := min(w.batch, w.left), keys.next()
		answers, revision, err := w.store.o.Pool.Read(ctx, clientv3.OpGet(keys.from, clientv3.WithRange(end), clientv3.WithLimit(int64(n)), clientv3.WithRev(w.revision)))
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

// cursor returns what the next page begins behind, "" if there is none: the last key that was read, below the root. It names a workflow, so it
// has to be sealed for a client that may not see all workflows.
func (w *walk) cursor() string {
	if !w.full() {
		return ""
	}
	return strings.TrimPrefix(w.last, w.store.o.Layout.Root)
}

// pageRange returns the range of one kind of keys; behind the cursor, if one is given. It returns idem.ErrCursor if that is outside of it.
func (s *Reader) pageRange(kind, cursor string) (*windows, error) {
	from := s.o.Layout.All(kind)
	end := clientv3.GetPrefixRangeEnd(from)
	if cursor == "" {
		return newWindows(from, from, end), nil
	}
	at := s.o.Layout.Root + cursor
	if !strings.HasPrefix(at, from) {
		return nil, idem.ErrCursor
	}
	return newWindows(from, at+"\x00", end), nil
}
