package view

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/idem"
)

// Pauses are the pauses that this process knows: those that it reads with its session, and then
// those that its watch reports. They stay in force while etcd is away.
//
// A claim reads the epoch of its session first and then the pauses. A process that learns of a
// pause records it first and then moves the epoch, which acknowledges it: what was sent before has
// taken its lock by then or never will, and what is sent afterwards has seen the pause
// (test/model/paused.go). So a pause costs a delivery one load of a pointer, and no compare.
type Pauses struct {
	layout protocol.Layout
	view   *View                    // is told of each change, in order
	now    atomic.Pointer[pauseSet] // nil = nothing is paused
	heard  chan struct{}            // signals that there is something to acknowledge

	mu sync.Mutex
	// announcing counts the tries of parked executions whose announcement is on its way, for which
	// no epoch is compared. Each acknowledgement waits for those that began before it, and begins
	// another group.
	announcing *sync.WaitGroup
	all        map[string]*idem.Pause // by key
	revision   int64                  // up to which all pauses are known
}

// pauseSet is what is paused at a time. It is never changed.
type pauseSet struct {
	pauses []*idem.Pause
	life   context.Context // ends when another one is in force
	end    context.CancelFunc
}

// newPauses returns pauses of which none is in force.
func newPauses(y protocol.Layout, v *View) *Pauses {
	return &Pauses{layout: y, heard: make(chan struct{}, 1), view: v, announcing: new(sync.WaitGroup),
		all: map[string]*idem.Pause{}}
}

// Of returns the pause that an execution of that route and workflow waits for; nil = none. An
// execution without a route, as a lock of the lock API, is not paused.
func (p *Pauses) Of(route, workflow string) *idem.Pause {
	set := p.now.Load()
	if set == nil || route == "" {
		return nil
	}
	return set.pauseOf(route, workflow)
}

func (set *pauseSet) pauseOf(route, workflow string) *idem.Pause {
	for _, pause := range set.pauses {
		if pause.Scope.Covers(route, workflow) {
			return pause
		}
	}
	return nil
}

// Change returns a channel that is closed when what is paused has changed; nil = nothing of that
// route and workflow is paused.
func (p *Pauses) Change(route, workflow string) <-chan struct{} {
	set := p.now.Load()
	if set == nil || route == "" || set.pauseOf(route, workflow) == nil {
		return nil
	}
	return set.life.Done()
}

// Begin lets a try begin unless it is paused. The caller must call done when etcd has the
// announcement, or never will.
func (p *Pauses) Begin(route, workflow string) (done func(), paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Of(route, workflow) != nil {
		return nil, true
	}
	p.announcing.Add(1)
	return p.announcing.Done, false
}

// Replace takes a complete list of pauses as of revision.
func (p *Pauses) Replace(kvs []*mvccpb.KeyValue, revision int64) {
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

// Events takes changes that the watch reports. Those of one request have one revision, and are in
// force together: it is the revision that this process then acknowledges.
func (p *Pauses) Events(events []*clientv3.Event) {
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

func (p *Pauses) setLocked(all map[string]*idem.Pause) {
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
	p.view.applyPauses(begun, over)
}

// listLocked returns the pauses in the order in which they began.
func (p *Pauses) listLocked() []*idem.Pause {
	list := make([]*idem.Pause, 0, len(p.all))
	for _, pause := range p.all {
		list = append(list, pause)
	}
	slices.SortFunc(list, func(a, b *idem.Pause) int { return cmp.Compare(a.Revision, b.Revision) })
	return list
}

// awaitLatest returns the revision of the newest pause, 0 without one, once no try is being
// announced that began before this process knew of it.
func (p *Pauses) awaitLatest() (revision int64) {
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

// Acknowledge writes into the session's key which pauses this process knows, until ctx ends or the
// session is over.
func (p *Pauses) Acknowledge(ctx context.Context, s *session.Session, pool *link.Pool) {
	for {
		select {
		case <-p.heard:
		case <-s.Over:
			return
		case <-ctx.Done():
			return
		}
		if s.Acknowledge(ctx, pool, p.awaitLatest()) != nil || s.Gone() {
			link.Wake(p.heard) // what this session did not write, the next one writes
			return
		}
	}
}

// List returns the pauses that are in force in this process, in the order in which they began.
func (p *Pauses) List() []*idem.Pause {
	if set := p.now.Load(); set != nil {
		return set.pauses
	}
	return nil
}
