package history

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// Counts returns what all processes have counted: of this one up to now, of others up to the last
// outcome that they committed, and of the rest up to two seconds ago. It returns
// idem.ErrStoreUnavailable if etcd cannot be read.
func (c *Counts) Counts(ctx context.Context, q idem.CountQuery) (idem.CountHistory, error) {
	now := c.options.Clock.Now().UTC()
	of := minutesAndHours()[0]
	since := q.Since.UTC().Truncate(q.Step)
	if now.Sub(since) > idem.MinuteRetention+time.Hour {
		of = minutesAndHours()[1]
	}
	if oldest := now.Add(-idem.HourRetention).Truncate(q.Step); since.Before(oldest) {
		since = oldest
	}
	m := &merge{since: since, now: now, until: now, step: q.Step, times: q.Times,
		routes: map[string]*protocol.CountedRoute{}}
	if !q.Until.IsZero() && q.Until.Before(now) {
		m.until = q.Until.UTC()
	}
	revision := int64(0)
	found := map[series]map[string]*protocol.CountChunk{}
	// at one revision: a fold moves counts from the first to the second
	for _, each := range []series{oneMinute(), of} {
		keys := &link.Scan{From: c.options.Layout.All(each.kind),
			End: c.options.Layout.CountsSince(each.kind, since.Truncate(each.length)), Batch: MaxPage,
			Revision: revision}
		found[each] = map[string]*protocol.CountChunk{}
		for kv, err := range c.options.Pool.All(ctx, keys) {
			if err != nil {
				return idem.CountHistory{}, commit.Unavailable(err)
			}
			// a newer release may write what this one cannot read
			if one, err := protocol.DecodeCounts(kv.Value, q.Times); err == nil {
				found[each][string(kv.Key)] = one
			}
		}
		revision = keys.Revision
	}
	c.addOwn(m, of, found)
	for each, chunks := range found {
		for _, one := range chunks {
			m.addChunk(one, each)
		}
	}
	return m.countHistory(), nil
}

// addOwn adds what this process has counted, and leaves that out of what was found in etcd before.
func (c *Counts) addOwn(m *merge, of series, found map[series]map[string]*protocol.CountChunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collectLocked(false)
	maps.DeleteFunc(found[oneMinute()], func(key string, _ *protocol.CountChunk) bool {
		return protocol.IsCountsOf(key, c.options.Writer)
	})
	for _, one := range c.minutes {
		m.addChunk(&one.CountChunk, oneMinute())
	}
	for _, one := range c.chunks {
		if one.of == of {
			delete(found[of], one.key)
			m.addChunk(&one.CountChunk, of)
		}
	}
}

// merge adds up chunks.
type merge struct {
	since, until, now time.Time
	step              time.Duration
	times             bool                              // also how long requests took in each step
	routes            map[string]*protocol.CountedRoute // with the steps since that time
}

// stepAt returns the step of a time; false: it is not asked for.
func (m *merge) stepAt(at time.Time) (step int, asked bool) {
	if at.After(m.now) { // the clock of another process is ahead
		at = m.now
	}
	if at.Before(m.since) || !at.Before(m.until) && m.until.Before(m.now) {
		return 0, false
	}
	return int(at.Truncate(m.step).Sub(m.since) / m.step), true
}

func (m *merge) addChunk(one *protocol.CountChunk, of series) {
	if !one.At.Add(of.length).After(m.since) || one.At.After(m.until) && m.until.Before(m.now) {
		return
	}
	for name, r := range one.Routes {
		to := routeIn(m.routes, name)
		if !r.Last.Before(m.since) && r.Last.After(to.Last) {
			to.Last = r.Last
		}
		for step, counts := range r.Steps {
			if at, asked := m.stepAt(one.At.Add(time.Duration(step) * of.step)); asked {
				addStep(to, at, counts)
			}
		}
		m.addTimes(to, r, one.At, of)
	}
}

// addTimes adds how long requests took. What an earlier release has counted is known of the whole
// chunk alone.
func (m *merge) addTimes(to, r *protocol.CountedRoute, began time.Time, of series) {
	steps := r.StepTook
	if of.length == of.step { // a chunk of one step
		steps = map[int]*idem.Durations{0: &r.Took}
	}
	if len(steps) == 0 || !m.times {
		to.Took.Add(&r.Took)
		return
	}
	for step, took := range steps {
		if at, asked := m.stepAt(began.Add(time.Duration(step) * of.step)); asked {
			to.Took.Add(took)
			addTook(to, at, took)
		}
	}
}

func (m *merge) countHistory() idem.CountHistory {
	h := idem.CountHistory{Since: m.since, Until: m.until, Step: m.step}
	for _, name := range slices.Sorted(maps.Keys(m.routes)) {
		one := m.routes[name]
		r := idem.RouteHistory{RouteCounts: idem.RouteCounts{Route: strings.ToValidUTF8(name, "?"), Took: one.Took,
			Last: one.Last}}
		for _, step := range slices.Sorted(maps.Keys(one.Steps)) {
			r.Counts.Add(one.Steps[step])
			s := idem.CountStep{At: m.since.Add(time.Duration(step) * m.step), Counts: *one.Steps[step]}
			if took := one.StepTook[step]; took != nil {
				s.Took = *took
			}
			r.Steps = append(r.Steps, s)
		}
		h.Routes = append(h.Routes, r)
	}
	return h
}
