package fault

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/protocol"
	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// What the promises say of the death of a process that parks an event, or carries it.
type parkedFate int

const (
	notAccepted parkedFate = iota // the sender heard nothing, and nothing is in the line: a copy is a new delivery
	notKnown                      // the sender heard nothing, and the call may have taken effect: as without park
	inLine                        // the event is accepted: it runs without anybody's help, before every later one
	recorded                      // its outcome is recorded: it does not run again
)

// parkedStep is a moment in the life of an event that is parked.
type parkedStep struct {
	name string
	fate parkedFate
	park string // the route's settings; the sender's patience is in it
	// another event of the workflow, at the healthy replica, has the lock. Otherwise that replica
	// starts after the death
	behind  bool
	arrange func(*stage) <-chan struct{}
	setup   func(*stage)
	pause   time.Duration // the upstream asked for it before the death: the next process waits as long
}

const (
	patient = "on: [locked, slow, unreachable, unknown, failed], after: 60s"
	hurried = "on: [locked, slow, unreachable, unknown, failed], after: 300ms"
	absent  = "on: [locked, slow, unreachable, unknown, failed], after: 0s"
)

// asked is a pause that is longer than the session of a process that was killed.
const asked = 4 * ttl

// What is in one kind of request to etcd alone.
func (s *stage) parks() string { return s.config.Prefix + "/v1/requests/" } // and in what reads or ends what is parked

const (
	begins   = `"trying":true`  // the write before a try
	fails    = `"failures":1`   // the write after a try that failed
	locksNow = `"executionId":` // a write of a lock; reads have none
)

var parkedSteps = []parkedStep{
	{name: "behind another event, while its bytes are written to the folder", fate: notAccepted, park: patient,
		behind: true, setup: inFolder,
		arrange: func(s *stage) <-chan struct{} {
			s.delivery.Body = make([]byte, 7<<20)
			s.wire.SwallowRequest(s.parks()) // should the death come too late for a fast disk
			return created(s.t, s.folder)
		}},
	{name: "its bytes are in the folder, its entry did not reach etcd", fate: notAccepted, park: patient, behind: true,
		setup:   inFolder,
		arrange: func(s *stage) <-chan struct{} { return s.wire.SwallowRequest(s.parks()) }},
	{name: "its entry is committed, etcd's answer lost", fate: inLine, park: patient, behind: true, setup: inFolder,
		arrange: func(s *stage) <-chan struct{} {
			s.wire.SwallowAnswer(s.parks())
			return when(func() { s.kept() })
		}},
	{name: "after its sender had the 2xx", fate: inLine, park: patient, behind: true, setup: inFolder,
		arrange: func(s *stage) <-chan struct{} { return when(func() { s.sent() }) }},
	{name: "sender timeout, its park did not reach etcd", fate: notKnown, park: hurried,
		arrange: func(s *stage) <-chan struct{} {
			s.up.Next(readAndHang)
			return s.wire.SwallowRequest(s.parks())
		}},
	{name: "sender timeout, its park is committed, etcd's answer lost", fate: inLine, park: hurried,
		arrange: func(s *stage) <-chan struct{} {
			s.up.Next(readAndHang)
			s.wire.SwallowAnswer(s.parks())
			return when(func() { s.kept() })
		}},
	{name: "after its sender had the 2xx, while the call goes on", fate: inLine, park: hurried,
		arrange: func(s *stage) <-chan struct{} {
			s.up.Next(readAndHang)
			return when(func() { s.sent() })
		}},
	{name: "its try did not reach etcd", fate: inLine, park: absent,
		arrange: func(s *stage) <-chan struct{} { return s.wire.SwallowRequest(begins) }},
	{name: "its try is in etcd, etcd's answer lost", fate: inLine, park: absent,
		arrange: func(s *stage) <-chan struct{} {
			s.wire.SwallowAnswer(begins)
			return when(func() { s.tries(1, true) })
		}},
	{name: "half of a try's head was read", fate: inLine, park: absent,
		arrange: scripted(func(s *stage, x *cluster.Exchange, now func()) { _ = x.ReadSome(40); now() })},
	{name: "a try was read whole, no answer yet", fate: inLine, park: absent,
		arrange: scripted(func(s *stage, x *cluster.Exchange, now func()) { _ = x.ReadBody(); x.Effect(); now() })},
	{name: "half of a try's answer came", fate: inLine, park: absent,
		arrange: scripted(func(s *stage, x *cluster.Exchange, now func()) {
			_ = x.ReadBody()
			x.Effect()
			_ = x.Write(answerHalf + strings.Repeat("x", 50000))
			x.Arrives(s.t)
			now()
		})},
	{name: "a try's whole answer came, its record did not reach etcd", fate: inLine, park: absent,
		arrange: answered(200, 0, func(s *stage) <-chan struct{} { return s.wire.SwallowRequest(settles) })},
	{name: "a try's outcome was recorded, etcd's answer lost", fate: recorded, park: absent,
		arrange: answered(200, 0, func(s *stage) <-chan struct{} {
			s.wire.SwallowAnswer(settles)
			return when(func() { s.journal.Await("the record", cluster.RecordOf(s.delivery.Event)) })
		})},
	{name: "a try failed, which did not reach etcd", fate: inLine, park: absent,
		arrange: answered(503, 600, func(s *stage) <-chan struct{} { return s.wire.SwallowRequest(fails) })},
	{name: "a try failed, the next one is later", fate: inLine, park: absent, pause: asked,
		arrange: answered(503, int(asked.Seconds()), func(s *stage) <-chan struct{} {
			return when(func() { s.rests(1) })
		})},
	{name: "its takeover did not reach etcd", fate: inLine, park: absent, setup: inheriting,
		arrange: func(s *stage) <-chan struct{} { return s.wire.SwallowRequest(locksNow) }},
	{name: "its takeover is in etcd, etcd's answer lost", fate: inLine, park: absent, setup: inheriting,
		arrange: func(s *stage) <-chan struct{} {
			s.wire.SwallowAnswer(locksNow)
			return when(func() { s.carriedBy(s.victim) })
		}},
	{name: "after a takeover, a try was read whole, no answer yet", fate: inLine, park: absent, setup: inheriting,
		arrange: scripted(func(s *stage, x *cluster.Exchange, now func()) { _ = x.ReadBody(); x.Effect(); now() })},
}

