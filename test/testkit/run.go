package testkit

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
)

// Run is a testing.TB that lives as long as the whole test binary, for what all tests of a package
// share: TestMain makes it, hands it to the functions of this package, and closes it. A failure
// panics, because no test is there to fail.
type Run struct {
	testing.TB // what is not overridden below is not for a Run, and panics

	dir      string
	ctx      context.Context
	cancel   context.CancelFunc
	mu       sync.Mutex
	cleanups []func()
	dirs     int
}

// NewRun makes a Run with its temporary folders under dir, which is the caller's to remove.
func NewRun(dir string) *Run {
	r := &Run{dir: dir}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Close runs what was registered with Cleanup, the last first.
func (r *Run) Close() {
	r.cancel()
	for _, cleanUp := range slices.Backward(r.cleanups) {
		cleanUp()
	}
}

// Helper implements testing.TB.
func (r *Run) Helper() {}

// Context implements testing.TB; it ends before the cleanups run.
func (r *Run) Context() context.Context { return r.ctx }

// Cleanup implements testing.TB.
func (r *Run) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// TempDir implements testing.TB.
func (r *Run) TempDir() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirs++
	dir := fmt.Sprintf("%s/run-%03d", r.dir, r.dirs)
	if err := os.Mkdir(dir, 0o700); err != nil {
		panic(err)
	}
	return dir
}

// Fatal implements testing.TB.
func (r *Run) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf implements testing.TB.
func (r *Run) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
