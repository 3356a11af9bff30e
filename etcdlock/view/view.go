package view

import (
	"context"
	"sync"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/link"
	"hooklock/etcdlock/park"
	"hooklock/etcdlock/protocol"
	"hooklock/etcdlock/session"
	"hooklock/etcdlock/slots"
	"hooklock/idem"
)

// View is what this process knows of what waits. Each part is a hint, and may be behind the others:
// a transaction compares what it relies on, and a refusal brings the state of now. It is safe for
// concurrent use.
//
// Watches keep it, each shared by all that wait here: the session's, which says which sessions
// live, what is paused and which holds are gone; one of queues and locks (Watcher), one of slots
// and one of what is parked, which begin with the first that needs them.
type View struct {
	Sessions *session.Set // which sessions live
	Pauses   *Pauses      // what is paused
	Queues   *Queues      // what waits in this process, and before it
	Watcher  *Watcher     // wakes what waits
	Slots    *slots.Slots // slots of limits, and what waits for them
	Parked   *park.Index  // what is parked, over all processes

	options *Options
}

// Options are what a View works with.
type Options struct {
	Pool   *link.Pool      // reads and watches etcd
	Sender *commit.Sender  // sends the transactions
	Tasks  *commit.Tasks   // run in the background; Store.Close waits for them
	Layout protocol.Layout // spells the keys
	Process
}

// Process is what a View asks of its process, and tells it. None of its methods blocks.
type Process interface {
	// Session returns the session of this process, or why there is none.
	Session() (*session.Session, error)
	// Size returns how many slots a limit has for an execution of that route; 0 = there is no such
	// limit.
	Size(route string, slot idem.Slot) int
	// OnPauses is called with each change of the pauses, in order.
	OnPauses(begun, over []*idem.Pause)
	// OnParkedChange is called after the index entry of an execution has changed or has gone.
	OnParkedChange(idem.ExecutionID)
}

// New returns a view that knows nothing before Run and the first session.
func New(o *Options) *View {
	v := &View{Sessions: session.NewSet(), options: o}
	v.Pauses = newPauses(o.Layout, v)
	v.Watcher = newWatcher(v)
	v.Queues = newQueues(o.Layout, v.Watcher)
	around := &surroundings{v.options, v}
	v.Slots = slots.New(&slots.Options{
		Pool: o.Pool, Sender: o.Sender, Tasks: o.Tasks, Layout: o.Layout, Process: around,
	})
	v.Parked = park.New(&park.Options{
		Pool: o.Pool, Sender: o.Sender, Tasks: o.Tasks, Layout: o.Layout, Sessions: v.Sessions, Process: around,
	})
	return v
}

// Run keeps the view until ctx ends, except for what the session's watches report.
func (v *View) Run(ctx context.Context) {
	var parts sync.WaitGroup
	for _, run := range []func(context.Context){v.Watcher.run, v.Slots.Run, v.Parked.Run} {
		parts.Go(func() { run(ctx) })
	}
	parts.Wait()
}

// surroundings are the other parts, as slots and the index of what is parked see them.
type surroundings struct {
	*Options
	view *View
}

// Paused implements slots.Process and park.Process.
func (s *surroundings) Paused(route, workflow string) bool {
	return s.view.Pauses.Of(route, workflow) != nil
}

// MarkReady implements slots.Process. The caller may be the index itself.
func (s *surroundings) MarkReady(lock string) {
	s.Tasks.Help(func(context.Context) { s.view.Parked.MakeReady(lock) })
}

// OnLeftQueue implements park.Process.
func (s *surroundings) OnLeftQueue(id idem.ExecutionID) { s.view.Slots.LeaveAndDropSlotWaiter(id) }

// OnFirstParked implements park.Process.
func (s *surroundings) OnFirstParked() { s.view.Watcher.wakeWatch() }

func (v *View) applyPauses(begun, over []*idem.Pause) {
	v.Parked.ApplyPauses()
	v.Slots.ApplyPauses()
	v.options.OnPauses(begun, over)
}

// OnDied is called when these sessions have ended.
func (v *View) OnDied(names []string) {
	v.Watcher.wakeForSessions(names)
	v.Parked.Died(names)
}

// OnUnheld is called when the hold of an execution is gone, since revision.
func (v *View) OnUnheld(id idem.ExecutionID, revision int64) {
	v.Watcher.WakeFor(v.options.Layout.Alive(protocol.HoldAlive(id)), revision)
	v.Parked.MakeReadyFor(id)
}

// OnMissed is called when calls of Died or Unheld may have been missed, those up to revision; 0 =
// and may be from now on.
func (v *View) OnMissed(revision int64) {
	v.Watcher.Break(revision)
	v.Parked.MakeAllReady()
}

// Forget is called when etcd has gone back to an earlier state: what is known by a revision is
// worth nothing.
func (v *View) Forget() {
	v.Queues.Forget()
	v.Watcher.forgetAll()
}
