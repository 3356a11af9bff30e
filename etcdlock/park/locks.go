package park

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

const (
	slowRound   = time.Minute // in which every queue is looked at once, whatever was missed
	quietPeriod = 10 * time.Second
)

// lockWatch makes queues ready when something before them has ended: their lock, or an entry of the queue. It watches while something is parked.
type lockWatch struct{ index *Index }

func (w *lockWatch) run(ctx context.Context) {
	keys := &link.Reflector{Pool: w.index.o.Pool, On: link.OfWaits, List: w.list, Watches: w.watches, Idle: w.none, Round: quietPeriod}
	for link.Woken(ctx, w.index.some) {
		keys.Run(ctx, 0)
	}
}

// list only reads the revision.
func (w *lockWatch) list(ctx context.Context) (int64, error) {
	_, revision, err := w.index.o.Pool.Read(ctx, clientv3.OpGet(w.index.o.Layout.All(protocol.KindParked), clientv3.WithPrefix(), clientv3.WithCountOnly()))
	if err == nil {
		w.index.MarkAll() // for what has ended before the watch
	}
	return revision, err
}

func (w *lockWatch) none() bool {
	w.index.mu.Lock()
	defer w.index.mu.Unlock()
	return len(w.index.known.queues) == 0
}

func (w *lockWatch) watches(from int64) []link.Watch {
	deletions := func(prefix string, gone func(key string)) link.Watch {
		return link.Watch{Key: prefix, Opts: []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithFilterPut()}, News: func(e *clientv3.Event) {
			gone(string(e.Kv.Key))
		}}
	}
	return []link.Watch{deletions(w.index.o.Layout.All(protocol.KindLocks), w.lockGone), deletions(w.index.o.Layout.All(protocol.KindQueue), w.entryGone)}
}

// lockGone makes the queue of a lock ready, and those of the events of its workflow.
func (w *lockWatch) lockGone(lock string) {
	w.index.mu.Lock()
	defer w.index.mu.Unlock()
	w.index.ready.add(w.index.known.queues[lock])
	for event := range w.index.known.perEvent[lock] {
		w.index.ready.add(w.index.known.queues[event])
	}
}

// entryGone makes the queue of the workflow ready that a queue entry was in, and that of its event.
func (w *lockWatch) entryGone(place string) {
	lock := w.index.o.Layout.All(protocol.KindLocks) + strings.TrimPrefix(place, w.index.o.Layout.All(protocol.KindQueue))
	w.index.Mark(lock)
	if i := strings.LastIndexByte(lock, '/'); i > 0 {
		w.index.Mark(lock[:i])
	}
}

// lookRound makes all queues ready in each slowRound, evenly spread.
func (x *Index) lookRound(ctx context.Context) {
	const steps = 60
	for round, i := x.locks(), 0; link.Sleep(ctx, slowRound/steps) == nil; i++ {
		if i == steps {
			round, i = x.locks(), 0
		}
		for _, lock := range round[i*len(round)/steps : (i+1)*len(round)/steps] {
			x.Mark(lock)
		}
	}
}

// locks returns the keys of the locks of all queues.
func (x *Index) locks() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Keys(x.known.queues))
}
