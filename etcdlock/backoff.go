package etcdlock

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
	// sessionPause is the longest between two attempts to open a session: nothing runs before there is one.
	sessionPause = 200 * time.Millisecond
)

// backoff makes the pauses between attempts: each about twice as long as the one before, with a random part, because all
// deliveries meet the same trouble at the same moment.
type backoff struct{ next, most time.Duration }

func newBackoff() *backoff { return &backoff{firstPause, lastPause} }

// wait returns the context's error if that ends first.
func (b *backoff) wait(ctx context.Context) error {
	pause := b.next/2 + rand.N(b.next)
	b.next = min(2*b.next, b.most)
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
