package park

import (
	"context"
	"sync"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Options are what an Index works with.
type Options struct {
	Pool     *link.Pool      // reads and watches etcd
	Sender   *commit.Sender  // sends the transactions
	Tasks    *commit.Tasks   // run in the background; Store.Close waits for them
	Layout   protocol.Layout // spells the keys
	Sessions *session.Set    // which sessions live
	Process
}

// Process is what an Index asks of its process, and tells it. None of its methods blocks.
type Process interface {
	// Paused reports whether executions of that route and workflow are paused.
	Paused(route, workflow string) bool
	// OnLeftQueue is called when an execution has left its queue: it has ended, or is a dead
	// letter. It must not call the Index.
	OnLeftQueue(idem.ExecutionID)
	// OnParkedChange is called after the index entry of an execution has changed or has gone.
	OnParkedChange(idem.ExecutionID)
	// OnFirstParked is called when the first execution of a queue is parked: from then on, Gone and
	// MakeAllReady must be called. It must not call the Index.
	OnFirstParked()
}

// Index knows what is parked, over all processes: it follows the index in etcd, which is small, and
// counts. It also says which queues are ready: the execution at their head may be parked and run by
// no process. That is a hint: a take-over reads how things stand. It is safe for concurrent use.
//
// It follows nothing before the first call of Count, Routes, CountPaused or Next. The ends
// of locks and queue entries are reported to it (Gone).
type Index struct {
	options *Options
	asked   chan struct{} // closed by the first call
	ask     sync.Once

	mu    sync.Mutex
	known contents
	ready ready
}

// New returns an index that knows nothing before Run.
func New(o *Options) *Index {
	return &Index{
		options: o, asked: make(chan struct{}), known: newContents(o),
		ready: ready{looks: map[string]bool{}, some: make(chan struct{})},
	}
}

// Run follows the index from the first question until ctx ends.
func (x *Index) Run(ctx context.Context) {
	select {
	case <-x.asked:
	case <-ctx.Done():
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	f := &follower{index: x}
	wg.Go(func() { f.lookRound(ctx) })
	wg.Go(func() { x.sweepRound(ctx) })
	f.run(ctx)
}

func (x *Index) startFollowing() { x.ask.Do(func() { close(x.asked) }) }

// Count counts what is parked, and what of it is in the lock with that key or in its queue.
func (x *Index) Count(lock string) idem.ParkedCount {
	x.startFollowing()
	x.mu.Lock()
	defer x.mu.Unlock()
	k := &x.known
	count := idem.ParkedCount{Events: k.events, Bytes: k.bytes, Blocked: k.blocked, DeadLetters: k.deadLetters,
		Oldest: k.oldestSince()}
	if q := k.queues[lock]; q != nil {
		count.InQueue = q.executions
	}
	return count
}

// DeadLetterRoutes counts the dead letters of each route.
func (x *Index) DeadLetterRoutes() map[string]int {
	x.startFollowing()
	x.mu.Lock()
	defer x.mu.Unlock()
	counts := map[string]int{}
	for _, e := range x.known.entries {
		if e.State == idem.ParkDeadLetter {
			counts[e.Route]++
		}
	}
	return counts
}

// Routes counts the parked executions of each route that matches.
func (x *Index) Routes(match func(route string) bool) map[string]int {
	x.startFollowing()
	x.mu.Lock()
	defer x.mu.Unlock()
	counts, matches := map[string]int{}, map[string]bool{}
	for _, e := range x.known.entries {
		if e.State == idem.ParkDeadLetter {
			continue
		}
		is, known := matches[e.Route]
		if !known {
			is = match(e.Route)
			matches[e.Route] = is
		}
		if is {
			counts[e.Route]++
		}
	}
	return counts
}

// CountPaused adds the parked executions to each of the pauses that hold them back.
func (x *Index) CountPaused(states []idem.PauseState) {
	x.startFollowing()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.known.entries {
		for i := range states {
			if e.State != idem.ParkDeadLetter && states[i].Scope.Covers(e.Route, e.Workflow) {
				states[i].Parked++
			}
		}
	}
}

// IsTooOld reports whether the MaxAge of an execution is over, as far as this process knows. If it
// ended while the execution was paused, it returns false until the next try has begun.
func (x *Index) IsTooOld(id idem.ExecutionID) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.known.entries[id]
	return e != nil && e.old && !e.spared
}

// TooOld is Old for an execution whose age key was read: young says that the key is there.
func (x *Index) TooOld(id idem.ExecutionID, young bool) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.known.entries[id]
	return !young && (e == nil || !e.spared)
}

