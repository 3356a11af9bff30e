package link

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstPause   = 20 * time.Millisecond
	sessionPause = 200 * time.Millisecond
	// LastPause is the longest pause of a Backoff.
	LastPause = time.Second
)

// Backoff makes the pauses between attempts: each about twice as long as the one before, with a
// random part, because all deliveries have the same problem at the same moment.
type Backoff struct{ next, most time.Duration }

// NewBackoff returns a backoff that begins with a pause of about 20 ms and ends with pauses of
// about a second.
func NewBackoff() *Backoff { return &Backoff{firstPause, LastPause} }

// NewSessionBackoff returns the backoff for attempts to open a session: nothing runs before there
// is one.
func NewSessionBackoff() *Backoff { return &Backoff{firstPause, sessionPause} }

// Wait waits for the next pause. It returns the error of ctx if that ends first.
func (b *Backoff) Wait(ctx context.Context) error {
	pause := b.next/2 + rand.N(b.next)
	b.next = min(2*b.next, b.most)
	return Sleep(ctx, pause)
}

// Sleep waits for d. It returns the error of ctx if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Wake puts a token into c, which has room for one, unless there is one already. Its receiver looks
// for all that has changed since the last token.
func Wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// AwaitWake waits for a token in c. It returns false if ctx ends first.
func AwaitWake(ctx context.Context, c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}
