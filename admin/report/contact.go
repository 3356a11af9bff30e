package report

import (
	"sync"
	"sync/atomic"
	"time"
)

// Contact is what is known of a service that this process calls, from its own requests: none is
// sent for this. The zero value: no request was made yet. It is safe for concurrent use.
type Contact struct {
	answered atomic.Int64 // Unix time in ns; 0: none has. It is noted on each delivery, so it takes no lock.
	fails    atomic.Bool  // the newest result, whatever the times say: the clock may be set

	mu      sync.Mutex
	failed  time.Time
	failure string
}

// ContactState is the state of a Contact.
type ContactState struct {
	Answered time.Time // when the latest answer came; zero: none has
	Failed   time.Time // when the latest request failed; zero: none has
	Failure  string    // its error
	Fails    bool      // whether the latest request failed
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

// Seen returns the state.
func (c *Contact) Seen() ContactState {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := ContactState{Failed: c.failed, Failure: c.failure, Fails: c.fails.Load()}
	if at := c.answered.Load(); at != 0 {
		seen.Answered = time.Unix(0, at)
	}
	return seen
}
