package memory

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// mostGarbage is how much of it may pile up if little is in use. More saves little: a new event
	// makes some 60 KiB.
	mostGarbage = 64 << 20
	// plainPercent is what Go does by itself: as much garbage as there is in use.
	plainPercent = 100
)

// Garbage returns how much garbage may pile up before it is collected; as much as there is in use
// always may.
func (l Limit) Garbage() int64 { return min(mostGarbage, l.Bytes/8) }

// collector sets when the runtime collects. Little is in use in a proxy, so by itself Go would
// collect many times a second to save unused memory.
type collector struct {
	garbage int64            // bytes; 0: GOGC or the program has set it
	inUse   func() int64     // bytes, as the last collection found it
	set     func(int) int    // debug.SetGCPercent
	percent int              // the one that is set; 0: none yet
	sample  []metrics.Sample // of inUse
}

// newCollector returns nil if GOGC is set in the environment.
func newCollector(l Limit) *collector {
	c := &collector{garbage: l.Garbage(), set: debug.SetGCPercent,
		sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	if os.Getenv("GOGC") != "" {
		c.garbage = 0
	}
	c.inUse = func() int64 {
		metrics.Read(c.sample)
		return int64(c.sample[0].Value.Uint64()) //nolint:gosec // no heap is that large
	}
	return c
}

// tuneGC has to be called now and then. The runtime has the limit as a share of what is in use;
// setting it stops everything for a moment, so a small change is skipped.
func (c *collector) tuneGC() {
	if c.garbage == 0 {
		return
	}
	percent := max(plainPercent, int(c.garbage*100/max(c.inUse(), 1<<20)))
	if c.percent != 0 && percent*10 < c.percent*11 && percent*10 > c.percent*9 {
		return
	}
	c.percent = percent
	c.set(percent)
}
