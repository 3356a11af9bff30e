package history

import (
	"context"
	"errors"
	"iter"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// refusals bounds the audits that changed nothing. A token that may not change anything can still
// ask as often as it likes, and what it asked for must not displace what was changed, nor what
// other tokens asked for.
type refusals struct {
	MostRefused      int // that are kept of each token; the oldest go
	MostRefusedOfAll int // that are kept of all tokens

	left    int            // how many there were when they were counted last
	waiting map[string]int // by token: those that were added since the last write
}

// maxRefusedWaiting is how many of one token wait to be written. A tenth of a second brings more;
// the log has each of them.
const maxRefusedWaiting = 100

func newRefusals() refusals {
	return refusals{MostRefused: idem.MaxRefused, MostRefusedOfAll: idem.MaxRefusedOfAll, waiting: map[string]int{}}
}

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
	prefix := a.o.Layout.All(protocol.KindRefused)
	n, err := a.o.Pool.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	a.left = min(a.left, int(n.Count))
	if int(n.Count) <= a.left+a.MostRefused/20 {
		return nil
	}
	keys := link.Below(prefix, MaxPage)
	keys.KeysOnly = true
	kept, of := 0, map[string]int{}
	var excess protocol.Writes
	for kv, err := range a.o.Pool.All(ctx, keys) {
		if err != nil {
			return err
		}
		token := protocol.RefusedBy(string(kv.Key))
		if of[token] == a.MostRefused || kept == a.MostRefusedOfAll {
			excess = append(excess, protocol.DropNote(string(kv.Key)))
			continue
		}
		of[token]++
		kept++
	}
	for len(excess) > 0 && err == nil {
		batch := excess[:min(NoteBatch, len(excess))]
		excess = excess[len(batch):]
		err = a.o.Pool.CommitParts(ctx, batch)
	}
	if err == nil {
		a.left = kept
	}
	return err
}

// timeOf returns what follows the kind in the key of an audit: the newer it is, the earlier it
// sorts.
func (a *Audits) timeOf(kv *mvccpb.KeyValue) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), a.o.Layout.Root), "/")
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
			next.step()
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

func (p *pulled) step() { p.head, p.err, _ = p.next() }

// pullBehind returns the list of the audits of a kind whose timeOf is behind after.
func (a *Audits) pullBehind(ctx context.Context, kind, after string) *pulled {
	keys := link.Below(a.o.Layout.All(kind), MaxPage)
	if after != "" {
		keys.From += after + "\x00"
	}
	p := &pulled{}
	p.next, p.stop = iter.Pull2(a.o.Pool.All(ctx, keys))
	p.step()
	return p
}
