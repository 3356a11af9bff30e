package fault

import (
	"fmt"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// lostStep is a moment at which a process that carries an event loses its session, and lives on.
type lostStep struct {
	name     string
	cut      bool // etcd is out of its reach. Otherwise it stands still
	arrange  func(*stage) <-chan struct{}
	upstream string // what that saw of it
	late     string // what becomes of an effect that the upstream tries for it afterwards
}

const once = "whole, once"

var lostSteps = []lostStep{
	{name: "frozen before it knows that its try is in etcd", upstream: "nothing", late: "none",
		arrange: func(s *stage) <-chan struct{} {
			s.wire.HoldAnswer(begins)
			return when(func() { s.tries(1, true) })
		}},
	{name: "frozen when a try was read whole, no answer yet", upstream: once, late: "refused by its token",
		arrange: scripted(func(_ *stage, x *cluster.Exchange, now func()) {
			_ = x.ReadBody()
			now()
			x.Gone()
			x.Effect()
		})},
	{name: "frozen when a try's whole answer came, its record is on its way to etcd", upstream: once, late: "none",
		arrange: answered(200, 0, func(s *stage) <-chan struct{} { return s.wire.HoldRequest(settles) })},
	{name: "frozen when a try failed, and the next one is 3 s off", upstream: once, late: "none",
		arrange: answered(503, 3, func(s *stage) <-chan struct{} { return when(func() { s.rests(1) }) })},
	{name: "cut off from etcd when a try was read whole, no answer yet", cut: true,
		upstream: once + "; the call was closed before the next one", late: "none",
		arrange: scripted(func(_ *stage, x *cluster.Exchange, now func()) { _ = x.ReadBody(); now() })},
}

func TestAParkWorkerThatIsFrozenOrCutOffLeavesTheEventToTheNextOne(t *testing.T) {
	etcd := etcdtest.Start(t)
	tabled(t, "parked-frozen", "The process is | Upstream saw | A late effect", lostSteps,
		func(t *testing.T, st lostStep) string {
			loseCarrier(t, etcd, st)
			return cells(st.name, st.upstream, st.late)
		})
}

func loseCarrier(t *testing.T, etcd *etcdtest.Etcd, st lostStep) {
	s := newParkedStage(t, etcd, parkedStep{park: absent})
	s.victim = cluster.StartReplica(t, programs, s.config)
	moment := st.arrange(s)
	s.send()
	await(t, st.name, moment)
	if got := s.sent(); !got.Parked() {
		t.Fatalf("the event was not accepted: %v", got)
	}
	before := s.up.Of(s.delivery.Event)
	if st.cut {
		s.wire.Blackhole(true)
	} else {
		s.victim.Freeze(t)
	}
	running, finish := s.works()
	s.startHealthy()
	s.sessionEnded()
	await(t, "the next carrier tries it", running)
	if later := s.neighbour("later-event"); !later.Parked() {
		t.Errorf("a later event got %v", later)
	}
	s.wire.Blackhole(false)
	if !st.cut {
		s.victim.Thaw(t)
	}
	cluster.AwaitMore(t, s.victim.Stderr, 1, `"session.opened"`)
	testkit.Until(t, "the old carrier's call is closed", func() bool {
		return len(before) == 0 || !s.up.Of(s.delivery.Event)[0].Ended.IsZero()
	})
	other := s.delivery
	other.Workflow, other.Event = "another-workflow", "another-event"
	if got := s.sender.Send(t.Context(), s.victim.Door, other); !got.Parked() {
		t.Errorf("with its next session the old carrier answers %v", got)
	}
	s.journal.Await("the old carrier carries something else", func(c cluster.Change) bool {
		return cluster.RecordOf(other.Event)(c) && c.Value.Status == "SUCCESS"
	})
	s.checkCarrierHolds()
	close(finish)
	for _, event := range []string{s.delivery.Event, "later-event"} {
		s.journal.Await("the end of "+event, func(c cluster.Change) bool {
			return cluster.RecordOf(event)(c) && c.Value.Status == "SUCCESS"
		})
	}
	s.checkLost(st, len(before))
	s.checkNothingParked()
}

// checkCarrierHolds: what the old carrier did on waking has not touched the new one's lock.
func (s *stage) checkCarrierHolds() {
	s.t.Helper()
	holder := fmt.Sprintf("/%d/", s.healthy.Pid())
	for key, v := range s.journal.Left("locks/") {
		if v.EventID == s.delivery.Event {
			if !strings.Contains(v.Holder, holder) || !v.Parked.Trying {
				s.t.Errorf("%s is not the next carrier's any more: %+v", key, v)
			}
			return
		}
	}
	s.t.Error("the event has no lock while it is tried")
}

// checkLost: the event was sent once more, under a larger token; whatever the old carrier still did
// was refused, or is no call.
func (s *stage) checkLost(st lostStep, before int) {
	s.t.Helper()
	runs := s.up.Of(s.delivery.Event)
	if want := map[bool]int{true: 0, false: 1}[st.upstream == "nothing"]; before != want || len(runs) != before+1 {
		s.t.Errorf("the event was sent %d times, %d of them by the old carrier", len(runs), before)
	}
	for i := 1; i < len(runs); i++ {
		if runs[i].Token <= runs[i-1].Token || runs[i].Execution != runs[i-1].Execution {
			s.t.Errorf("call %d: %+v after %+v", i+1, runs[i], runs[i-1])
		}
	}
	want := 0
	if st.late != "none" {
		want = 1
	}
	if overlaps, stale := s.up.Overlaps(); len(overlaps) != want || stale != want {
		s.t.Errorf("overlaps %v, stale effects refused %d; expected %d of each", overlaps, stale, want)
	}
	if late := s.up.Late(); late > 0 {
		s.t.Errorf("%d calls came after the next carrier's", late)
	}
	effects := s.up.Effects()
	if last := effects[len(effects)-1]; last.Event != "later-event" {
		s.t.Errorf("the last effect is of %s", last.Event)
	}
	ends := 0
	for _, c := range s.journal.All() {
		if cluster.RecordOf(s.delivery.Event)(c) {
			ends++
		}
	}
	if ends != 1 {
		s.t.Errorf("the event has ended %d times", ends)
	}
	s.up.CheckFence()
}
