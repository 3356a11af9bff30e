package testkit

import (
	"fmt"
	"os"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, for its TestMain: build puts what they share into dir, which is
// removed after them. A goroutine that is left behind is a failure. Main does not return.
func Main(m goleak.TestingM, build func(dir string) error) { os.Exit(runIn(m, build)) }

func runIn(m goleak.TestingM, build func(dir string) error) int {
	dir, err := os.MkdirTemp("", "hooklock-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	err = goleak.Find()
	for late := time.Now().Add(Patience); err != nil && code == 0 && time.Now().Before(late); {
		err = goleak.Find() // what is ending needs a while on a busy machine
	}
	if err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		code = 1
	}
	return code
}
