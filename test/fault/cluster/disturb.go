package cluster

import (
	"context"
	"math/rand/v2"
	"time"

	"hooklock/etcdlock/etcdtest"
)

// Disturb breaks one wire after the other until ctx ends: requests held and delivered late, answers
// lost, connections reset. Two wires are never broken at once.
func Disturb(ctx context.Context, wires []*etcdtest.Wire) {
	for i := rand.IntN(len(wires)); ctx.Err() == nil; i++ {
		w := wires[i%len(wires)]
		switch rand.IntN(4) {
		case 0, 1:
			w.Blackhole(true)
			pause(ctx, time.Duration(1100+rand.IntN(500))*time.Millisecond) // longer than a transaction is waited for
			w.Blackhole(false)
		case 2:
			w.DropAnswers(true)
			pause(ctx, time.Duration(200+rand.IntN(1200))*time.Millisecond)
			w.Reset()
			w.DropAnswers(false)
		case 3:
			w.Reset()
		}
		pause(ctx, time.Duration(100+rand.IntN(300))*time.Millisecond)
	}
}

// Isolate cuts one pair of wires after the other off, each for long, until ctx ends. A store with
// that pair loses its session when long is longer than it lives.
func Isolate(ctx context.Context, wires []*etcdtest.Wire, long time.Duration) {
	for i := 0; ctx.Err() == nil; i += 2 {
		pair := []*etcdtest.Wire{wires[i%len(wires)], wires[(i+1)%len(wires)]}
		for _, w := range pair {
			w.Blackhole(true)
		}
		pause(ctx, long)
		for _, w := range pair {
			w.Blackhole(false)
		}
		pause(ctx, long/3)
	}
}

// pause is how long a fault lasts; it is over at once when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
