package link

import "time"

// Clock is how the Store sees time. An elapsed time is the larger of what two clocks say, because
// neither is enough: the monotonic clock stands still while the machine is suspended
// (golang/go#24595), the boot clock does not exist everywhere.
type Clock struct {
	Now  func() time.Time     // wall and monotonic
	Boot func() time.Duration // since the machine started, with the time that it was suspended
}

// Instant is a point in time on both clocks.
type Instant struct {
	At   time.Time     // with a monotonic reading
	Boot time.Duration // since the machine started
}

// SystemClock returns the two clocks of this machine.
func SystemClock() Clock { return Clock{time.Now, bootTime} }

// Instant returns the current time.
func (c Clock) Instant() Instant { return Instant{c.Now(), c.Boot()} }

// Since returns how long i is ago.
func (c Clock) Since(i Instant) time.Duration { return max(c.Now().Sub(i.At), c.Boot()-i.Boot) }