// NoteTry notes that a try of an execution has begun.
func (x *Index) NoteTry(id idem.ExecutionID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.known.entries[id]; e != nil {
		e.spared = false
	}
}

// ApplyPauses makes all queues ready, and notes which executions grew too old while they are
// paused.
func (x *Index) ApplyPauses() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.known.entries {
		x.known.markSpared(e)
	}
	x.makeAllReadyLocked()
}

// Next waits for a ready queue, and returns each once for each reason to look at it, in the order
// in which they became ready. route is that of the executions in it, or "" if they are, or were, of
// several. It returns the cause of ctx, or commit.ErrClosed after the tasks have ended.
func (x *Index) Next(ctx context.Context) (scope idem.Scope, route string, err error) {
	x.startFollowing()
	for {
		x.mu.Lock()
		q, some := x.ready.takeNext()
		if q != nil {
			scope, route = q.scope, q.route
		}
		x.mu.Unlock()
		if q != nil {
			return scope, route, nil
		}
		select {
		case <-some:
		case <-ctx.Done():
			return idem.Scope{}, "", context.Cause(ctx)
		case <-x.options.Tasks.Life.Done():
			return idem.Scope{}, "", commit.ErrClosed
		}
	}
}

// MakeAllReady makes all queues ready.
func (x *Index) MakeAllReady() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.makeAllReadyLocked()
}

func (x *Index) makeAllReadyLocked() {
	for _, q := range x.known.queues {
		x.ready.addQueue(q)
	}
}

// MakeReady makes the queue of the lock with that key ready.
func (x *Index) MakeReady(lock string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ready.addQueue(x.known.queues[lock])
}

// MakeReadyFor makes the queue of one execution ready.
func (x *Index) MakeReadyFor(id idem.ExecutionID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.known.entries[id]; e != nil {
		x.ready.addQueue(x.known.queues[e.lock])
	}
}

// Died makes ready the queues whose lock one of these sessions had, and those that were not looked
// at yet.
func (x *Index) Died(names []string) {
	ended := map[string]bool{"": true}
	for _, name := range names {
		ended[protocol.SessionAlive(name)] = true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, q := range x.known.queues {
		if ended[q.alive] {
			x.ready.addQueue(q)
		}
	}
}

// BeginLook is called before a look at a queue. It returns false while another look is under way:
// the queue is then ready again after that.
func (x *Index) BeginLook(lock string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.ready.beginLook(lock)
}

// EndLook ends what BeginLook began.
func (x *Index) EndLook(lock string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ready.endLook(lock) {
		x.ready.addQueue(x.known.queues[lock])
	}
}

// NoteOwner notes what proves the owner of a lock alive; "" = nothing does. If that session is not
// known to be alive, the queue is ready again after a second: its beginning or its end may not have
// been reported yet, and an end before this call is not reported to this queue.
func (x *Index) NoteOwner(lock, alive string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.known.queues[lock]
	if q == nil {
		return
	}
	q.alive = alive
	if alive != "" && !protocol.IsHold(alive) && !x.options.Sessions.Has(alive) {
		time.AfterFunc(lookAgainIn, func() { x.MakeReady(lock) })
	}
}

const lookAgainIn = time.Second
