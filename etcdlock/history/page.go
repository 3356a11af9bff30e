package history

import (
	"cmp"
	"context"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/idem"
)

// MaxPage bounds what a page shows, and the keys that it reads.
const MaxPage = 500

const defaultPage = 100

// pageLimit returns how many a page shows that is asked for limit; 0 = it was not said.
func pageLimit(limit int) int {
	if limit <= 0 {
		return defaultPage
	}
	return min(limit, MaxPage)
}

// readPage passes the keys of a kind behind the cursor to show, which reports whether it took one:
// in order, and all at one revision, until limit were taken or MaxPage were read. next is the
// cursor of the next page, "" if there is none: the last key that was read, below the root. It
// names a workflow, so it has to be sealed for a client that may not see all workflows. readPage
// returns idem.ErrCursor or idem.ErrStoreUnavailable.
func (s *Reader) readPage(ctx context.Context, kind, cursor string, limit int,
	show func(*mvccpb.KeyValue) bool) (next string, revision int64, err error) {
	keys, err := s.pageRange(kind, cursor)
	if err != nil {
		return "", 0, err
	}
	limit = pageLimit(limit)
	for left := MaxPage; !keys.isOver(); {
		end := keys.windowEnd()
		answers, at, err := s.options.Pool.Read(ctx, clientv3.OpGet(keys.from, clientv3.WithRange(end),
			clientv3.WithLimit(int64(min(LockBatch, left))), clientv3.WithRev(revision)))
		if err != nil {
			return "", 0, commit.Unavailable(err)
		}
		revision = cmp.Or(revision, at)
		read, last := answers[0].GetResponseRange(), ""
		for _, kv := range read.Kvs {
			last = string(kv.Key)
			if left--; show(kv) {
				limit--
			}
			if limit == 0 || left == 0 {
				return strings.TrimPrefix(last, s.options.Layout.Root), revision, nil
			}
		}
		if !read.More {
			last = ""
		}
		keys.advance(end, last, read.Count)
	}
	return "", revision, nil
}

// pageRange returns the range of one kind of keys; behind the cursor, if one is given. It returns
// idem.ErrCursor if that is outside of it.
func (s *Reader) pageRange(kind, cursor string) (*windows, error) {
	from := s.options.Layout.All(kind)
	end := clientv3.GetPrefixRangeEnd(from)
	if cursor == "" {
		return newWindows(from, from, end), nil
	}
	at := s.options.Layout.Root + cursor
	if !strings.HasPrefix(at, from) {
		return nil, idem.ErrCursor
	}
	return newWindows(from, at+"\x00", end), nil
}