// inFolder keeps requests outside of etcd, whatever their size.
func inFolder(s *stage) {
	s.folder = filepath.Join(s.t.TempDir(), "requests")
	s.config.ParkStore = fmt.Sprintf("{single_member: true, inline: 0B, dir: %q}", s.folder)
}

// inheriting lets another process accept the event and die while it tries it, before the victim
// starts.
func inheriting(s *stage) {
	first := s.config
	first.Endpoints = []string{s.etcd.Endpoint}
	s.before = cluster.StartReplica(s.t, programs, first)
}

func readAndHang(x *cluster.Exchange) bool {
	_ = x.ReadBody()
	x.Effect()
	x.Gone()
	return false
}

// answered lets the upstream answer the first try; the moment is what arrange returns, which is
// called before the answer. pause is what it asks for, in seconds.
func answered(status, pause int, arrange func(*stage) <-chan struct{}) func(*stage) <-chan struct{} {
	return func(s *stage) <-chan struct{} {
		moment := make(chan struct{})
		s.up.Next(func(x *cluster.Exchange) bool {
			_ = x.ReadBody()
			if status == 200 {
				x.Effect()
			}
			came := arrange(s)
			body := ""
			if status == 200 {
				body = x.Receipt()
			}
			_ = x.Answer(status, body, fmt.Sprintf("Retry-After: %d", pause))
			<-came
			close(moment)
			x.Gone()
			return false
		})
		return moment
	}
}

// created waits in the background for the first file in a folder.
func created(t *testing.T, folder string) <-chan struct{} {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err == nil {
		_, err = unix.InotifyAddWatch(fd, folder, unix.IN_CREATE)
	}
	if err != nil {
		t.Fatalf("watch %s: %v", folder, err)
	}
	news := os.NewFile(uintptr(fd), "inotify")
	t.Cleanup(func() { _ = news.Close() })
	return when(func() { _, _ = news.Read(make([]byte, 4096)) })
}

// kept waits until the event is accepted.
func (s *stage) kept() {
	s.journal.Await("the request is kept", func(c cluster.Change) bool {
		return strings.HasPrefix(c.Key, "requests/") && !c.Deleted
	})
}

// tries waits for the write that begins or ends the n-th try of the event.
func (s *stage) tries(n int, trying bool) cluster.Change {
	return s.journal.Await(fmt.Sprintf("try %d, under way: %v", n, trying), func(c cluster.Change) bool {
		return cluster.LockOf(s.delivery.Event)(c) && c.Value.Parked.Tries == n && c.Value.Parked.Trying == trying
	})
}

// rests waits until the n-th try is over, and the next one has not begun.
func (s *stage) rests(n int) { s.tries(n, false) }

// carriedBy waits until a process has the event's lock.
func (s *stage) carriedBy(r *cluster.Replica) cluster.Change {
	return s.journal.Await("the event has a carrier", func(c cluster.Change) bool {
		return cluster.LockOf(s.delivery.Event)(c) && strings.Contains(c.Value.Holder, fmt.Sprintf("/%d/", r.Pid()))
	})
}

