package history

import (
	"context"
	"errors"
	"iter"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

// refusals bounds the audits that changed nothing. A token that may not change anything can still
// ask as often as it likes, and what it asked for must not displace what was changed, nor what
// other tokens asked for.
type refusals struct {
	Bounds
	waiting map[string]int // by token: those that were added since the last write
}

const (
	// maxRefused is how many audits of one token that changed nothing are kept: the newest.
	maxRefused = 1000
	// maxRefusedOfAll is how many are kept of all tokens together.
	maxRefusedOfAll = 20_000
	// maxRefusedWaiting is how many of one token wait to be written. A tenth of a second brings
	// more; the log has each of them.
	maxRefusedWaiting = 100
)

// hasRoomLocked reports whether one more of a token may wait to be written, and counts it. Half of
// the room is for changes.
func (a *Audits) hasRoomLocked(who string) bool {
	if a.waiting[who] >= maxRefusedWaiting || a.pendingLocked() >= a.Room/2 {
		return false
	}
	a.waiting[who]++
	return true
}

// deleteOldestRefusals deletes what is beyond the bounds, once a twentieth more than the last time
// may be.
func (a *Audits) deleteOldestRefusals(ctx context.Context) error {
	a.mu.Lock()
	clear(a.waiting)
	a.mu.Unlock()
	return a.deleteExcess(ctx, a.options, protocol.KindRefused)
}

// timeOf returns what follows the kind in the key of an audit: the newer it is, the earlier it
// sorts.
func (a *Audits) timeOf(kv *mvccpb.KeyValue) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), a.options.Layout.Root), "/")
	return rest
}

// newestFirst yields all audits whose timeOf is behind after, those that changed nothing among the
// others.
func (a *Audits) newestFirst(ctx context.Context, after string) iter.Seq2[*mvccpb.KeyValue, error] {
	return func(yield func(*mvccpb.KeyValue, error) bool) {
		changed, refused := a.pullBehind(ctx, protocol.KindAudits, after),
			a.pullBehind(ctx, protocol.KindRefused, after)
		defer changed.stop()
		defer refused.stop()
		for changed.head != nil || refused.head != nil || changed.err != nil || refused.err != nil {
			next := changed
			if changed.head == nil || refused.head != nil && a.timeOf(refused.head) < a.timeOf(changed.head) {
				next = refused
			}
			if err := errors.Join(changed.err, refused.err); err != nil {
				yield(nil, err)
				return
			}
			if !yield(next.head, nil) {
				return
			}
			next.pullNext()
		}
	}
}

// pulled is a list of audits of one kind at its next one.
type pulled struct {
	head *mvccpb.KeyValue // nil = there is none
	err  error
	next func() (*mvccpb.KeyValue, error, bool)
	stop func()
}

func (p *pulled) pullNext() { p.head, p.err, _ = p.next() }

// pullBehind returns the list of the audits of a kind whose timeOf is behind after.
func (a *Audits) pullBehind(ctx context.Context, kind, after string) *pulled {
	keys := link.Below(a.options.Layout.All(kind), MaxPage)
	if after != "" {
		keys.From += after + "\x00"
	}
	p := &pulled{}
	p.next, p.stop = iter.Pull2(a.options.Pool.All(ctx, keys))
	p.pullNext()
	return p
}
