package memory

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"hooklock/proxy/wire"
)

const (
	// look is how often the Keeper looks.
	look = time.Second
	// quiet is for how long a peak must be over before its memory is given back, so that traffic in
	// waves does not pay for it each time.
	quiet = 5 * time.Second
	// worthwhile is the smallest peak that is given back.
	worthwhile = 32 << 20
	// quietLog is how long one line about refused bodies lasts.
	quietLog = time.Minute
)

// Keeper watches a Budget: it logs when bodies were refused, gives memory back after a peak, and
// sets how much garbage may pile up. The runtime by itself collects the garbage of a peak only when
// as much was allocated again, or after two minutes, and returns it to the system slowly.
type Keeper struct {
	budget *wire.Budget
	log    *slog.Logger
	free   func() // collects garbage and returns free memory to the system
	gc     *collector

	high  int64         // the peak that was not given back yet
	calm  time.Duration // how long it has been over
	said  int64         // refused bodies that were logged
	since time.Duration // the last line
}

// NewKeeper makes a Keeper for a process with this limit.
func NewKeeper(b *wire.Budget, l Limit, log *slog.Logger) *Keeper {
	return &Keeper{budget: b, log: log, free: debug.FreeOSMemory, gc: newCollector(l), since: quietLog}
}

// Run watches until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	k.gc.tuneGC()
	for {
		select {
		case <-ticker.C:
			k.giveBack()
			k.logRefused()
			k.gc.tuneGC()
		case <-ctx.Done():
			return
		}
	}
}

// giveBack gives memory back once a peak is over: when at most a quarter of it has been used for a
// while.
func (k *Keeper) giveBack() {
	peak := k.budget.Peak()
	k.high = max(k.high, peak)
	if k.high < worthwhile || peak > k.high/4 {
		k.calm = 0
		return
	}
	if k.calm += look; k.calm < quiet {
		return
	}
	k.free()
	k.high, k.calm = peak, 0
}

// logRefused logs refused bodies: the first at once, and how many there were at most once a minute.
func (k *Keeper) logRefused() {
	k.since += look
	refused := k.budget.Refused()
	if refused == k.said || k.since < quietLog {
		return
	}
	k.log.Warn("memory.exhausted", "refused", refused-k.said, "used", k.budget.Used(), "limit", k.budget.Limit())
	k.said, k.since = refused, 0
}
