package link

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

// Growth is what was in use of a database in the last day. The zero value knows nothing.
type Growth struct {
	steps []growthOf // the oldest first; the last one is not over
}

// growthOf is the least that was in use in one step, in bytes.
type growthOf struct {
	from  time.Time
	least int64
}

// Note notes how many bytes are in use.
func (g *Growth) Note(now time.Time, inUse int64) {
	last := len(g.steps) - 1
	if last >= 0 && now.Sub(g.steps[last].from) < growthStep {
		g.steps[last].least = min(g.steps[last].least, inUse)
		return
	}
	g.steps = append(g.steps, growthOf{now, inUse})
	g.steps = g.steps[max(0, len(g.steps)-growthSteps):]
}

// AnHour returns by how many bytes an hour the database grows. It is not known before two steps are
// over.
func (g *Growth) AnHour() (bytes float64, known bool) {
	over := len(g.steps) - 1
	if over < 2 {
		return 0, false
	}
	first, last := g.steps[0], g.steps[over-1]
	return float64(last.least-first.least) / last.from.Sub(first.from).Hours(), true
}

// Text says for operators how much a database has; Quota 0: it does not say its quota.
func (s *Space) Text() string {
	const mib = 1 << 20
	quota := "a quota that it does not say"
	if s.Quota > 0 {
		quota = fmt.Sprintf("a quota of %.1f MiB", float64(s.Quota)/mib)
	}
	return fmt.Sprintf("%.1f MiB, %.1f MiB of it in use, of %s", float64(s.Size)/mib, float64(s.InUse)/mib, quota)
}

// GrowthText says how fast the database grows, in bytes an hour, and when it is full; "" if it is
// full.
func (s *Space) GrowthText(anHour float64) string {
	const mib = 1 << 20
	switch {
	case s.Full:
		return ""
	case anHour < mib/100:
		return "; it does not grow"
	}
	text := fmt.Sprintf("; what is in use grows by %.1f MiB an hour", anHour/mib)
	if s.Quota == 0 {
		return text
	}
	hours := max(0, float64(s.Quota-s.InUse)/anHour)
	left := fmt.Sprintf("%.1f hours", hours)
	switch days := hours / 24; {
	case days > 365:
		left = "more than a year"
	case days >= 2:
		left = fmt.Sprintf("%.0f days", days)
	}
	return text + ", and fills the quota in " + left
}
