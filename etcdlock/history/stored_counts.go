package history

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

const (
	// MaxCountedRoutes bounds the routes that one key tells apart; the rest are counted together,
	// as OtherRoutes.
	MaxCountedRoutes = 100
	// OtherRoutes is the name of that rest.
	OtherRoutes = "(others)"

	maxCountKeys = 2000
	// countEvery is how long what commits nothing waits for a request to travel with.
	countEvery = time.Second
	// foldMost bounds the minutes that one request adds to an hour; etcd takes 128 operations.
	foldMost = 50
	// buriedFor is how long a request may still arrive that got no answer.
	buriedFor = time.Minute
)

// series is one way in which counts are stored.
type series struct {
	kind         string
	step, length time.Duration // of a step, and of the time that one key has
	kept         time.Duration
}

// oneMinute is the series of what is not in minutes and hours yet.
func oneMinute() series {
	return series{protocol.KindCounting, time.Minute, time.Minute, idem.HourRetention}
}

func minutesAndHours() []series {
	return []series{{protocol.KindMinutes, time.Minute, time.Hour, idem.MinuteRetention},
		{protocol.KindHours, time.Hour, 24 * time.Hour, idem.HourRetention}}
}

// Counts keeps what this process counts of its routes, and reads what all processes have counted.
//
// The counts of a minute are in a key of their own, which is written in the request that commits
// the outcomes that it counts (Carry). What commits nothing travels with such a request, or is
// written within countEvery. Requests that are under way at once have different keys: they may be
// applied in any order. When a minute is over, its keys are folded: one transaction deletes them
// and adds their counts to two notes of this process, one for the hour by the minute, one for the
// day by the hour. A process that is killed leaves the keys of its last minutes as they are, and
// readers add up all three kinds. Each write has the whole count, so repeating it does no harm.
//
// No other transaction compares these keys.
type Counts struct {
	options *Options
	// Most bounds the keys of a kind that are kept; the oldest go when there are a twentieth more.
	Most int

	notes   *writer
	writing chan struct{} // holds a token during a write: one at a time

	mu      sync.Mutex
	minutes []*minute // that are not folded
	chunks  []*chunk  // that may change yet, or are not written
	folded  []string  // keys of minutes that are in chunks, and not deleted yet
	buried  []buried
	made    int
	lease   clientv3.LeaseID // for minutes; 0 = there is none
	leased  link.Instant
}

// minute is what was counted in one minute and is in one key. It has one step.
type minute struct {
	protocol.CountChunk
	key     string
	changes int  // how often it was changed
	written int  // how many of these changes etcd has
	busy    bool // a request with it is under way
	doubted bool // a request with it got no answer
}

// chunk is one note.
type chunk struct {
	note
	protocol.CountChunk
	of  series
	key string
}

// buried is a key that was deleted while a request that writes it may still arrive.
type buried struct {
	key string
	at  time.Time
}

// NewCounts returns a writer and reader of counts. Run writes.
func NewCounts(o *Options) *Counts {
	return &Counts{options: o, Most: maxCountKeys, notes: newWriter(o), writing: make(chan struct{}, 1)}
}

// Run writes what travels with no request, until ctx ends.
func (c *Counts) Run(ctx context.Context) {
	for {
		c.Write(ctx)
		if link.Sleep(ctx, countEvery) != nil {
			return
		}
	}
}

// Finish folds everything, if etcd takes it at once. No request may be under way.
func (c *Counts) Finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Pool.Txn)
	defer cancel()
	c.writeChanges(ctx, true)
}

// Write writes what no request has taken along, and folds the minutes that are over. It returns
// false if etcd did not take it: it waits for the next write, for as long as etcd would keep it.
func (c *Counts) Write(ctx context.Context) bool { return c.writeChanges(ctx, false) }

func (c *Counts) writeChanges(ctx context.Context, last bool) bool {
	select {
	case c.writing <- struct{}{}:
		defer func() { <-c.writing }()
	case <-ctx.Done(): // the other one waits for an etcd that does not answer
		return false
	}
	if !last {
		if c.takeLease(ctx) != nil {
			return false
		}
		if writes, answered := c.carryWhatIsLeft(); writes != nil {
			_, err := c.options.Pool.Commit(ctx, c.options.Pool.Txn, nil, writes)
			answered(err, nil)
			if err != nil {
				return false
			}
		}
	}
	return c.foldMinutes(ctx, last) == nil
}

