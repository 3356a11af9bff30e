package report

import (
	"sync"
	"time"
)

// Contact is what is known of somebody whom this process asks, from the asking alone: nobody is asked for it. The zero value: nobody has
// asked yet. It is safe for concurrent use.
type Contact struct {
	mu   sync.Mutex
	seen Seen
}

// Seen is what a Contact knows.
type Seen struct {
	Answered time.Time // when the latest answer came; zero: none has
	Failed   time.Time // when the latest request failed; zero: none has
	Failure  string    // how it did
}

// Answer notes an answer.
func (c *Contact) Answer(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen.Answered = at
}

// Fail notes a request without one.
func (c *Contact) Fail(at time.Time, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen.Failed, c.seen.Failure = at, why
}

// Seen is what was noted.
func (c *Contact) Seen() Seen {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}