// parkedFacts are a row of the table.
type parkedFacts struct{ sender, left, upstream, copyAtOnce, calls string }

func TestAProcessKilledAtAnyStepOfParkLosesNothingThatWasAccepted(t *testing.T) {
	etcd := etcdtest.Start(t)
	tabled(t, "parked", "Killed when | Sender saw | Left in etcd | Upstream saw | A copy at once | Then", parkedSteps,
		func(t *testing.T, st parkedStep) string {
			r := killParked(t, etcd, st)
			return cells(st.name, r.sender, r.left, r.upstream, r.copyAtOnce, r.calls)
		})
}

// newParkedStage starts who is there when the event comes.
func newParkedStage(t *testing.T, etcd *etcdtest.Etcd, st parkedStep) *stage {
	t.Helper()
	s := arranged(t, etcd, "park")
	s.config.Routes = cluster.Route("hook",
		"lock: {release_delay: 0s}, idempotency: {on_unknown: retry}, park: {enabled: true, "+st.park+"}")
	if st.setup != nil {
		st.setup(s)
	}
	return s
}

func (s *stage) startHealthy() {
	s.t.Helper()
	healthy := s.config
	healthy.Endpoints = []string{s.etcd.Endpoint}
	s.healthy = cluster.StartReplica(s.t, programs, healthy)
}

// killParked kills the victim at the step, and looks at what everybody saw.
func killParked(t *testing.T, etcd *etcdtest.Etcd, st parkedStep) (row parkedFacts) {
	s := newParkedStage(t, etcd, st)
	finish := func() {}
	if st.behind {
		s.startHealthy()
		finish = s.occupy()
	}
	before := s.inherit()
	s.victim = cluster.BeginReplica(t, programs, s.config)
	if s.before == nil {
		cluster.AwaitMore(t, s.victim.Stderr, 0, `"session.opened"`)
	}
	moment := st.arrange(s)
	if s.before == nil {
		s.send()
	} else {
		s.before.Kill()
	}
	await(t, st.name, moment)
	s.victim.Kill()
	row.sender = s.sent().String()
	row.left = s.whereItIs()
	seen := s.up.Of(s.delivery.Event)[before:]
	row.upstream = "nothing"
	if len(seen) == 1 {
		row.upstream = "whole, once"
	} else if len(seen) > 1 {
		t.Errorf("the upstream saw %d calls of one process", len(seen))
	}
	if !st.behind {
		s.startHealthy()
	}
	copied := s.copy()
	row.copyAtOnce = copied.String()
	s.checkCopy(st.fate, copied)
	later := s.neighbour("later-event")
	if later.Status >= 300 {
		t.Errorf("a later event got %v", later)
	}
	finish()
	if st.fate == notKnown {
		s.journal.Await("what nobody knows is recorded", cluster.RecordOf(s.delivery.Event))
		_ = s.copy()
	}
	for _, event := range []string{s.delivery.Event, "later-event"} {
		s.journal.Await("the end of "+event, func(c cluster.Change) bool {
			return cluster.RecordOf(event)(c) && c.Value.Status == "SUCCESS"
		})
	}
	s.checkParkedRuns(st.fate, before+len(seen))
	if runs := s.up.Of(s.delivery.Event); st.pause > 0 {
		if waited := runs[1].Arrived.Sub(runs[0].Arrived); waited < st.pause {
			t.Errorf("the next process tried it again after %v, and the upstream had asked for %v", waited, st.pause)
		}
	}
	row.calls = fmt.Sprintf("%d more", len(s.up.Of(s.delivery.Event))-before-len(seen))
	s.checkNothingParked()
	s.checkFolder()
	return row
}

// occupy lets an event of the workflow run at the healthy replica until finish is called.
func (s *stage) occupy() (finish func()) {
	s.t.Helper()
	running, over := s.works()
	d := s.delivery
	d.Event = "earlier-event"
	answer := s.sender.Begin(s.t.Context(), s.healthy.Door, d)
	await(s.t, "the earlier event runs", running)
	return func() {
		close(over)
		if got := <-answer; got.String() != "200 executed" {
			s.t.Errorf("the earlier event got %v", got)
		}
	}
}

// inherit lets the event be accepted and tried by the process before the victim; it returns how
// often the upstream was called then.
func (s *stage) inherit() int {
	s.t.Helper()
	if s.before == nil {
		return 0
	}
	running := make(chan struct{})
	s.up.Next(func(x *cluster.Exchange) bool {
		_ = x.ReadBody()
		close(running)
		x.Gone()
		return false
	})
	s.sendTo(s.before)
	await(s.t, "the first process tries it", running)
	return 1
}

