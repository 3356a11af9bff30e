package report

import (
	"sync"
	"sync/atomic"
	"time"
)

// Contact is what is known of somebody whom this process asks, from the asking alone: nobody is asked for it. The zero value: nobody has
// asked yet. It is safe for concurrent use.
type Contact struct {
	answered atomic.Int64 // Unix time in ns; 0: none has. It is noted on each delivery, so it takes no lock.
	fails    atomic.Bool  // what came last, whatever the times say: somebody may set the clock

	mu      sync.Mutex
	failed  time.Time
	failure string
}

// Seen is what a Contact knows.
type Seen struct {
	Answered time.Time // when the latest answer came; zero: none has
	Failed   time.Time // when the latest request failed; zero: none has
	Failure  string    // how it did
	Fails    bool      // the latest request did
}

// Answer notes an answer.
func (c *Contact) Answer(at time.Time) {
	c.answered.Store(at.UnixNano())
	c.fails.Store(false)
}

// Fail notes a request without one.
func (c *Contact) Fail(at time.Time, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed, c.failure = at, why
	c.fails.Store(true)
}

// Seen is what was noted.
func (c *Contact) Seen() Seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := Seen{Failed: c.failed, Failure: c.failure, Fails: c.fails.Load()}
	if at := c.answered.Load(); at != 0 {
		seen.Answered = time.Unix(0, at)
	}
	return seen
}
