package history

import (
	"context"
	"math/rand/v2"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// An event that was refused and does not come again is possibly lost. The process that refused it
// last finds that out: it keeps the refusal in memory, and reads what has become of the event when
// its sender should have sent it again. What it finds is a part of its note of the arrivals
// (History.Lost): the record of an event without an ID lives for minutes only, so later nothing
// could tell whether the event had run. A process that begins, or hears that another one has ended,
// reads the notes and follows what no process follows any more.

const (
	maxFollowed = 10_000 // refused events that are in memory; further ones are not followed
	// between two looks at what is due: less than an eighth of the shortest useful retention
	judgeEvery    = time.Second
	firstLook     = 10 * time.Minute // at an event that is not due yet; each further one comes later
	orphanGrace   = 2 * time.Minute  // for which an event is left to the process that refused it
	refusedBurst  = 10_000           // refused events of a route that are stored whatever their rate
	orphansSought = 7 * 24 * time.Hour
)

// refusedEvents are those that this process follows, and the rates at which they are stored. The
// mutex of Duplicates guards them.
type refusedEvents struct {
	followed map[string]*refusal // by the prefix of their keys
	rates    map[string]*rate    // by route
	orphans  chan struct{}       // has a token if there may be events that no process follows
}

// refusal is an event that was refused, and has not come again as far as this process knows.
type refusal struct {
	event idem.Scope
	tally *tally // nil = another process has noted it
	at    time.Time
	due   time.Time // when it is possibly lost
	until time.Time // how long it is known that it ran
	next  time.Time // when it is looked at
	pause time.Duration
}

// rate is a bucket of refused events.
type rate struct {
	left float64
	at   time.Time
}

// mayStoreLocked takes a token for a refused event that is new here; most 0 = there is no bound.
func (d *Duplicates) mayStoreLocked(route string, most int) bool {
	if most == 0 {
		return true
	}
	now := d.options.Clock.Now()
	r := d.rates[route]
	if r == nil {
		r = &rate{left: refusedBurst, at: now}
		d.rates[route] = r
	}
	r.left = min(r.left+max(0, now.Sub(r.at).Seconds())*float64(most), refusedBurst)
	r.at = now
	if r.left < 1 {
		return false
	}
	r.left--
	return true
}

// followLocked follows an event in place of an older refusal of it: one that waited is noted after
// one that came later.
func (d *Duplicates) followLocked(key string, r *refusal) {
	known := d.followed[key]
	if known == nil && len(d.followed) >= maxFollowed || known != nil && known.at.After(r.at) {
		return
	}
	r.pause = firstLook
	r.next = r.at.Add(min(r.pause, r.due.Sub(r.at)))
	d.followed[key] = r
}

// FollowOrphans has the refused events of ended processes followed: one has ended, or this process
// begins and knows its routes.
func (d *Duplicates) FollowOrphans() { link.Wake(d.orphans) }

// Follower finds the refused events that did not come again.
type Follower struct {
	reader *Reader
	counts *Duplicates
}

// NewFollower returns a follower of the events that the process of r refuses, and of those that
// ended processes have refused.
func NewFollower(r *Reader) *Follower { return &Follower{r, r.counts} }

// Run follows, until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	for link.Sleep(ctx, judgeEvery) == nil {
		select {
		case <-f.counts.orphans:
			if f.Adopt(ctx) != nil {
				f.counts.FollowOrphans()
			}
		default:
		}
		f.Judge(ctx)
	}
}

// Judge looks at the events whose time has come.
func (f *Follower) Judge(ctx context.Context) {
	now := f.reader.options.Clock.Now()
	due := map[string]*refusal{}
	f.counts.mu.Lock()
	for key, r := range f.counts.followed {
		if !r.next.After(now) {
			due[key] = r
		}
	}
	f.counts.mu.Unlock()
	for key, r := range due {
		if now = f.reader.options.Clock.Now(); now.After(r.until) { // it may have run, and that is forgotten
			f.dropRefusal(key, r)
			continue
		}
		found, _, err := f.reader.eventOf(ctx, r.event)
		if err != nil {
			return // etcd is away: all that is due waits
		}
		switch h := found.Arrivals; {
		case !found.Unanswered(), h.Newest[0].At.After(r.at), h.Lost.After(r.at):
			// it came again, another process follows it, or it is known
			f.dropRefusal(key, r)
		case now.Before(r.due):
			f.counts.mu.Lock()
			r.pause *= 2
			r.next = now.Add(min(r.pause, r.due.Sub(now)))
			f.counts.mu.Unlock()
		default:
			f.noteLost(key, r, h)
		}
	}
}

