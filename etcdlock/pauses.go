package etcdlock

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// pauses are the pauses as this process has heard of them: with its session first, then by the watch of that. What was heard stays in force while
// etcd is away.
//
// Who takes a lock reads the epoch of its session first and then the pauses. The process that hears of a pause notes it first and then moves the
// epoch, which acknowledges it: what was sent before has taken its lock by then or never will, and what is sent afterwards has seen the pause
// (test/model/paused.go). So a pause costs a delivery one load of a pointer, and no compare.
type pauses struct {
	layout  protocol.Layout
	now     atomic.Pointer[pauseSet] // nil = nothing is paused
	heard   chan struct{}            // there is something to acknowledge
	changed func(begun, over []*idem.Pause)

	mu sync.Mutex
	// announcing counts the tries of parked executions whose announcement is on its way, for which no epoch is compared. Each acknowledgement waits
	// for those that began before it, and begins another group.
	announcing *sync.WaitGroup
	all        map[string]*idem.Pause // by key
	revision   int64                  // up to which everything is known
}

// pauseSet is what is paused at a time. It is never changed.
type pauseSet struct {
	pauses []*idem.Pause
	life   context.Context // ends when another one is in force
	end    context.CancelFunc
}

// pauseBatch pauses are read at a time.
const pauseBatch = 100

func newPauses(y protocol.Layout, changed func(begun, over []*idem.Pause)) *pauses {
	return &pauses{layout: y, heard: make(chan struct{}, 1), changed: changed, announcing: new(sync.WaitGroup), all: map[string]*idem.Pause{}}
}

// Paused implements idem.Ledger.
func (s *core) Paused(route, workflow string) *idem.Pause { return s.pauses.of(route, workflow) }

// of is the pause that an execution of that route and workflow waits for; nil = none. What is no route's, as a lock of the lock API, is not paused.
func (p *pauses) of(route, workflow string) *idem.Pause {
	set := p.now.Load()
	if set == nil || route == "" {
		return nil
	}
	return set.of(route, workflow)
}

func (set *pauseSet) of(route, workflow string) *idem.Pause {
	for _, pause := range set.pauses {
		if pause.Scope.Covers(route, workflow) {
			return pause
		}
	}
	return nil
}

// change is closed when what is paused has changed; nil = nothing of that route and workflow is paused.
func (p *pauses) change(route, workflow string) <-chan struct{} {
	set := p.now.Load()
	if set == nil || route == "" || set.of(route, workflow) == nil {
		return nil
	}
	return set.life.Done()
}

// begin lets a try begin unless it is paused. done is to be called when etcd has it, or never will.
func (p *pauses) begin(route, workflow string) (done func(), paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of(route, workflow) != nil {
		return nil, true
	}
	p.announcing.Add(1)
	return p.announcing.Done, false
}

// replace is after a fresh list.
func (p *pauses) Replace(kvs []*mvccpb.KeyValue, revision int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]*idem.Pause{}
	for _, kv := range kvs {
		if pause, err := p.layout.PauseAt(kv); err == nil {
			all[string(kv.Key)] = pause
		}
	}
	p.revision = revision
	p.setLocked(all)
}

// events is told of changes by the watch. Those that travelled in one request have one revision, and are in force together: it is that of which this process
// then says that it has heard.
func (p *pauses) Events(events []*clientv3.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, known := maps.Clone(p.all), p.revision
	for _, e := range events {
		if e.Kv.ModRevision <= known { // a list was newer
			continue
		}
		delete(all, string(e.Kv.Key))
		if e.Type == mvccpb.PUT {
			if pause, err := p.layout.PauseAt(e.Kv); err == nil {
				all[string(e.Kv.Key)] = pause
			}
		}
		p.revision = e.Kv.ModRevision
	}
	p.setLocked(all)
}

func (p *pauses) setLocked(all map[string]*idem.Pause) {
	var begun, over []*idem.Pause
	for key, pause := range all {
		if before := p.all[key]; before == nil || before.Revision != pause.Revision {
			begun = append(begun, pause)
		}
	}
	for key, pause := range p.all {
		if all[key] == nil {
			over = append(over, pause)
		}
	}
	if p.all = all; len(begun)+len(over) == 0 {
		return
	}
	var next *pauseSet
	if len(all) > 0 {
		next = &pauseSet{pauses: p.listLocked()}
		next.life, next.end = context.WithCancel(context.Background())
	}
	if before := p.now.Swap(next); before != nil {
		before.end()
	}
	if len(begun) > 0 {
		link.Wake(p.heard)
	}
	p.changed(begun, over)
}

// listLocked is in the order in which they began.
func (p *pauses) listLocked() []*idem.Pause {
	list := make([]*idem.Pause, 0, len(p.all))
	for _, pause := range p.all {
		list = append(list, pause)
	}
	slices.SortFunc(list, func(a, b *idem.Pause) int { return cmp.Compare(a.Revision, b.Revision) })
	return list
}

// latest returns the revision of the newest pause, 0 without one, when no try is being announced that began before this process knew of it.
func (p *pauses) latest() (revision int64) {
	p.mu.Lock()
	for _, pause := range p.all {
		revision = max(revision, pause.Revision)
	}
	before := p.announcing
	p.announcing = new(sync.WaitGroup)
	p.mu.Unlock()
	before.Wait()
	return revision
}

// acknowledge says in the session's key what this process has heard of, until ctx ends or the session is over.
func (p *pauses) Acknowledge(ctx context.Context, s *session.Session, pool *link.Pool) {
	for {
		select {
		case <-p.heard:
		case <-s.Over:
			return
		case <-ctx.Done():
			return
		}
		if s.Acknowledge(ctx, pool, p.latest()) != nil || s.Gone() {
			link.Wake(p.heard) // what this session did not say, the next one says
			return
		}
	}
}