// takeLease has a lease ready on which the keys of minutes are as long as hours are kept.
func (c *Counts) takeLease(ctx context.Context) error {
	const retention = idem.HourRetention + time.Hour
	c.mu.Lock()
	fresh := c.lease != 0 && c.options.Clock.Since(c.leased) < idem.ExtraRetention(retention)
	c.mu.Unlock()
	if fresh {
		return nil
	}
	at := c.options.Clock.Instant()
	lease, err := c.notes.leases.Take(ctx, retention, "", nil)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lease, c.leased = lease, at
	return nil
}

// Carry implements commit.Counter.
func (c *Counts) Carry(counts []*commit.Count, apart bool) (protocol.Writes, func(error, []*commit.Count)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts = slices.DeleteFunc(counts, func(one *commit.Count) bool { return one.Done })
	if len(counts) == 0 {
		return nil, nil
	}
	to := c.collectLocked(true)
	for _, one := range counts {
		one.Done = true
		to.addCounted(&one.Counted)
	}
	return c.sendLocked(to, counts, apart)
}

// carryWhatIsLeft is Carry for a request that commits nothing else.
func (c *Counts) carryWhatIsLeft() (protocol.Writes, func(error, []*commit.Count)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collectLocked(false)
	return c.sendLocked(nil, nil, false)
}

// sending is minutes on their way to etcd in one request.
type sending struct {
	parent  *Counts
	to      *minute         // that counts were added to; nil = it is about none
	counts  []*commit.Count // whose outcomes are committed with it
	apart   bool            // the transaction of the counts has the writes: if it is refused, they are not applied
	minutes []*minute
	changes []int // of each, that it was written with
	lease   clientv3.LeaseID
}

// sendLocked returns the writes of the current minute that etcd does not have as they are, and that
// are in no request; apart: of to alone. It also returns what is called with the answer. counts
// were added to to.
func (c *Counts) sendLocked(to *minute, counts []*commit.Count, apart bool) (writes protocol.Writes,
	answered func(error, []*commit.Count)) {
	s, now := &sending{parent: c, to: to, counts: counts, apart: apart, lease: c.lease}, c.nowLocked()
	if c.lease == 0 { // Run will have one
		return nil, nil
	}
	for _, m := range c.minutes {
		if m.busy || m.written == m.changes || !m.At.Equal(now) || apart && m != to { // those that are over are folded
			continue
		}
		m.busy = true
		s.minutes, s.changes = append(s.minutes, m), append(s.changes, m.changes)
		writes = append(writes, protocol.Put(m.key,
			protocol.Leased{Value: protocol.EncodeCounts(&m.CountChunk), Lease: c.lease}))
	}
	if len(writes) == 0 {
		return nil, nil
	}
	return writes, s.noteAnswer
}

// noteAnswer is called with the answer to the request, and with those of counts whose transactions
// etcd refused.
func (s *sending) noteAnswer(err error, refused []*commit.Count) {
	s.parent.mu.Lock()
	defer s.parent.mu.Unlock()
	never := err != nil && link.Definite(err)
	for i, m := range s.minutes {
		m.busy = false
		if err == nil && (!s.apart || len(refused) == 0) {
			m.written = s.changes[i]
		}
		m.doubted = m.doubted || err != nil && !never
	}
	for _, one := range s.counts {
		if never || err == nil && slices.Contains(refused, one) {
			s.to.takeBackUnlessFinal(one)
		}
	}
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		s.parent.notes.leases.DropIfGone(s.lease, err)
		s.parent.lease = 0
	}
}

// Release implements commit.Counter.
func (c *Counts) Release(counts []*commit.Count) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range counts {
		if one.Final = true; !one.Done {
			one.Done = true
			c.minuteLocked(false).addCounted(&one.Counted)
		}
	}
}

