package fault

import (
	"flag"
	"testing"

	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

var (
	update = flag.Bool("update", false, "write the generated tables of kill-table.md and docs/proof.md")
	soak   = flag.Duration("soak", 0, "run TestSoak for this long; 0 = not at all")

	programs cluster.Binaries // built once
)

func TestMain(m *testing.M) {
	flag.Parse()
	// Most of these tests wait for a lease to run out; they can do so together.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	testkit.Main(m, func(dir string) (err error) {
		programs, err = cluster.Build(dir)
		return err
	})
}