// dropRefusal ends following r, unless the event was refused again meanwhile.
func (f *Follower) dropRefusal(key string, r *refusal) {
	f.counts.mu.Lock()
	defer f.counts.mu.Unlock()
	if f.counts.followed[key] == r {
		delete(f.counts.followed, key)
	}
}

// noteLost notes that an event is possibly lost.
func (f *Follower) noteLost(key string, r *refusal, h *idem.History) {
	d := f.counts
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.followed[key] != r {
		return
	}
	delete(d.followed, key)
	t := r.tally
	if t == nil {
		if t = d.tallyLocked(key, refusedRetention); t == nil {
			return
		}
		d.historyLocked(t, r.event, h.Route, h.EventID).Labels = h.Labels
	}
	t.history.Lost = d.options.Clock.Now().UTC().Round(time.Millisecond)
	d.enqueueLocked(&t.note)
	d.options.OnLost(idem.LostEvent{Scope: r.event, Route: h.Route, EventID: h.EventID, Labels: h.Labels,
		Arrival: h.Newest[0]})
}

// eventOf reads an event: its newest execution without the body of an answer, and its arrivals with
// what each process has written of them. Of an event that a newer release has written, there are
// none.
func (s *Reader) eventOf(ctx context.Context, event idem.Scope) (found idem.Found, written []*mvccpb.KeyValue,
	err error) {
	k := s.options.Layout.Keys(&idem.Lock{ExecutionFacts: idem.ExecutionFacts{Scope: event}})
	answers, revision, err := s.options.Pool.ReadOps(ctx,
		append(protocol.LockRecordAndQueue(k), link.Read(s.readArrivals(event))))
	if err != nil {
		return found, nil, err
	}
	st, err := protocol.ReadState(answers, revision)
	if err != nil {
		return found, nil, nil //nolint:nilerr // of a newer release
	}
	written = answers[protocol.ReadCandidates+1].GetResponseRange().Kvs
	found = newestExecution(st, event.Key)
	found.Arrivals, found.Revision = s.counts.arrivalsOf(event, written), revision
	if found.Record != nil {
		found.Record.DropBody()
	}
	return found, written, nil
}

// Adopt follows the refused events of ended processes, at most as many as one page of executions
// reads, the newest first. An event that a living process follows too is left to that for a while.
func (f *Follower) Adopt(ctx context.Context) error {
	s, now := f.reader, f.reader.options.Clock.Now()
	keys, err := s.newPast(ctx, []string{protocol.KindArrivals}, &idem.ExecutionQuery{Since: now.Add(-orphansSought)},
		beginning)
	if err != nil {
		return err
	}
	for left := pageLooks; left > 0; {
		some, over, err := keys.nextKeys(ctx, valueBatch)
		if err != nil || over || len(some) == 0 {
			return err
		}
		left -= len(some)
		items, err := s.readUnmoved(ctx, some)
		if err != nil {
			return err
		}
		for i := range items {
			if items[i].kv != nil {
				f.adoptHistory(protocol.DecodeHistory(items[i].kv.Value), now)
			}
		}
	}
	return nil
}

func (f *Follower) adoptHistory(h *idem.History, now time.Time) {
	if h == nil || len(h.Newest) == 0 || !h.Newest[0].Decision.Row().MayBeLost || h.Lost.After(h.Newest[0].At) {
		return
	}
	following := f.reader.options.Follow(h.Route, h.EventID == "")
	at := h.Newest[0].At
	r := &refusal{event: h.Scope, at: at, until: at.Add(following.Remembered)}
	grace := min(orphanGrace, following.Remembered/16)
	r.due = following.Due(h.First.At, at).Add(grace/2 + rand.N(grace/2+1)) //nolint:gosec // it only keeps two processes apart
	if following.Patience == 0 || now.After(r.until) {
		return
	}
	d, key := f.counts, f.reader.options.Layout.Arrivals(h.Scope)
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.followed[key]; known == nil || known.at.Before(at) {
		d.followLocked(key, r)
	}
}
