package diagnose

import (
	"fmt"
	"time"

	"hooklock/etcdlock/link"
)

// sane is a time before which no correct clock can be: Hooklock did not exist.
var sane = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// Clock begins to watch this machine's clocks, and returns a function that ends that with a
// finding. Locks need no shared clock: each process measures for itself how long ago its session
// was renewed. It needs a clock that counts while the machine is suspended.
func Clock() func() Finding { return watchClock(link.SystemClock()) }

func watchClock(c link.Clock) func() Finding {
	began := c.Instant()
	return func() Finding {
		f := Finding{Check: "clock", Result: OK}
		now := c.Instant()
		elapsed, boot := now.At.Sub(began.At), now.Boot-began.Boot
		switch apart := (boot - elapsed).Abs(); {
		case now.At.Before(sane):
			f.Result, f.Found = Failed, "this machine believes that it is "+now.At.UTC().Format(time.RFC3339)
			f.Advice = "set the clock: signatures with a time, certificates and records depend on it"
		case now.Boot == 0:
			f.Result, f.Found = Warning, "this system has no clock that continues while the machine is suspended"
			f.Advice = "do not suspend this machine: a process that wakes would trust its session for too long"
		case apart > time.Second:
			f.Result, f.Found = Warning, fmt.Sprintf("the machine stood still for %v during these checks",
				apart.Round(time.Millisecond))
			f.Advice = "a process that stands still longer than session_ttl loses its locks: see to it that this " +
				"machine is not paused"
		default:
			f.Found = now.At.UTC().Format(time.RFC3339) +
				"; not compared with etcd, which tells no time: locks need none in common"
		}
		return f
	}
}
