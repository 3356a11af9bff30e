package report

import (
	"sync"
	"sync/atomic"
	"time"

	"hooklock/admin/client"
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

// Seen returns what is known of the service, which has that address.
func (c *Contact) Seen(address string) client.Contact {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := client.Contact{Address: address, State: client.ContactNotAsked, FailedAt: client.Time{Time: c.failed},
		Failure: c.failure}
	if at := c.answered.Load(); at != 0 {
		seen.State, seen.AnsweredAt.Time = client.ContactAnswers, time.Unix(0, at)
	}
	if c.fails.Load() {
		seen.State = client.ContactFails
	}
	return seen
}
