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
	now := c.o.Clock.Now().UTC()
	of := minutesAndHours()[0]
	since := q.Since.UTC().Truncate(q.Step)
	if now.Sub(since) > idem.MinuteRetention+time.Hour {
		of = minutesAndHours()[1]
	}
	if oldest := now.Add(-idem.HourRetention).Truncate(q.Step); since.Before(oldest) {
		since = oldest
	}
	m := &merge{since: since, until: now, step: q.Step, routes: map[string]*protocol.CountedRoute{}}
	revision := int64(0)
	found := map[series]map[string]*protocol.CountChunk{}
	// at one revision: a fold moves counts from the first to the second
	for _, each := range []series{oneMinute(), of} {
		keys := &link.Scan{From: c.o.Layout.All(each.kind),
			End: c.o.Layout.CountsSince(each.kind, since.Truncate(each.length)), Batch: MaxPage, Revision: revision}
		found[each] = map[string]*protocol.CountChunk{}
		for kv, err := range c.o.Pool.All(ctx, keys) {
			if err != nil {
				return idem.CountHistory{}, commit.Unavailable(err)
			}
			// a newer release may write what this one cannot read
			if one, err := protocol.DecodeCounts(kv.Value); err == nil {
				found[each][string(kv.Key)] = one
			}
		}
		revision = keys.Revision
	}
	c.addOwn(m, of, found)
	for each, chunks := range found {
		for _, one := range chunks {
			m.add(one, each)
		}
	}
	return m.history(), nil
}

// addOwn adds what this process has counted, and leaves that out of what was found in etcd before.
func (c *Counts) addOwn(m *merge, of series, found map[series]map[string]*protocol.CountChunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collectLocked(false)
	maps.DeleteFunc(found[oneMinute()], func(key string, _ *protocol.CountChunk) bool {
		return protocol.IsCountsOf(key, c.o.Writer)
	})
	for _, one := range c.minutes {
		m.add(&one.CountChunk, oneMinute())
	}
	for _, one := range c.chunks {
		if one.of == of {
			delete(found[of], one.key)
			m.add(&one.CountChunk, of)
		}
	}
}

// merge adds up chunks.
type merge struct {
	since, until time.Time
	step         time.Duration
	routes       map[string]*protocol.CountedRoute // with the steps since that time
}

func (m *merge) add(one *protocol.CountChunk, of series) {
	if !one.At.Add(of.length).After(m.since) {
		return
	}
	for name, r := range one.Routes {
		to := routeIn(m.routes, name)
		to.Took.Add(&r.Took)
		if !r.Last.Before(m.since) && r.Last.After(to.Last) {
			to.Last = r.Last
		}
		for step, counts := range r.Steps {
			at := one.At.Add(time.Duration(step) * of.step)
			if at.Before(m.since) {
				continue
			}
			if at.After(m.until) { // the clock of another process is ahead
				at = m.until
			}
			addStep(to, int(at.Truncate(m.step).Sub(m.since)/m.step), counts)
		}
	}
}

func (m *merge) history() idem.CountHistory {
	h := idem.CountHistory{Since: m.since, Until: m.until, Step: m.step}
	for _, name := range slices.Sorted(maps.Keys(m.routes)) {
		one := m.routes[name]
		r := idem.RouteHistory{RouteCounts: idem.RouteCounts{Route: strings.ToValidUTF8(name, "?"), Took: one.Took,
			Last: one.Last}}
		for _, step := range slices.Sorted(maps.Keys(one.Steps)) {
			r.Counts.Add(one.Steps[step])
			r.Steps = append(r.Steps, idem.CountStep{At: m.since.Add(time.Duration(step) * m.step),
				Counts: *one.Steps[step]})
		}
		h.Routes = append(h.Routes, r)
	}
	return h
}
