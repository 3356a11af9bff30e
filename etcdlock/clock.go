package etcdlock

import "time"

// clock is how the Store sees time. An elapsed time is the larger of what two clocks say, because neither is enough: the
// monotonic clock stands still while the machine is suspended (golang/go#24595), the boot clock does not exist everywhere.
type clock struct {
	now  func() time.Time     // wall and monotonic
	boot func() time.Duration // since the machine started, with the time that it was suspended
}

// instant is a point in time on both clocks.
type instant struct {
	at   time.Time
	boot time.Duration
}

func systemClock() clock { return clock{time.Now, bootTime} }

func (c clock) instant() instant { return instant{c.now(), c.boot()} }

func (c clock) since(i instant) time.Duration { return max(c.now().Sub(i.at), c.boot()-i.boot) }
