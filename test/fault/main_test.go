package fault

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"hooklock/test/fault/cluster"
)

var (
	update = flag.Bool("update", false, "write the generated tables in docs/")
	soak   = flag.Duration("soak", 0, "run TestSoak for this long; 0 = not at all")

	programs cluster.Binaries // built once
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Most of these tests wait for a lease to run out; they can do so together.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hooklock-fault-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if programs, err = cluster.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}
