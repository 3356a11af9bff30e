package park

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
)

// slowRound is how long it takes to look at every queue once, whatever was missed.
const slowRound = time.Minute

// Any reports whether an execution is parked.
func (x *Index) Any() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.known.queues) > 0
}

// MakeReadyBehind makes the queues ready before which something has ended. Of a lock with that key,
// these are its queue and those of the events of its workflow; of a queue entry, the queue that it
// was in, and that of its event.
func (x *Index) MakeReadyBehind(key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.known.queues) == 0 {
		return
	}
	entry, is := strings.CutPrefix(key, x.options.Layout.All(protocol.KindQueue))
	if !is {
		x.ready.addQueue(x.known.queues[key])
		for event := range x.known.perEvent[key] {
			x.ready.addQueue(x.known.queues[event])
		}
		return
	}
	lock := x.options.Layout.All(protocol.KindLocks) + entry
	x.ready.addQueue(x.known.queues[lock])
	if i := strings.LastIndexByte(lock, '/'); i > 0 {
		x.ready.addQueue(x.known.queues[lock[:i]])
	}
}

// lookRound makes all queues ready in each slowRound, evenly spread.
func (f *follower) lookRound(ctx context.Context) {
	const steps = 60
	for round, i := f.lockKeys(), 0; link.Sleep(ctx, slowRound/steps) == nil; i++ {
		if i == steps {
			round, i = f.lockKeys(), 0
		}
		for _, lock := range round[i*len(round)/steps : (i+1)*len(round)/steps] {
			f.index.MakeReady(lock)
		}
	}
}

// lockKeys returns the keys of the locks of all queues.
func (f *follower) lockKeys() []string {
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	return slices.Collect(maps.Keys(f.index.known.queues))
}
