package testkit

import (
	"testing"
	"time"
)

// Patience is how long anything here waits for what must come, before it fails the test. It is long
// because tests share their machine; no test may be so slow that it needs it.
const Patience = time.Minute

// Until asks check again and again until it says yes. It is for what has no event to wait for; the
// test fails, saying what was awaited, when Patience is over.
func Until(tb testing.TB, what string, check func() bool) {
	tb.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	for !check() {
		select {
		case <-tick.C:
		case <-deadline.C:
			tb.Fatalf("waited %v in vain for: %s", Patience, what)
		}
	}
}

// Receive takes one value from c, or fails the test.
func Receive[T any](tb testing.TB, what string, c <-chan T) T {
	tb.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	select {
	case v := <-c:
		return v
	case <-deadline.C:
		tb.Fatalf("waited %v in vain for: %s", Patience, what)
	}
	panic("unreachable")
}
