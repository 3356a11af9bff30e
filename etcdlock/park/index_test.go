package park

import (
	"context"
	"fmt"
	"testing"
	"time"

	"hooklock/etcdlock/commit"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
)

// newIndex returns an index that follows nothing, and what it says has left a queue.
func newIndex() (x *Index, left *[]idem.ExecutionID) {
	queues := &leftQueues{}
	return New(&Options{Tasks: commit.NewTasks(), Layout: protocol.NewLayout("/hooklock"), Process: queues}),
		&queues.left
}

// leftQueues is a process in which nothing is paused.
type leftQueues struct {
	Process
	left []idem.ExecutionID
}

func (q *leftQueues) OnLeftQueue(id idem.ExecutionID) { q.left = append(q.left, id) }
func (q *leftQueues) Paused(_, _ string) bool         { return false }

// entryOf returns the entry of an execution of workflow w.
func entryOf(id, route string, state idem.ParkState, since time.Time) *entry {
	return &entry{
		ParkedEntry: idem.ParkedEntry{Execution: idem.ExecutionID(id), Scope: idem.Scope{Workflow: "w"}, Route: route,
			State: state, Since: since},
		lock: "lock",
	}
}

// The second one would find a lock of its own process that is not registered there yet, and adopt
// it.
func TestOneLookAtAQueueAtATimeAlsoWhileItIsNotKnown(t *testing.T) {
	x, _ := newIndex()
	if !x.BeginLook("lock") || x.BeginLook("lock") {
		t.Fatal("two look at it at once")
	}
	x.known.put(entryOf("exec_a", "r", idem.ParkWaiting, time.Now())) // now it is heard of
	if x.BeginLook("lock") {
		t.Fatal("two look at it at once when it is heard of")
	}
	x.EndLook("lock")
	if !x.BeginLook("lock") {
		t.Fatal("no look is possible any more")
	}
	if q, _ := x.ready.takeNext(); q == nil {
		t.Error("the look that came too early is not made again")
	}
}

// The race detector has seen it in CI: a queue got its route while a caller of Next read it.
func TestAQueueMayChangeWhileItIsReturned(t *testing.T) {
	x, _ := newIndex()
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for ctx.Err() == nil {
			if _, route, err := x.Next(ctx); ctx.Err() == nil && (err != nil || route != "r") {
				t.Errorf("%q, %v", route, err)
			}
		}
	}()
	in := entryOf("exec_a", "r", idem.ParkWaiting, time.Now())
	for range 100_000 {
		x.mu.Lock()
		x.known.put(in)
		x.ready.addQueue(x.known.queues["lock"])
		x.mu.Unlock()
	}
	stop()
	<-over
}

func TestAQueueInWhichNothingIsParkedIsNotFollowed(t *testing.T) {
	x, left := newIndex()
	x.known.put(entryOf("exec_a", "r", idem.ParkWaiting, time.Now()))
	x.known.put(entryOf("exec_b", "r", idem.ParkWaiting, time.Now()))
	x.MakeReady("lock")
	x.known.put(entryOf("exec_a", "r", idem.ParkDeadLetter, time.Now()))
	if got := x.Count("lock").InQueue; got != 1 || len(x.known.queues) != 1 {
		t.Fatalf("%d wait in %d queues", got, len(x.known.queues))
	}
	x.known.drop("exec_b")
	if len(x.known.queues) != 0 || fmt.Sprint(*left) != "[exec_a exec_b]" {
		t.Errorf("%d queues are followed, with nothing in them; left: %v", len(x.known.queues), *left)
	}
	if q, _ := x.ready.takeNext(); q != nil {
		t.Error("it is ready")
	}
}

// TestWhatIsRememberedOfAgesIsBoundedByWhatIsParked, also behind one that waits for a person for
// days while a million come and go.
func TestWhatIsRememberedOfAgesIsBoundedByWhatIsParked(t *testing.T) {
	x, _ := newIndex()
	now := time.Now()
	x.known.put(entryOf("waits", "r", idem.ParkWaiting, now))
	for i := range 10_000 {
		one := entryOf(fmt.Sprint(i), "r", idem.ParkWaiting, now.Add(time.Duration(i)))
		x.known.put(one)
		x.known.put(one) // as with each word about it
		x.known.drop(one.Execution)
	}
	x.known.put(entryOf("second", "r", idem.ParkWaiting, now.Add(time.Hour)))
	if n := len(x.known.oldest); n > 1000 {
		t.Errorf("%d ages are kept of %d that are parked", n, x.known.events)
	}
	if oldest := x.Count("").Oldest; !oldest.Equal(now) {
		t.Errorf("the oldest one is of %v, want %v", oldest, now)
	}
}