// collectLocked adds what commits nothing to the current minute. free: it returns the minute, which
// is in no request.
func (c *Counts) collectLocked(free bool) (to *minute) {
	if free {
		to = c.minuteLocked(true)
	}
	for _, one := range c.options.Counted() {
		if to == nil {
			to = c.minuteLocked(false)
		}
		to.addCounts(&one)
	}
	return to
}

// minuteLocked returns the current minute; free: one that is in no request.
func (c *Counts) minuteLocked(free bool) *minute {
	at := c.nowLocked()
	for _, m := range c.minutes {
		if m.At.Equal(at) && (!free || !m.busy) {
			return m
		}
	}
	m := &minute{key: c.keyLocked(protocol.KindCounting, at),
		CountChunk: protocol.CountChunk{At: at, Routes: map[string]*protocol.CountedRoute{}}}
	c.minutes = append(c.minutes, m)
	return m
}

// nowLocked returns the current minute.
func (c *Counts) nowLocked() time.Time { return c.options.Clock.Now().UTC().Truncate(time.Minute) }

// keyLocked returns a key that this process has not used: a clock that was set back would overwrite
// what is written.
func (c *Counts) keyLocked(kind string, at time.Time) string {
	c.made++
	return c.options.Layout.CountsOf(kind, at, c.options.Writer, c.made)
}

func (m *minute) addCounts(more *idem.RouteCounts) {
	m.changes++
	addRoute(m.Routes, more, 0)
}

func (m *minute) addCounted(one *idem.Counted) {
	m.changes++
	r := roomFor(m.Routes, one.Route)
	if r.Steps[0] == nil {
		r.Steps[0] = new(idem.Counts)
	}
	one.AddTo(r.Steps[0], &r.Took)
	noteEnd(r, one.Last)
}

// takeBackUnlessFinal takes one away that was counted before: its outcome was not committed, and
// counts when it is. One that never will be stays.
func (m *minute) takeBackUnlessFinal(one *commit.Count) {
	if one.Final {
		return
	}
	one.Done = false
	m.changes++
	r := roomFor(m.Routes, one.Route)
	one.SubtractFrom(r.Steps[0], &r.Took)
}

// folding is a transaction that adds minutes to their hours and days.
type folding struct {
	chunks         []*chunk // to be written
	folded, buried []string // keys to be deleted: of minutes in chunks, and once more
}

// foldMinutes adds the minutes that are over to their hours and days; last: all.
func (c *Counts) foldMinutes(ctx context.Context, last bool) error {
	wrote := false
	for next := c.nextFold(last); !next.isEmpty(); next = c.nextFold(last) {
		if err := c.sendFold(ctx, next); err != nil {
			return err
		}
		wrote = true
	}
	if !wrote {
		return nil
	}
	for _, of := range append(minutesAndHours(), oneMinute()) {
		if err := c.notes.deleteOldest(ctx, of.kind, c.Most); err != nil {
			return err
		}
	}
	return nil
}

func (f *folding) isEmpty() bool { return len(f.chunks)+len(f.folded)+len(f.buried) == 0 }

