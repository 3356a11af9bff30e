package fault

import (
	"context"
	"strings"
	"testing"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

// frozenStep is a moment at which a process stands still for longer than its session lives.
type frozenStep struct {
	name    string
	arrange func(*stage) <-chan struct{}
	// What it must do on waking, while a successor runs the event.
	sender, upstream string
	// what the sender sees where the process, on waking, reads its claim's answer before it looks
	// at the time; "": nothing else
	or   string
	late string // what becomes of an effect that the upstream tries under the old token
}

var frozenSteps = []frozenStep{
	{
		name: "after its claim, before it connects to the upstream",
		arrange: func(s *stage) <-chan struct{} {
			s.wire.HoldAnswer(s.marker())
			return when(func() { s.claimed() })
		},
		sender: "503 store_unavailable", or: "503 lock_lost", upstream: "nothing", late: "none",
	},
	{
		name: "the whole request was read, no answer yet",
		arrange: scripted(func(_ *stage, x *cluster.Exchange, now func()) {
			_ = x.ReadBody()
			now()
			x.Gone()
			x.Effect()
		}),
		sender: "503 lock_lost", upstream: "whole, once", late: "refused by its token",
	},
	{
		name: "the whole answer came, its record is on its way to etcd",
		arrange: func(s *stage) <-chan struct{} {
			moment := make(chan struct{})
			s.up.Next(func(x *cluster.Exchange) bool {
				_ = x.ReadBody()
				x.Effect()
				settling := s.wire.HoldRequest(settles)
				_ = x.Answer(200, x.Receipt())
				<-settling
				close(moment)
				return true
			})
			return moment
		},
		sender: "200 executed, not recorded", upstream: "whole, once", late: "none",
	},
}

func TestAFrozenProcessKnowsOnWakingThatItLost(t *testing.T) {
	etcd := etcdtest.Start(t)
	tabled(t, "frozen", "Frozen when | Upstream saw | Sender saw, after waking | A late effect", frozenSteps,
		func(t *testing.T, st frozenStep) string {
			freezeAt(t, etcd, st)
			return cells(st.name, st.upstream, st.sender, st.late)
		})
}

func freezeAt(t *testing.T, etcd *etcdtest.Etcd, st frozenStep) {
	s := newStage(t, etcd, "retry", nil)
	moment := st.arrange(s)
	s.send()
	await(t, st.name, moment)
	lock := s.claimed()
	s.victim.Freeze(t)
	s.sessionEnded()
	s.journal.Await("the lock is reaped", cluster.FreedAfter(lock))

	running, finish := s.works()
	successor := s.sender.Begin(context.Background(), s.healthy.Door, s.delivery)
	await(t, "the successor runs", running)
	s.wire.Blackhole(false)
	s.victim.Thaw(t)

	if saw := s.sent().String(); saw != st.sender && (st.or == "" || saw != st.or) {
		t.Errorf("the sender saw %q after the waking, not %q", saw, st.sender)
	}
	s.checkSuccessorHolds(lock)
	close(finish)
	if got := <-successor; got.String() != "200 executed" {
		t.Errorf("the successor's sender got %v", got)
	}
	if saw := s.seenOfVictim(); saw != st.upstream {
		t.Errorf("the upstream saw %s of the frozen one, not %s", saw, st.upstream)
	}
	s.checkRecords(lock)
	s.checkToken(st)
	cluster.AwaitMore(t, s.victim.Stderr, 1, `"session.opened"`)
	d := s.delivery
	d.Event = "one-more-event"
	if got := s.sender.Send(context.Background(), s.victim.Door, d); got.String() != "200 executed" {
		t.Errorf("after waking up the process answers %v", got)
	}
	s.up.CheckFence()
}

// checkSuccessorHolds: what the old holder did on waking has not touched the new one's lock.
func (s *stage) checkSuccessorHolds(old cluster.Change) {
	s.t.Helper()
	held := s.journal.Left("locks/")
	now, ok := held[old.Key]
	if !ok || now.Attempt != 2 || now.Execution == old.Value.Execution {
		s.t.Errorf("the successor does not hold the lock: %+v", held)
	}
}

// checkRecords: the event's record was written by what reaped the lock, then by the successor, and
// not by another.
func (s *stage) checkRecords(old cluster.Change) {
	s.t.Helper()
	s.journal.Await("the successor's record", func(c cluster.Change) bool {
		return cluster.RecordOf(s.delivery.Event)(c) && c.Value.Status == "SUCCESS"
	})
	var ends []string
	for _, c := range s.journal.All() {
		if cluster.RecordOf(s.delivery.Event)(c) {
			who := "the successor"
			if c.Value.Execution == old.Value.Execution {
				who = "the frozen one"
			}
			ends = append(ends, who+" "+c.Value.Ended())
		}
	}
	if got := strings.Join(ends, ", "); got != "the frozen one FAILED unknown, the successor SUCCESS executed" {
		s.t.Errorf("the records of the event were: %s", got)
	}
}

// checkToken: where the calls overlapped at the upstream, the token told which one was stale.
func (s *stage) checkToken(st frozenStep) {
	s.t.Helper()
	overlaps, stale := s.up.Overlaps()
	want := 0
	if st.late != "none" {
		want = 1
	}
	if len(overlaps) != want || stale != want {
		s.t.Errorf("overlaps %v, stale effects refused %d; expected %d of each", overlaps, stale, want)
	}
}

// Another process has recorded the event as unknown meanwhile, and under `on_unknown: block`
// nothing ran it again.
func TestAProcessThatWakesWithTheAnswerCorrectsARecordThatSaysUnknown(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t)
	s := newStage(t, etcd, "block", nil)
	moment := frozenSteps[len(frozenSteps)-1].arrange(s)
	s.send()
	await(t, "the whole answer came", moment)
	s.victim.Freeze(t)
	if ended := s.ended(); ended != "FAILED unknown" {
		t.Fatalf("it ended as %s", ended)
	}
	if a := s.copy(); a.Code != "outcome_unknown" {
		t.Fatalf("a copy got %v", a)
	}
	s.wire.Blackhole(false)
	s.victim.Thaw(t)

	if a := s.sent(); a.Status != 200 { // it may have been told that etcd has not got it yet
		t.Errorf("the sender got %v", a)
	}
	s.journal.Await("the correction", func(c cluster.Change) bool {
		return cluster.RecordOf(s.delivery.Event)(c) && c.Value.Ended() == "SUCCESS executed"
	})
	runs := s.up.Of(s.delivery.Event)
	testkit.Until(t, "a copy at another replica gets the answer", func() bool {
		a := s.copy()
		return a.String() == "200 replayed" && a.Body == runs[0].Receipt()
	})
	if len(runs) != 1 {
		t.Errorf("the service saw the event %d times", len(runs))
	}
}
