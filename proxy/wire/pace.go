package wire

import (
	"time"

	"golang.org/x/sys/unix"
)

// Pace is how slowly a peer may go: each Bytes bytes may be waited for during Time. The zero value
// has no bound.
type Pace struct {
	Bytes int
	Time  time.Duration
}

// Pacer watches over the Pace of one direction of a connection. Only the time that was spent
// waiting for the peer counts.
type Pacer struct {
	pace   Pace
	moved  int
	waited time.Duration
}

// Begin begins to watch.
func (p Pace) Begin() Pacer { return Pacer{pace: p} }

// Deadline returns until when a wait for the peer that begins now may last.
func (p *Pacer) Deadline(now time.Time) time.Time { return now.Add(p.pace.Time - p.waited) }

// Count notes that n bytes took so long.
func (p *Pacer) Count(n int, took time.Duration) {
	p.moved += n
	p.waited += took
	if p.moved >= p.pace.Bytes {
		p.moved, p.waited = 0, 0
	}
}

// Write writes all of b, as long as the sender keeps the pace of ListenerOptions.WritePace: one
// that does not read would else hold the answer, and what stands behind it, for as long as it
// likes.
func (c *served) Write(b []byte) (n int, err error) {
	if c.listener.options.WritePace.Bytes == 0 {
		return c.Conn.Write(b)
	}
	if n = c.offerBytes(b); n == len(b) {
		return n, nil
	}
	for {
		began := time.Now()
		if err := c.Conn.SetWriteDeadline(c.writing.Deadline(began)); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(b[n:min(len(b), n+c.listener.options.WritePace.Bytes)])
		n += m
		c.writing.Count(m, time.Since(began))
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// offerBytes writes what the kernel takes at once, which is all of most answers. It does not block,
// so it needs neither a clock nor a deadline. What is wrong with the connection is found when the
// rest is written.
func (c *served) offerBytes(b []byte) (taken int) {
	if c.raw == nil {
		return 0
	}
	c.offered = b
	_ = c.raw.Control(c.doOffer)
	taken, c.offered = len(b)-len(c.offered), nil
	c.writing.Count(taken, 0)
	return taken
}

func (c *served) writeOffered(fd uintptr) {
	if n, err := unix.Write(int(fd), c.offered); err == nil {
		c.offered = c.offered[n:]
	}
}
