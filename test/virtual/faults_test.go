package virtual

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"hooklock/idem"
)

// faults breaks things until end, one after the other and some of them together.
func (w *world) faults(end time.Time) {
	for {
		time.Sleep(w.between(10*time.Second, 4*time.Minute) * time.Duration(w.kind.rareFaults))
		if time.Now().After(end) {
			return
		}
		if fault := pickOf(w, faults...); w.chance(300) {
			w.breaking.Go(func() { fault(w) })
		} else {
			fault(w)
		}
	}
}

var faults = []func(*world){
	func(w *world) { // packets get lost
		w.say("fault", "packets get lost")
		w.setLoss(10)
		time.Sleep(w.between(5*time.Second, 2*time.Minute))
		w.setLoss(1)
	},
	func(w *world) { // a process is alone
		p := w.anyProcess()
		w.say("fault", "%s is cut off", p.name)
		mend := p.net.cut()
		time.Sleep(w.between(time.Second, pickOf(w, 4*time.Second, 20*time.Second, 5*time.Minute)))
		w.say("fault", "%s is back", p.name)
		mend()
	},
	func(w *world) { // etcd is away
		if !w.etcd.stop() {
			return
		}
		w.say("fault", "etcd is away")
		time.Sleep(w.between(100*time.Millisecond, pickOf(w, 3*time.Second, 3*time.Second, time.Minute, time.Minute,
			20*time.Minute, time.Hour)))
		w.etcd.start()
		w.say("fault", "etcd is back")
	},
	func(w *world) {
		w.say("fault", "etcd compacts")
		w.etcd.compact(context.Background())
	},
	func(w *world) { w.say("fault", "a session ends early"); w.revoke() },
	func(w *world) {
		w.replace(w.anyProcess(), (*process).kill, w.between(0, time.Minute))
	},
	func(w *world) { // every replica is restarted, with other settings
		w.say("fault", "rolling restart")
		w.reload()
		w.mu.Lock()
		all := append([]*process(nil), w.processes...)
		w.mu.Unlock()
		for _, p := range all {
			w.replace(p, (*process).end, w.between(0, 10*time.Second))
		}
	},
	func(w *world) { // its machine is suspended, as far as its clocks tell
		p := w.anyProcess()
		w.say("fault", "%s was suspended", p.name)
		p.asleep.Add(int64(w.between(time.Second, time.Minute)))
	},
	func(w *world) {
		w.say("fault", "the disk is full")
		w.diskFull.Store(true)
		time.Sleep(w.between(time.Second, 3*time.Minute))
		w.diskFull.Store(false)
	},
	func(w *world) {
		w.say("fault", "the service is away")
		w.service.away.Store(true)
		long := 2 * time.Hour
		if w.chance(100) {
			long = 24 * time.Hour
		}
		time.Sleep(w.between(time.Second, pickOf(w, 10*time.Second, 10*time.Second, 10*time.Minute, 10*time.Minute,
			long)))
		w.service.away.Store(false)
		w.say("fault", "the service is back")
	},
	func(w *world) { w.say("fault", "reload"); w.reload() },
}

func (w *world) setLoss(of100 int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loss = of100
}

func (w *world) reload() {
	for _, r := range w.routes {
		r.draw()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		p.worker.OnReload()
	}
}

// revoke ends the session of some process, as etcd does by mistake after its leader was paused.
func (w *world) revoke() {
	m, _ := w.etcd.current()
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	sessions, err := m.client.Get(ctx, "/hooklock/v1/sessions/", clientv3.WithPrefix())
	if err != nil || len(sessions.Kvs) == 0 {
		return
	}
	kv := sessions.Kvs[w.pick(len(sessions.Kvs))]
	w.mu.Lock()
	w.revokes[string(kv.Key)] = time.Now()
	w.mu.Unlock()
	_, _ = m.client.Revoke(ctx, clientv3.LeaseID(kv.Lease))
}

// operators do what people do, until end.
func (w *world) operators(end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(w.between(5*time.Second, 2*time.Minute) * time.Duration(w.kind.rareFaults))
		p := w.anyProcess()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		pickOf(w, operations...)(ctx, w, p)
		cancel()
	}
	for _, r := range w.routes {
		w.resume(r)
	}
}

