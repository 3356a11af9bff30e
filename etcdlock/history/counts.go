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

const (
	// MaxCountedRoutes bounds the routes that one key tells apart; the rest are counted together, as OtherRoutes.
	MaxCountedRoutes = 100
	// OtherRoutes is the name of that rest.
	OtherRoutes = "(others)"

	maxCountKeys = 2000
	countSlack   = time.Second // after the end of a minute, in which collected counts still belong to that minute
)

// series is one way in which counts are stored.
type series struct {
	kind         string
	step, length time.Duration // of a step, and of the time that one key has
	kept         time.Duration
}

func minutesAndHours() [2]series {
	return [2]series{{protocol.KindMinutes, time.Minute, time.Hour, idem.MinuteRetention}, {protocol.KindHours, time.Hour, 24 * time.Hour, idem.HourRetention}}
}

// Counts notes once a minute what this process has counted, and reads what all have. Each process has a note for each hour, with its minutes, and one for
// each day, with its hours, and readers add them up. The clock of the process that counts decides which minute a count belongs to.
type Counts struct {
	*writer
	// Most bounds the keys of a kind that are kept; the oldest go when there are a twentieth more.
	Most int

	chunks []*chunk // that may change yet, or are not written
	made   int
}

// chunk is one note.
type chunk struct {
	note
	protocol.CountChunk
	of  series
	key string
}

// NewCounts returns a writer and reader of counts. Run writes.
func NewCounts(o *Options) *Counts {
	c := &Counts{writer: newWriter(o), Most: maxCountKeys}
	c.after = func(ctx context.Context) error {
		for _, of := range minutesAndHours() {
			if err := c.deleteOldest(ctx, of.kind, c.Most); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// Run writes once a minute, until ctx ends.
func (c *Counts) Run(ctx context.Context) {
	for {
		now := c.o.Clock.Now()
		if link.Sleep(ctx, now.Truncate(time.Minute).Add(time.Minute).Sub(now)) != nil {
			return
		}
		c.Write(ctx)
	}
}

// Finish writes what is left, if etcd takes it at once.
func (c *Counts) Finish(ctx context.Context) {
	c.collect()
	c.writer.Finish(ctx)
}

// Write writes what has changed. It returns false if etcd did not take it: it waits for the next write, for as long as etcd would keep it.
func (c *Counts) Write(ctx context.Context) bool {
	c.collect()
	return c.writer.Write(ctx)
}

// collect adds what was counted since the last call to the current minute.
func (c *Counts) collect() {
	some := c.o.Counted()
	at := c.o.Clock.Now().Add(-countSlack).UTC()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chunks = slices.DeleteFunc(c.chunks, func(one *chunk) bool {
		end := one.At.Add(one.of.length)
		if at.After(end.Add(one.of.kept)) {
			c.queue = slices.DeleteFunc(c.queue, func(n *note) bool { return n == &one.note })
			return true
		}
		return at.After(end) && !one.queued && c.out == 0
	})
	if len(some) == 0 {
		return
	}
	for _, of := range minutesAndHours() {
		one := c.chunkLocked(of, at.Truncate(of.length))
		for i := range some {
			one.add(&some[i], int(at.Sub(one.At)/of.step))
		}
		c.enqueueLocked(&one.note)
	}
}

// chunkLocked returns the chunk of a time. A key is never used again: a clock that was set back would overwrite what is written.
func (c *Counts) chunkLocked(of series, at time.Time) *chunk {
	for _, one := range c.chunks {
		if one.of == of && one.At.Equal(at) {
			return one
		}
	}
	c.made++
	one := &chunk{of: of, key: c.o.Layout.CountsOf(of.kind, at, c.o.Writer, c.made)}
	one.At, one.Routes, one.retention = at, map[string]*protocol.CountedRoute{}, of.length+of.kept+time.Hour
	one.says = func() (string, []byte, *protocol.Row) { return one.key, protocol.EncodeCounts(&one.CountChunk), nil }
	c.chunks = append(c.chunks, one)
	return one
}

func (one *chunk) add(more *idem.RouteCounts, step int) {
	name := more.Route
	if one.Routes[name] == nil && len(one.Routes) >= MaxCountedRoutes {
		name = OtherRoutes
	}
	r := routeIn(one.Routes, name)
	addStep(r, step, &more.Counts)
	r.Took.Add(&more.Took)
	if more.Last.After(r.Last) {
		r.Last = more.Last.UTC().Round(0)
	}
}

func routeIn(routes map[string]*protocol.CountedRoute, name string) *protocol.CountedRoute {
	r := routes[name]
	if r == nil {
		r = &protocol.CountedRoute{Steps: map[int]*idem.Counts{}}
		routes[name] = r
	}
	return r
}

func addStep(r *protocol.CountedRoute, step int, more *idem.Counts) {
	if r.Steps[step] == nil {
		r.Steps[step] = new(idem.Counts)
	}
	r.Steps[step].Add(more)
}

// Counts returns what all processes have counted: of this one up to now, of others up to their last write, a minute ago at most. It returns
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
	m := &merge{of: of, since: since, until: now, step: q.Step, routes: map[string]*protocol.CountedRoute{}}
	c.collect()
	own := c.own(m)
	keys := &link.Scan{From: c.o.Layout.All(of.kind), End: c.o.Layout.CountsSince(of.kind, since.Truncate(of.length)), Batch: MaxPage}
	for kv, err := range c.o.Pool.All(ctx, keys) {
		if err != nil {
			return idem.CountHistory{}, commit.Unavailable(err)
		}
		if !own[string(kv.Key)] {
			if one, err := protocol.DecodeCounts(kv.Value); err == nil { // a newer release may write what this one cannot read
				m.add(one)
			}
		}
	}
	return m.history(), nil
}

// own adds the chunks of this process that are in memory, and returns their keys.
func (c *Counts) own(m *merge) map[string]bool {
	keys := map[string]bool{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.chunks {
		if one.of == m.of {
			keys[one.key] = true
			m.add(&one.CountChunk)
		}
	}
	return keys
}

// merge adds up chunks of one series.
type merge struct {
	of           series
	since, until time.Time
	step         time.Duration
	routes       map[string]*protocol.CountedRoute // with the steps since that time
}

func (m *merge) add(one *protocol.CountChunk) {
	if !one.At.Add(m.of.length).After(m.since) {
		return
	}
	for name, r := range one.Routes {
		to := routeIn(m.routes, name)
		to.Took.Add(&r.Took)
		if !r.Last.Before(m.since) && r.Last.After(to.Last) {
			to.Last = r.Last
		}
		for step, counts := range r.Steps {
			at := one.At.Add(time.Duration(step) * m.of.step)
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
		r := idem.RouteHistory{RouteCounts: idem.RouteCounts{Route: strings.ToValidUTF8(name, "?"), Took: one.Took, Last: one.Last}}
		for _, step := range slices.Sorted(maps.Keys(one.Steps)) {
			r.Counts.Add(one.Steps[step])
			r.Steps = append(r.Steps, idem.CountStep{At: m.since.Add(time.Duration(step) * m.step), Counts: *one.Steps[step]})
		}
		h.Routes = append(h.Routes, r)
	}
	return h
}
