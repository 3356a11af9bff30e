package proxy

import (
	"context"
	"errors"
	"time"
)

// errUpstreamTimeout is the cause of a call that took longer than the upstream's timeout.
var errUpstreamTimeout = errors.New("upstream.timeout passed")

// call is the life of one call of the upstream: it ends with its parent, or when the upstream is silent for too long.
type call struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	timeout time.Duration
}

func newCall(parent context.Context, timeout time.Duration) *call {
	c := &call{timeout: timeout}
	c.ctx, c.cancel = context.WithCancelCause(parent)
	c.timer = time.AfterFunc(timeout, func() { c.cancel(errUpstreamTimeout) })
	return c
}

// give gives the upstream d from now on.
func (c *call) give(d time.Duration) { c.timer.Reset(d) }

// progress gives the upstream its whole time again: something moved.
func (c *call) progress() { c.give(c.timeout) }

// pause stops the clock: it is not the upstream that is waited for, but a sender who has a pace to keep.
func (c *call) pause() { c.timer.Stop() }

func (c *call) end() {
	c.timer.Stop()
	c.cancel(nil)
}
