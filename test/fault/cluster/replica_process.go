package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// Patience is how long anything may take that must happen. It is generous: the machine may be busy.
const Patience = 40 * time.Second

// Binaries are the programs that the suite starts, built once from this tree.
type Binaries struct{ Hooklock, Etcd string }

// Build builds them into dir.
func Build(dir string) (b Binaries, err error) {
	if b.Hooklock, err = testkit.Build(dir, "hooklock", testkit.HooklockPackage, false); err != nil {
		return b, err
	}
	b.Etcd, err = testkit.Build(dir, "etcd", testkit.EtcdPackage, false)
	return b, err
}

// Count is the number of lines of a log that contain text.
func Count(log *testkit.Output, text string) (n int) {
	for _, line := range log.Lines() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// AwaitMore waits until a log has more than n lines that contain text.
func AwaitMore(tb testing.TB, log *testkit.Output, n int, text string) {
	tb.Helper()
	log.Await(tb, fmt.Sprintf("%q more than %d times", text, n), func(line string) bool {
		if strings.Contains(line, text) {
			n--
		}
		return n < 0
	})
}
