package embedded

import (
	"fmt"
	"time"
)

// growthStep is the time of which the least is noted: history comes and goes within it. growthSteps
// of them are kept, a day.
const (
	growthStep  = 10 * time.Minute
	growthSteps = 24*6 + 2
)

// growth is what was in use of a database in the last day. The zero value knows nothing.
type growth struct {
	steps []growthOf // the oldest first; the last one is not over
}

// growthOf is the least that was in use in one step, in bytes.
type growthOf struct {
	from  time.Time
	least int64
}

// note notes how many bytes are in use.
func (g *growth) note(now time.Time, inUse int64) {
	last := len(g.steps) - 1
	if last >= 0 && now.Sub(g.steps[last].from) < growthStep {
		g.steps[last].least = min(g.steps[last].least, inUse)
		return
	}
	g.steps = append(g.steps, growthOf{now, inUse})
	g.steps = g.steps[max(0, len(g.steps)-growthSteps):]
}

// anHour returns by how many bytes an hour the database grows. It is not known before two steps are
// over.
func (g *growth) anHour() (bytes float64, known bool) {
	over := len(g.steps) - 1
	if over < 2 {
		return 0, false
	}
	first, last := g.steps[0], g.steps[over-1]
	return float64(last.least-first.least) / last.from.Sub(first.from).Hours(), true
}

// growthText says how fast a database grows, and when it is full; "" if that is not known.
func (s Space) growthText() string {
	const mib = 1 << 20
	switch {
	case !s.GrowthKnown || s.Full:
		return ""
	case s.Growth < mib/100:
		return "; it does not grow"
	}
	hours := max(0, float64(s.Quota-s.InUse)/s.Growth)
	left := fmt.Sprintf("%.1f hours", hours)
	switch days := hours / 24; {
	case days > 365:
		left = "more than a year"
	case days >= 2:
		left = fmt.Sprintf("%.0f days", days)
	}
	return fmt.Sprintf("; what is in use grows by %.1f MiB an hour, and fills the quota in %s", s.Growth/mib, left)
}
