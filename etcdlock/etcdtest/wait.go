package etcdtest

import (
	"context"
	"testing"
	"time"
)

// Patience is how long a test waits for what must happen.
const Patience = time.Minute

// Within returns a context of that length, which ends with the test.
func Within(tb testing.TB, d time.Duration) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	tb.Cleanup(cancel)
	return ctx
}

// Eventually waits for a condition that nothing announces.
func Eventually(tb testing.TB, what string, f func() bool) {
	tb.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(Patience); !f(); {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatalf("never happened: %s", what)
		}
	}
}
