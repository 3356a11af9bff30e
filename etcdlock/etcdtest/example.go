package etcdtest

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

// ForExample is Start for a runnable example, which has no testing.TB. Call stop at its end.
func ForExample() (e *Etcd, stop func()) {
	x := &example{}
	return Start(x), x.runCleanups
}

// example is as much of a testing.TB as Start uses.
type example struct {
	testing.TB
	ends []func()
}

func (x *example) Helper()                        {}
func (x *example) Cleanup(f func())               { x.ends = append(x.ends, f) }
func (x *example) Fatal(args ...any)              { panic(fmt.Sprint(args...)) }
func (x *example) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

func (x *example) TempDir() string {
	dir, err := os.MkdirTemp("", "etcdtest")
	if err != nil {
		x.Fatal(err)
	}
	x.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (x *example) runCleanups() {
	for _, end := range slices.Backward(x.ends) {
		end()
	}
}