// pauseChanged is told of each change by the watch, in order.
func (s *core) pauseChanged(begun, over []*idem.Pause) {
	s.lines.pausesChanged()
	s.slots.PausesChanged()
	if s.o.OnPause == nil {
		return
	}
	for _, p := range over {
		s.o.OnPause(*p, true)
	}
	for _, p := range begun {
		s.o.OnPause(*p, false)
	}
}

// PausedHere are the pauses that are in force in this process, in the order in which they began, with how many parked executions wait for each over all
// processes. It asks nobody.
func (s *Store) PausedHere() []idem.PauseState {
	set := s.pauses.now.Load()
	if set == nil {
		return nil
	}
	states := make([]idem.PauseState, len(set.pauses))
	for i, p := range set.pauses {
		states[i].Pause = *p
	}
	s.lines.countPaused(states)
	return states
}

// Pause holds back what begins in p.Scope, until Resume or for as long as p.For says. A pause of the same scope is replaced: before is that, or nil.
// The error is idem.ErrStoreUnavailable.
func (s *Control) Pause(ctx context.Context, p idem.Pause) (before *idem.Pause, err error) {
	key := s.layout.Pause(p.Scope)
	value, err := protocol.EncodePause(&p)
	if err != nil {
		return nil, unavailable(err)
	}
	answers, _, err := s.pool.Read(ctx, clientv3.OpGet(key))
	if err != nil {
		return nil, unavailable(err)
	}
	if kv := protocol.First(answers[0]); kv != nil {
		if before, err = s.layout.PauseAt(kv); err != nil {
			return nil, unavailable(err)
		}
	}
	lease := clientv3.LeaseID(0)
	if p.For > 0 {
		if lease, err = s.pool.NewLease(ctx, p.For); err != nil {
			return nil, unavailable(err)
		}
	}
	r := commit.NewRequest(key, protocol.Note(key, protocol.Leased{Value: value, Lease: lease}), len(value))
	r.Unbatched = lease != 0
	if _, applied, err := s.change(ctx, r); err != nil || !applied {
		return nil, unavailable(err)
	}
	return before, nil
}

// Resume ends a pause, and returns it. The error is idem.ErrNoPause or idem.ErrStoreUnavailable.
func (s *Control) Resume(ctx context.Context, scope idem.PauseScope) (*idem.Pause, error) {
	key := s.layout.Pause(scope)
	answer, _, err := s.change(ctx, commit.NewRequest(key, protocol.Resume(key), 0))
	if err != nil {
		return nil, unavailable(err)
	}
	kvs := answer.Responses[0].GetResponseDeleteRange().PrevKvs
	if len(kvs) == 0 {
		return nil, idem.ErrNoPause
	}
	p, err := s.layout.PauseAt(kvs[0])
	if err != nil {
		return nil, unavailable(err)
	}
	return p, nil
}

// maxPauseLooks is how many locks, and how many places, are looked at for how far pauses have come.
const maxPauseLooks = 20_000

// Pauses are all pauses, in the order in which they began, with how far each has come: all of it at one revision. The error is
// idem.ErrStoreUnavailable.
func (s *Control) Pauses(ctx context.Context) ([]idem.PauseState, error) {
	answers, revision, err := s.pool.Read(ctx,
		clientv3.OpGet(s.layout.Pauses(), clientv3.WithPrefix()), clientv3.OpGet(s.layout.Sessions(), clientv3.WithPrefix()))
	if err != nil {
		return nil, unavailable(err)
	}
	var states []idem.PauseState
	for _, kv := range answers[0].GetResponseRange().Kvs {
		p, err := s.layout.PauseAt(kv)
		if err != nil {
			continue // no process reads it as a pause
		}
		states = append(states, idem.PauseState{Pause: *p})
	}
	if len(states) == 0 {
		return nil, nil
	}
	slices.SortFunc(states, func(a, b idem.PauseState) int { return cmp.Compare(a.Revision, b.Revision) })
	for _, kv := range answers[1].GetResponseRange().Kvs {
		heard, holder := protocol.HeardOf(kv)
		for i := range states {
			if heard < states[i].Revision {
				states[i].Unheard = append(states[i].Unheard, cmp.Or(holder, strings.TrimPrefix(string(kv.Key), s.layout.Sessions())))
			}
		}
	}
	for _, prefix := range []string{s.layout.Locks(), s.layout.Queues()} {
		if err := s.countFor(ctx, states, prefix, revision); err != nil {
			return nil, unavailable(err)
		}
	}
	return states, nil
}

// countFor counts locks or queue entries for each of the pauses.
func (s *Control) countFor(ctx context.Context, states []idem.PauseState, prefix string, revision int64) error {
	keys := link.Below(prefix, pauseBatch)
	keys.Revision = revision
	looked := 0
	for kv, err := range s.pool.All(ctx, keys) {
		if err != nil {
			return err
		}
		l, unread := protocol.LockAt(kv)
		looked++
		for i := range states {
			switch {
			case looked > maxPauseLooks, unread != nil: // there are more than are looked at, or it is of a newer release
				states[i].More = true
			case l.Route != "" && states[i].Scope.Covers(l.Route, l.Scope.Workflow):
				countOne(&states[i], l, prefix == s.layout.Queues())
			}
		}
		if looked > maxPauseLooks {
			return nil
		}
	}
	return nil
}

func countOne(p *idem.PauseState, l *idem.Lock, waits bool) {
	switch {
	case l.IsParked() && (waits || !l.Parked.Trying):
		p.Parked++
	case waits:
		p.Waiting++
	default:
		p.Running++
	}
}
