package etcdlock

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// backoff makes the pauses between attempts: each about twice as long as the one before, with a random part, because all
// deliveries meet the same trouble at the same moment.
type backoff struct{ next time.Duration }

func newBackoff() *backoff { return &backoff{firstPause} }

// wait returns the context's error if that ends first.
func (b *backoff) wait(ctx context.Context) error {
	pause := b.next/2 + rand.N(b.next)
	b.next = min(2*b.next, lastPause)
	return sleep(ctx, pause)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