// sendFold sends a fold, and notes that etcd has it.
func (c *Counts) sendFold(ctx context.Context, f *folding) error {
	var writes protocol.Writes
	for _, one := range f.chunks {
		if err := c.notes.prolongNote(ctx, &one.note, one.retention, nil); err != nil {
			return err
		}
		writes = append(writes, protocol.Note(one.key, protocol.Leased{Value: protocol.EncodeCounts(&one.CountChunk),
			Lease: one.lease}))
	}
	for _, key := range append(f.folded, f.buried...) {
		writes = append(writes, protocol.DropNote(key))
	}
	if _, err := c.options.Pool.Commit(ctx, c.options.Pool.Txn, nil, writes); err != nil {
		for _, one := range f.chunks {
			c.notes.leases.DropIfGone(one.lease, err)
			one.lease = 0
		}
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range f.chunks {
		one.queued = false
	}
	c.folded, c.buried = c.folded[len(f.folded):], c.buried[len(f.buried):]
	return nil
}

// nextFold moves the minutes of one hour into their chunks, and returns what is to be written. What
// etcd did not take comes again. Only a fold changes chunks.
func (c *Counts) nextFold(last bool) *folding {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last {
		c.collectLocked(false)
	}
	now := c.options.Clock.Now().UTC()
	c.dropOldLocked(now)
	if len(c.folded) == 0 {
		c.moveLocked(now, last)
	}
	f := &folding{folded: slices.Clone(c.folded)}
	for _, one := range c.chunks {
		if one.queued {
			f.chunks = append(f.chunks, one)
		}
	}
	for _, one := range c.buried {
		if len(f.buried) == foldMost || now.Sub(one.at) <= buriedFor {
			break
		}
		f.buried = append(f.buried, one.key)
	}
	return f
}

// moveLocked moves the minutes of one hour that are over into their chunks.
func (c *Counts) moveLocked(now time.Time, last bool) {
	var hour time.Time
	c.minutes = slices.DeleteFunc(c.minutes, func(m *minute) bool {
		switch of := m.At.Truncate(time.Hour); {
		case m.busy, !last && m.At.Equal(now.Truncate(time.Minute)), len(c.folded) == foldMost,
			!hour.IsZero() && !of.Equal(hour):
			return false
		default:
			hour = of
		}
		for _, of := range minutesAndHours() {
			one := c.chunkLocked(of, m.At.Truncate(of.length))
			one.addMinute(&m.CountChunk)
			one.queued = true
		}
		c.folded = append(c.folded, m.key)
		if m.doubted {
			c.buried = append(c.buried, buried{m.key, now})
		}
		return true
	})
}

// dropOldLocked drops chunks that do not change any more: a reader that began before them is over.
func (c *Counts) dropOldLocked(now time.Time) {
	c.chunks = slices.DeleteFunc(c.chunks, func(one *chunk) bool {
		over := now.Sub(one.At.Add(one.of.length))
		return over > one.of.kept || over > 2*time.Minute && !one.queued
	})
}

// chunkLocked returns the chunk of a time.
func (c *Counts) chunkLocked(of series, at time.Time) *chunk {
	for _, one := range c.chunks {
		if one.of == of && one.At.Equal(at) {
			return one
		}
	}
	one := &chunk{of: of, key: c.keyLocked(of.kind, at)}
	one.At, one.Routes, one.retention = at, map[string]*protocol.CountedRoute{}, of.length+of.kept+time.Hour
	c.chunks = append(c.chunks, one)
	return one
}

// addMinute adds a minute.
func (one *chunk) addMinute(m *protocol.CountChunk) {
	for _, name := range slices.Sorted(maps.Keys(m.Routes)) {
		r := m.Routes[name]
		more := idem.RouteCounts{Route: name, Counts: *r.Steps[0], Took: r.Took, Last: r.Last}
		step := int(m.At.Sub(one.At) / one.of.step)
		addTook(addRoute(one.Routes, &more, step), step, &r.Took)
	}
}

// addRoute adds what was counted in one step, and returns what it was added to.
func addRoute(routes map[string]*protocol.CountedRoute, more *idem.RouteCounts, step int) *protocol.CountedRoute {
	r := roomFor(routes, more.Route)
	addStep(r, step, &more.Counts)
	r.Took.Add(&more.Took)
	noteEnd(r, more.Last)
	return r
}

// noteEnd notes when a delivery noteEnd; zero = none has.
func noteEnd(r *protocol.CountedRoute, at time.Time) {
	if at.After(r.Last) {
		r.Last = at.UTC().Round(0)
	}
}

// roomFor returns the counts of a route, or of others if there are too many.
func roomFor(routes map[string]*protocol.CountedRoute, name string) *protocol.CountedRoute {
	if routes[name] == nil && len(routes) >= MaxCountedRoutes {
		name = OtherRoutes
	}
	return routeIn(routes, name)
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

// addTook adds how long requests took in one step, if there were any.
func addTook(r *protocol.CountedRoute, step int, more *idem.Durations) {
	if more.Quantile(1) == 0 {
		return
	}
	if r.StepTook == nil {
		r.StepTook = map[int]*idem.Durations{}
	}
	if r.StepTook[step] == nil {
		r.StepTook[step] = new(idem.Durations)
	}
	r.StepTook[step].Add(more)
}
