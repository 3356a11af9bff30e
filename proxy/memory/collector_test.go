package memory

import (
	"runtime/debug"
	"slices"
	"testing"
)

func TestGarbageMayPileUpToABoundAndAlwaysToWhatIsInUse(t *testing.T) {
	const mib = 1 << 20
	var inUse int64
	var said []int
	c := &collector{garbage: Limit{Bytes: 1 << 30}.Garbage(), inUse: func() int64 {
		return inUse
	}, set: func(percent int) int { said = append(said, percent); return 0 }}
	for _, n := range []int64{0, 16 * mib, 17 * mib, 15 * mib, 32 * mib, 64 * mib, 500 * mib, 16 * mib} {
		inUse = n
		c.tuneGC()
	}
	if want := []int{6400, 400, 200, 100, 400}; !slices.Equal(said, want) {
		t.Errorf("%v, want %v", said, want)
	}
	if small := (Limit{Bytes: 128 * mib}).Garbage(); small != 16*mib {
		t.Errorf("in 128 MiB: %d", small)
	}
}

func TestASetGOGCIsLeftAlone(t *testing.T) {
	t.Setenv("GOGC", "50")
	c := newCollector(Limit{Bytes: 1 << 30})
	c.set = func(percent int) int { t.Errorf("%d was set", percent); return 0 }
	c.tuneGC()
}

func TestTheRuntimeSaysWhatIsInUse(t *testing.T) {
	t.Setenv("GOGC", "")
	c := newCollector(Limit{Bytes: 1 << 30})
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	debug.FreeOSMemory()
	if c.inUse() <= 0 {
		t.Error("nothing")
	}
	if c.tuneGC(); c.percent <= plainPercent {
		t.Errorf("%d %%", c.percent)
	}
}