// whereItIs says where the event is in etcd, with its request.
func (s *stage) whereItIs() string {
	s.t.Helper()
	var found []string
	for kind, name := range map[string]string{"queue/": "its entry", "locks/": "its lock",
		protocol.KindRecords: "its record"} {
		for key, v := range s.journal.Left(kind) {
			if v.EventID != s.delivery.Event {
				continue
			}
			if kind == protocol.KindRecords {
				found = append(found, name)
				continue
			}
			if _, kept := s.journal.Left("requests/")["requests/"+v.Execution]; kept != (v.Parked.On != "") {
				s.t.Errorf("%s says that it is parked for %q, and its request is kept: %v", key, v.Parked.On, kept)
			}
			if v.Parked.On != "" {
				name += ", parked"
			}
			found = append(found, name)
		}
	}
	if len(found) > 1 {
		s.t.Errorf("the event is in several places: %v", found)
	}
	if len(found) == 0 {
		return "nothing"
	}
	return found[0]
}

// checkCopy: what a sender that sends again gets at once.
func (s *stage) checkCopy(f parkedFate, copied cluster.Answer) {
	s.t.Helper()
	var accepted string
	for _, c := range s.journal.All() {
		if c.Value.EventID == s.delivery.Event && c.Value.Parked.On != "" && accepted == "" {
			accepted = c.Value.Execution
		}
	}
	switch f {
	case notAccepted:
		if !copied.Parked() {
			s.t.Errorf("the copy was not accepted as new: %v", copied)
		}
	case notKnown:
		if copied.Code != "execution_in_flight" {
			s.t.Errorf("a copy got %v while nobody could know of the death", copied)
		}
	case inLine:
		if told := s.sent(); told.Parked() && told.Execution != accepted {
			s.t.Errorf("the sender was told of %s, and %s was accepted", told.Execution, accepted)
		}
		if copied.Execution != accepted || !copied.Parked() && copied.Decision != "replayed" {
			s.t.Errorf("the copy got %v of %s; %s was accepted", copied, copied.Execution, accepted)
		}
	case recorded:
		if copied.String() != "200 replayed" {
			s.t.Errorf("the copy got %v", copied)
		}
	}
}

// checkParkedRuns: it ran, before every later event, each time under a larger token, and as one
// execution.
func (s *stage) checkParkedRuns(f parkedFate, before int) {
	s.t.Helper()
	runs := s.up.Of(s.delivery.Event)
	if want := map[bool]int{true: 0, false: 1}[f == recorded]; len(runs)-before != want {
		s.t.Errorf("after the death the event was sent %d times, not %d", len(runs)-before, want)
	}
	for i := 1; i < len(runs); i++ {
		if runs[i].Token <= runs[i-1].Token {
			s.t.Errorf("call %d has token %d, after %d", i+1, runs[i].Token, runs[i-1].Token)
		}
		if same := runs[i].Execution == runs[i-1].Execution; same != (f != notKnown) {
			s.t.Errorf("calls %d and %d are of %s and %s", i, i+1, runs[i-1].Execution, runs[i].Execution)
		}
	}
	var order []string
	for _, e := range s.up.Effects() {
		order = append(order, e.Event)
	}
	own, later := slices.Index(order, s.delivery.Event), slices.Index(order, "later-event")
	if f != notKnown && later < own || own < 0 || later < 0 ||
		slices.Contains(order[later+1:], s.delivery.Event) && f != notKnown {
		s.t.Errorf("the events took effect in the order %v", order)
	}
	if i := slices.Index(order, "earlier-event"); i > 0 {
		s.t.Errorf("an earlier event is not the first: %v", order)
	}
	s.up.CheckFence()
	if overlaps, stale := s.up.Overlaps(); len(overlaps) > 0 || stale > 0 {
		s.t.Errorf("calls of one workflow overlapped at the upstream: %v, stale %d", overlaps, stale)
	}
}

// checkNothingParked: everything has ended, and nothing of it stays but records.
func (s *stage) checkNothingParked() {
	s.t.Helper()
	for _, kind := range []string{"locks/", "queue/", "holds/", "parked/", "requests/", "ages/"} {
		testkit.Until(s.t, "nothing is left below "+kind, func() bool { return len(s.journal.Left(kind)) == 0 })
	}
}

// checkFolder: no bytes are left of what was accepted. Those of a delivery that was not, such as a
// copy, belong to nothing: they are swept in an hour.
func (s *stage) checkFolder() {
	s.t.Helper()
	if s.folder == "" {
		return
	}
	for _, c := range s.journal.All() {
		if id, ok := strings.CutPrefix(c.Key, "requests/"); ok && !c.Deleted {
			testkit.Until(s.t, "the bytes of "+id+" are deleted", func() bool {
				left, err := filepath.Glob(filepath.Join(s.folder, id+"*"))
				return err == nil && len(left) == 0
			})
		}
	}
}