var operations = []func(context.Context, *world, *process){
	func(ctx context.Context, w *world, p *process) {
		r := pickOf(w, w.routes...)
		scope := idem.PauseScope{Route: r.name}
		_, err := p.store.Pause(ctx, idem.Pause{Scope: scope, By: "ops", Reason: "try", Since: time.Now()}, nil)
		w.say("operator", "pause %s at %s: %v", r.name, p.name, err)
		time.Sleep(w.between(time.Second, 20*time.Second))
		if w.acknowledged(r) {
			w.judge.pause(r.name, false)
		}
		time.Sleep(w.between(time.Second, 3*time.Minute))
		w.judge.pause(r.name, true)
		w.resume(r)
	},
	func(ctx context.Context, w *world, p *process) {
		if e := w.anyEvent(ctx, p, idem.ExecutionQuery{Status: idem.Running}); e != nil {
			w.judge.explain(e.EventID, "cancelled")
			_, _, err := p.store.Cancel(ctx, e.Execution, idem.Cancel{By: "ops", Reason: "try", At: time.Now()}, nil)
			w.say("operator", "cancel %s: %v", e.Execution, err)
		}
	},
	func(ctx context.Context, w *world, p *process) {
		if e := w.anyEvent(ctx, p, idem.ExecutionQuery{Status: idem.Pending}); e != nil {
			w.judge.allow(e.EventID)
			_, err := p.store.RunNow(ctx, e.Execution, nil)
			w.say("operator", "run %s: %v", e.Execution, err)
		}
	},
	func(ctx context.Context, w *world, p *process) {
		if e := w.anyEvent(ctx, p, idem.ExecutionQuery{Status: idem.Pending}); e != nil {
			w.judge.explain(e.EventID, "skipped")
			_, _, err := p.store.Skip(ctx, e.Execution, idem.Cancel{By: "ops", Reason: "try", At: time.Now()}, nil)
			w.say("operator", "skip %s: %v", e.Execution, err)
		}
	},
	func(ctx context.Context, w *world, p *process) {
		if e := w.anyEvent(ctx, p, idem.ExecutionQuery{Status: idem.Failed}); e != nil {
			w.judge.allow(e.EventID)
			again, err := p.store.Rerun(ctx, e.Execution, nil)
			if err == nil {
				w.judge.accepted(w.judge.event(e.EventID), again.ID())
			}
			w.say("operator", "rerun %s of %s: %v", e.Execution, e.EventID, err)
		}
	},
	func(ctx context.Context, w *world, p *process) {
		if e := w.anyEvent(ctx, p, idem.ExecutionQuery{Status: pickOf(w, idem.Failed, idem.Success)}); e != nil {
			w.judge.allow(e.EventID)
			_, err := p.store.Forget(ctx, e.Execution, idem.Cancel{By: "ops", Reason: "try", At: time.Now()}, nil)
			w.say("operator", "forget %s of %s: %v", e.Execution, e.EventID, err)
		}
	},
	func(ctx context.Context, w *world, p *process) {
		if e := w.anyEvent(ctx, p, idem.ExecutionQuery{Status: idem.Running}); e != nil {
			w.judge.explain(e.EventID, "released")
			w.judge.force(e.Workflow)
			_, err := p.store.ForceRelease(ctx, e.Workflow, e.Execution,
				idem.Cancel{By: "ops", Reason: "try", At: time.Now()}, nil)
			w.say("operator", "release %s of %s: %v", e.Execution, e.EventID, err)
		}
	},
	func(ctx context.Context, w *world, p *process) { // looks only
		page, err := p.store.Executions(ctx, idem.ExecutionQuery{PageSize: 50})
		if err != nil {
			return
		}
		for _, f := range page.Executions {
			if id := f.ID(); id != "" {
				_, _ = w.judge.look(p, id)
			}
		}
	},
}

// anyEvent is some execution that a query finds, of an event that the judge remembers; nil without
// one.
func (w *world) anyEvent(ctx context.Context, p *process, q idem.ExecutionQuery) *idem.ExecutionFacts {
	q.PageSize = 20
	page, err := p.store.Executions(ctx, q)
	if err != nil || len(page.Executions) == 0 {
		return nil
	}
	x := page.Executions[w.pick(len(page.Executions))].Facts()
	if w.judge.event(x.EventID) == nil {
		return nil
	}
	return x
}

// acknowledged reports whether every process has said that it knows of the pause of a route.
func (w *world) acknowledged(r *route) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	all, err := w.anyProcess().store.Pauses(ctx)
	if err != nil {
		return false
	}
	for _, p := range all {
		if p.Scope.Route == r.name && len(p.Unacknowledged) == 0 && !p.More {
			w.say("operator", "the pause of %s is acknowledged by all", r.name)
			return true
		}
	}
	return false
}

// resume ends the pause of a route, however long that takes.
func (w *world) resume(r *route) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err := w.anyProcess().store.Resume(ctx, idem.PauseScope{Route: r.name}, nil)
		cancel()
		if !unavailable(err) {
			w.say("operator", "resume %s: %v", r.name, err)
			return
		}
		time.Sleep(time.Second)
	}
}
