package etcdlock

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/etcdlock/link"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

const (
	indexPage   = 1000
	slowRound   = time.Minute // in which every line is looked at once, whatever was missed
	quietPeriod = 10 * time.Second
)

// run follows from when somebody asks until ctx ends.
func (p *lines) run(ctx context.Context) {
	select {
	case <-p.asked:
	case <-ctx.Done():
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { p.followLocks(ctx) })
	wg.Go(func() { p.lookRound(ctx) })
	wg.Go(func() { p.sweepRound(ctx) })
	for ctx.Err() == nil {
		revision, err := p.list(ctx)
		if err != nil {
			return
		}
		_ = p.store.pool.Watch(ctx, link.OfWaits, p.indexWatches(revision+1)...) // whatever it was, all is read again
	}
}

// list reads the whole index. It returns the error of ctx.
func (p *lines) list(ctx context.Context) (int64, error) {
	seen := map[idem.ExecutionID]*entry{}
	young := map[idem.ExecutionID]bool{}
	index := link.Below(p.store.layout.Parked(), indexPage)
	ages := link.Below(p.store.layout.Ages(), indexPage)
	err := p.each(ctx, index, func(id idem.ExecutionID, kv *mvccpb.KeyValue) {
		if e := p.read(id, kv); e != nil {
			seen[id] = e
		}
	})
	if ages.Revision = index.Revision; err == nil {
		err = p.each(ctx, ages, func(id idem.ExecutionID, _ *mvccpb.KeyValue) { young[id] = true })
	}
	switch {
	case ctx.Err() != nil:
		return 0, err
	case err != nil: // the revision is compacted
		return p.list(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.entries {
		if seen[id] == nil {
			p.dropLocked(id)
		}
	}
	for id, e := range seen {
		if e.old = !young[id]; p.entries[id] != nil {
			e.spared = p.entries[id].spared
		}
		p.spareLocked(e)
		p.putLocked(e)
	}
	for _, l := range p.lines {
		p.ripenLocked(l)
	}
	return index.Revision, nil
}

// each calls f for the keys of a scan, which end with the ID of an execution.
func (p *lines) each(ctx context.Context, keys *link.Scan, f func(idem.ExecutionID, *mvccpb.KeyValue)) error {
	prefix := keys.From
	for kv, err := range p.store.pool.All(ctx, keys) {
		if err != nil {
			return err
		}
		f(idem.ExecutionID(strings.TrimPrefix(string(kv.Key), prefix)), kv)
	}
	return nil
}

// read is nil for a value of a newer release.
func (p *lines) read(id idem.ExecutionID, kv *mvccpb.KeyValue) *entry {
	v, err := protocol.DecodeIndex(kv.Value)
	if err != nil {
		return nil
	}
	v.Execution = id
	return &entry{ParkedEntry: *v, key: p.store.layout.Lock(v.Scope), revision: kv.ModRevision}
}

func (p *lines) indexWatches(from int64) []link.Watch {
	watch := func(prefix string, news func(id idem.ExecutionID, e *clientv3.Event)) link.Watch {
		return link.Watch{Key: prefix, Opts: []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithRev(from)}, News: func(e *clientv3.Event) {
			news(idem.ExecutionID(strings.TrimPrefix(string(e.Kv.Key), prefix)), e)
		}}
	}
	return []link.Watch{watch(p.store.layout.Parked(), p.indexed), watch(p.store.layout.Ages(), p.aged)}
}

func (p *lines) indexed(id idem.ExecutionID, e *clientv3.Event) {
	p.mu.Lock()
	if e.Type == clientv3.EventTypeDelete {
		p.dropLocked(id)
	} else if in := p.read(id, e.Kv); in != nil {
		if before := p.entries[id]; before != nil {
			in.old, in.spared = before.old, before.spared // until its age is put again
		}
		p.putLocked(in)
		p.ripenLocked(p.lines[in.key])
	}
	p.mu.Unlock()
	if h := p.store.ours(id); h != nil { // somebody lets it run now, or has ended it
		p.store.tasks.Help(func(life context.Context) {
			h.lookAgain(life)
			p.ripenOf(id)
		})
	}
}

// aged is told of G: gone while the entry is there, the execution is too old.
func (p *lines) aged(id idem.ExecutionID, e *clientv3.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	in := p.entries[id]
	if in == nil {
		return
	}
	if in.old, in.spared = e.Type == clientv3.EventTypeDelete, false; in.old {
		p.spareLocked(in)
		p.ripenLocked(p.lines[in.key])
	}
}

func (p *lines) putLocked(e *entry) {
	if before := p.entries[e.Execution]; before != nil {
		p.uncountLocked(before)
	}
	p.entries[e.Execution] = e
	p.bytes += e.Bytes
	if e.State == idem.ParkDeadLetter {
		p.letters++
		p.leftLocked(e)
		return
	}
	l := p.lines[e.key]
	if l == nil {
		l = &line{key: e.key, scope: e.Scope}
		if !e.PerEvent {
			l.scope.Key = ""
		}
		p.lines[e.key] = l
		p.setUnderLocked(e, true)
		link.Wake(p.some)
	}
	if l.n == 0 {
		l.route = e.Route
	} else if l.route != e.Route {
		l.route = ""
	}
	l.n++
	p.events++
	if e.State == idem.ParkBlocked {
		if l.blocked++; l.blocked == 1 {
			p.blocked++
		}
	}
	p.ageLocked(aged{e.Since, e.Execution})
}

func (p *lines) dropLocked(id idem.ExecutionID) {
	e := p.entries[id]
	if e == nil {
		return
	}
	p.uncountLocked(e)
	delete(p.entries, id)
	p.leftLocked(e)
}

// leftLocked is for an execution that is in its line no more.
func (p *lines) leftLocked(e *entry) {
	p.store.slots.LeaveLine(e.Execution)
	if l := p.lines[e.key]; l != nil && l.n == 0 {
		l.ripe = false
		delete(p.lines, e.key)
		p.setUnderLocked(e, false)
	}
}

// setUnderLocked notes whether there is a line of e, where its lock is the event's own.
func (p *lines) setUnderLocked(e *entry, there bool) {
	if !e.PerEvent {
		return
	}
	workflow := p.store.layout.Other(e.Scope)
	switch of := p.under[workflow]; {
	case there && of == nil:
		p.under[workflow] = map[string]bool{e.key: true}
	case there:
		of[e.key] = true
	default:
		if delete(of, e.key); len(of) == 0 {
			delete(p.under, workflow)
		}
	}
}

func (p *lines) uncountLocked(e *entry) {
	p.bytes -= e.Bytes
	if e.State == idem.ParkDeadLetter {
		p.letters--
		return
	}
	l := p.lines[e.key]
	l.n--
	p.events--
	if e.State == idem.ParkBlocked {
		if l.blocked--; l.blocked == 0 {
			p.blocked--
		}
	}
}

// followLocks hears of what ends in queues and locks, while something is parked.
func (p *lines) followLocks(ctx context.Context) {
	for {
		select {
		case <-p.some:
		case <-ctx.Done():
			return
		}
		for p.any() && ctx.Err() == nil {
			_, revision, err := p.store.pool.Read(ctx, clientv3.OpGet(p.store.layout.Parked(), clientv3.WithPrefix(), clientv3.WithCountOnly()))
			if err != nil {
				return
			}
			p.ripenAll() // what has come before the watch is read
			p.watchLocks(ctx, revision+1)
		}
	}
}

func (p *lines) any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines) > 0
}

// watchLocks returns when the watch breaks, or when nothing has been parked for a while.
func (p *lines) watchLocks(ctx context.Context, from int64) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for quiet := 0; quiet < 2; quiet++ {
			if link.Sleep(ctx, quietPeriod) != nil {
				return
			}
			if p.any() {
				quiet = -1
			}
		}
		cancel()
	})
	y := p.store.layout
	watch := func(prefix string, news func(key string)) link.Watch {
		return link.Watch{Key: prefix, Opts: []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithRev(from), clientv3.WithFilterPut()}, News: func(e *clientv3.Event) {
			news(string(e.Kv.Key))
		}}
	}
	_ = p.store.pool.Watch(ctx, link.OfWaits, watch(y.Locks(), p.freed), watch(y.Queues(), p.left))
	cancel()
}

// left is told of a place that is gone: its workflow's line, and that of its event.
func (p *lines) left(place string) {
	lock := p.store.layout.Locks() + strings.TrimPrefix(place, p.store.layout.Queues())
	p.ripenLock(lock)
	if i := strings.LastIndexByte(lock, '/'); i > 0 {
		p.ripenLock(lock[:i])
	}
}

// keys are the locks of all lines.
func (p *lines) keys() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.lines))
}

// lookRound ripens all lines in each slowRound, evenly spread.
func (p *lines) lookRound(ctx context.Context) {
	const steps = 60
	for round, i := p.keys(), 0; link.Sleep(ctx, slowRound/steps) == nil; i++ {
		if i == steps {
			round, i = p.keys(), 0
		}
		for _, key := range round[i*len(round)/steps : (i+1)*len(round)/steps] {
			p.ripenLock(key)
		}
	}
}
