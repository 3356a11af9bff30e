package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/etcdlock/etcdtest"
	"hooklock/test/fault/cluster"
	"hooklock/test/testkit"
)

const ttl = 3 * time.Second // of the sessions here

// What the promises say of a death at a step.
type fate int

const (
	unclaimed fate = iota // nothing is in the ledger: the event just runs
	doubtful              // it may have run: the lock dies with the session, and the outcome is unknown
	settled               // the outcome is recorded: copies get the answer
)

// step is a moment in the life of a delivery. arrange is called before the delivery is sent, and
// returns what is closed at the moment.
type step struct {
	name    string
	fate    fate
	arrange func(*stage) <-chan struct{}
	setup   func(*stage) // of the victim, before it starts; may be nil
	after   func(*stage) // while the copy has been answered and the session is still there; may be nil
}

// stage is two replicas on one etcd: the victim reaches it through a wire, the healthy one
// directly.
type stage struct {
	t       *testing.T
	etcd    *etcdtest.Etcd
	wire    *etcdtest.Wire
	up      *cluster.Upstream
	victim  *cluster.Replica
	healthy *cluster.Replica
	journal *cluster.Journal
	sender  *cluster.Sender

	before *cluster.Replica // where the victim carries on what a dead process has accepted: that process
	folder string           // of requests, where they are kept in one

	config   cluster.Config // of the victim
	delivery cluster.Delivery
	answer   chan cluster.Answer
	got      *cluster.Answer // once it was taken from answer
}

// arranged is a stage without processes.
func arranged(t *testing.T, etcd *etcdtest.Etcd, policy string) *stage {
	t.Helper()
	prefix := "/" + strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())
	s := &stage{
		t: t, etcd: etcd, wire: etcdtest.NewWire(t, etcd.Endpoint), up: cluster.NewUpstream(t),
		journal: cluster.NewJournal(t, etcd.Client, prefix), sender: cluster.NewSender(),
		delivery: cluster.Delivery{Route: "hook", Workflow: "the-workflow-of-" + policy, Event: "the-event-of-" +
			policy},
		answer: make(chan cluster.Answer, 1),
	}
	s.config = cluster.Config{
		Endpoints: []string{s.wire.Endpoint}, Prefix: prefix, Upstream: s.up.Addr, SessionTTL: ttl,
		Routes: cluster.Route("hook", "lock: {release_delay: 0s}, idempotency: {on_unknown: "+policy+"}"),
	}
	return s
}

func newStage(t *testing.T, etcd *etcdtest.Etcd, policy string, setup func(*stage)) *stage {
	t.Helper()
	s := arranged(t, etcd, policy)
	healthy := s.config
	healthy.Endpoints = []string{etcd.Endpoint}
	if setup != nil {
		setup(s)
		healthy.Routes = s.config.Routes
	}
	s.victim, s.healthy = cluster.StartReplica(t, programs, s.config), cluster.StartReplica(t, programs, healthy)
	return s
}

// send lets the delivery go to the victim.
func (s *stage) send() { s.sendTo(s.victim) }

// sendTo lets the delivery go, once: its answer may be awaited already.
func (s *stage) sendTo(r *cluster.Replica) {
	go func() { s.answer <- s.sender.Send(context.Background(), r.Door, s.delivery) }()
}

// sent is what its sender saw.
func (s *stage) sent() cluster.Answer {
	if s.got == nil {
		a := <-s.answer
		s.got = &a
	}
	return *s.got
}

// copy sends the same event to the healthy replica.
func (s *stage) copy() cluster.Answer {
	return s.sender.Send(context.Background(), s.healthy.Door, s.delivery)
}

// neighbour sends another event of the same workflow to the healthy replica.
func (s *stage) neighbour(event string) cluster.Answer {
	d := s.delivery
	d.Event, d.Body = event, nil
	return s.sender.Send(context.Background(), s.healthy.Door, d)
}

// marker is in every request to etcd that is about the delivery.
func (s *stage) marker() string { return s.delivery.Workflow }

// settles is in the one request to etcd that records a success: it is a part of each Receipt, which
// the record has as it is. The workflow is also in reads, and where the answer to one of them gets
// lost, so does the lease of the record after it.
const settles = " was done by "

// claimed waits until the delivery has the lock.
func (s *stage) claimed() cluster.Change {
	return s.journal.Await("the lock of the delivery", cluster.LockOf(s.delivery.Event))
}

// sessionEnded waits until etcd has ended a session: the victim's.
func (s *stage) sessionEnded() cluster.Change {
	return s.journal.Await("the end of the victim's session", func(c cluster.Change) bool {
		return c.Deleted && strings.HasPrefix(c.Key, "sessions/")
	})
}

// scripted makes the upstream follow script for the delivery; the moment is when script calls its
// second argument.
func scripted(script func(s *stage, x *cluster.Exchange, now func())) func(*stage) <-chan struct{} {
	return func(s *stage) <-chan struct{} {
		moment := make(chan struct{})
		s.up.Next(func(x *cluster.Exchange) bool {
			script(s, x, func() { close(moment) })
			x.Gone() // an upstream that still works goes on reading
			return false
		})
		return moment
	}
}

// works lets the upstream take the next call, and work on it until finish is closed.
func (s *stage) works() (running <-chan struct{}, finish chan<- struct{}) {
	began, over := make(chan struct{}), make(chan struct{})
	s.up.Next(func(x *cluster.Exchange) bool {
		if x.ReadBody() != nil || !x.Effect() {
			return false
		}
		close(began)
		<-over
		return x.Answer(200, x.Receipt()) == nil
	})
	return began, over
}

// when waits in the background.
func when(wait func()) <-chan struct{} {
	done := make(chan struct{})
	go func() { defer close(done); wait() }()
	return done
}

const answerHalf = "HTTP/1.1 200 Said\r\nContent-Length: 100000\r\n\r\n"

var steps = []step{
	{name: "before its claim reached etcd", fate: unclaimed, arrange: func(s *stage) <-chan struct{} {
		return s.wire.SwallowRequest(s.marker())
	}},
	{name: "before its claim reached etcd, where it arrives later", fate: unclaimed,
		arrange: func(s *stage) <-chan struct{} { return s.wire.HoldRequest(s.marker()) },
		after: func(s *stage) {
			s.sessionEnded()
			s.wire.Blackhole(false)
		}},
	{name: "after its claim, etcd's answer lost", fate: doubtful, arrange: func(s *stage) <-chan struct{} {
		s.wire.SwallowAnswer(s.marker())
		return when(func() { s.claimed() })
	}},
	{name: "after its claim, while it connects to the upstream", fate: doubtful,
		setup: func(s *stage) { s.config.Upstream = cluster.NewStuck(s.t) },
		arrange: func(s *stage) <-chan struct{} {
			return when(func() { cluster.AwaitConnecting(s.t, s.config.Upstream) })
		}},
	{name: "half of the head was read", fate: doubtful,
		arrange: scripted(func(s *stage, x *cluster.Exchange, now func()) { _ = x.ReadSome(40); now() })},
	{name: "half of a large body was read", fate: doubtful,
		setup: func(s *stage) { s.delivery.Body = make([]byte, 7<<20) },
		arrange: scripted(func(s *stage, x *cluster.Exchange, now func()) {
			_ = x.ReadHead()
			_ = x.ReadPart(1 << 20)
			now()
			<-s.victim.Done() // until then it would go on sending
		})},
	{name: "the whole request was read, no answer yet", fate: doubtful,
		arrange: scripted(func(s *stage, x *cluster.Exchange, now func()) { _ = x.ReadBody(); x.Effect(); now() })},
	{name: "half of the answer came", fate: doubtful,
		arrange: scripted(func(s *stage, x *cluster.Exchange, now func()) {
			_ = x.ReadBody()
			x.Effect()
			_ = x.Write(answerHalf + strings.Repeat("x", 50000))
			x.Arrives(s.t)
			now()
		})},
	{name: "half of a streamed answer was passed on", fate: doubtful,
		setup: func(s *stage) { s.config.ResponseBody = "1KiB" },
		arrange: func(s *stage) <-chan struct{} {
			moment := make(chan struct{})
			s.delivery.FirstByte = sync.OnceFunc(func() { close(moment) })
			s.up.Next(func(x *cluster.Exchange) bool {
				_ = x.ReadBody()
				x.Effect()
				_ = x.Write(answerHalf + strings.Repeat("x", 90000))
				x.Gone()
				return false
			})
			return moment
		}},
	{name: "the whole answer came, its record did not reach etcd", fate: doubtful,
		arrange: func(s *stage) <-chan struct{} {
			moment := make(chan struct{})
			s.up.Next(func(x *cluster.Exchange) bool {
				_ = x.ReadBody()
				x.Effect()
				settling := s.wire.SwallowRequest(settles)
				_ = x.Answer(200, x.Receipt())
				<-settling
				close(moment)
				x.Gone()
				return false
			})
			return moment
		}},
	{name: "the outcome was recorded, etcd's answer lost", fate: settled,
		arrange: func(s *stage) <-chan struct{} {
			s.up.Next(func(x *cluster.Exchange) bool {
				_ = x.ReadBody()
				x.Effect()
				s.wire.SwallowAnswer(settles)
				_ = x.Answer(200, x.Receipt())
				x.Gone()
				return false
			})
			return when(func() { s.journal.Await("the record", cluster.RecordOf(s.delivery.Event)) })
		}},
	{name: "after its sender had the answer", fate: settled, arrange: func(s *stage) <-chan struct{} {
		return when(func() { s.sent() })
	}},
}

// facts are a row of the table. They are the same in each run.
type facts struct{ sender, upstream, copyAtOnce, record, copyLater, lock string }

// measured is what is different in each run.
type measured struct{ lockFree time.Duration } // from the death on; 0 = it was free

func TestAProcessKilledAtAnyStepLeavesWhatThePromisesSay(t *testing.T) {
	etcd := etcdtest.Start(t)
	policies := []string{"retry", "block"}
	if testing.Short() {
		policies = policies[:1]
	}
	rows := make([]map[string]*facts, len(steps))
	times := make([]measured, len(steps))
	t.Run("step", func(t *testing.T) {
		for i, st := range steps {
			rows[i] = map[string]*facts{}
			for _, policy := range policies {
				row := &facts{}
				rows[i][policy] = row
				t.Run(fmt.Sprintf("%d_%s", i+1, policy), func(t *testing.T) {
					t.Parallel()
					m := killAt(t, etcd, st, policy, row)
					if policy == "retry" {
						times[i] = m
					}
				})
			}
		}
	})
	if !t.Failed() && !testing.Short() {
		checkKillTable(t, rows, times)
	}
}

// killAt kills the victim at the step, once, and looks at what everybody saw.
func killAt(t *testing.T, etcd *etcdtest.Etcd, st step, policy string, row *facts) (m measured) {
	s := newStage(t, etcd, policy, st.setup)
	moment := st.arrange(s)
	s.send()
	await(t, st.name, moment)
	died := time.Now()
	s.victim.Kill()
	row.sender = s.sent().String()
	held := s.journal.Left("locks/")
	copied := s.copy()
	row.copyAtOnce = copied.String()
	if st.after != nil {
		st.after(s)
	}
	switch st.fate {
	case unclaimed:
		s.checkUnclaimed(held, copied)
		row.lock = "never taken"
	case doubtful:
		m.lockFree = s.checkDoubtful(died, copied)
		row.lock = "until session end"
	case settled:
		s.checkSettled(held, copied)
		row.lock = "freed with the record"
	}
	row.record = s.journal.Await("a record", cluster.RecordOf(s.delivery.Event)).Value.Ended()
	later := s.copy()
	row.copyLater = later.String() + attempt(later, s.up.Of(s.delivery.Event))
	s.checkLater(st.fate, policy, later)
	row.upstream = s.seenOfVictim()
	s.checkAfterwards()
	return m
}

// checkUnclaimed: the event burned nothing; it ran at the other replica as if it were new, and at
// no other place.
func (s *stage) checkUnclaimed(held map[string]cluster.Value, copied cluster.Answer) {
	s.t.Helper()
	if len(held) != 0 {
		s.t.Errorf("a lock is held that nobody claimed: %v", held)
	}
	if copied.String() != "200 executed" {
		s.t.Errorf("the copy got %v, not its first run", copied)
	}
	if runs := s.up.Of(s.delivery.Event); len(runs) != 1 || runs[0].Attempt != 1 {
		s.t.Errorf("the upstream saw the event %d times", len(runs))
	}
}

// checkDoubtful: the lock stays until the session has ended, and no longer than promised; then the
// outcome is unknown.
func (s *stage) checkDoubtful(died time.Time, copied cluster.Answer) time.Duration {
	s.t.Helper()
	if copied.Code != "execution_in_flight" || copied.Executed != "no" {
		s.t.Errorf("a copy got %v (executed: %s) while nobody could know of the death", copied, copied.Executed)
	}
	lock := s.claimed()
	freed := s.journal.Await("the lock is freed", cluster.FreedAfter(lock))
	record := s.journal.Await("the record", cluster.RecordOf(s.delivery.Event))
	if record.Value.Ended() != "FAILED unknown" || record.Value.Execution != lock.Value.Execution ||
		record.Revision != freed.Revision {
		s.t.Errorf("lock freed at revision %d, record at %d: %+v", freed.Revision, record.Revision, record.Value)
	}
	stayed := freed.At.Sub(died)
	if stayed > ttl+2*time.Second {
		s.t.Errorf("the dead process kept its lock for %v; promised are %v", stayed, ttl+2*time.Second)
	}
	return stayed
}

// checkSettled: the event is done. A copy gets the answer at once, and nothing runs.
func (s *stage) checkSettled(held map[string]cluster.Value, copied cluster.Answer) {
	s.t.Helper()
	if len(held) != 0 {
		s.t.Errorf("the lock is still held after the record: %v", held)
	}
	runs := s.up.Of(s.delivery.Event)
	if len(runs) != 1 || copied.String() != "200 replayed" || copied.Body != runs[0].Receipt() {
		s.t.Errorf("the copy got %v %q; the upstream saw %d requests", copied, copied.Body, len(runs))
	}
}

// checkLater: what a copy gets when all is known that can be.
func (s *stage) checkLater(f fate, policy string, later cluster.Answer) {
	s.t.Helper()
	if f != doubtful {
		if later.String() != "200 replayed" {
			s.t.Errorf("a later copy got %v", later)
		}
		return
	}
	runs := s.up.Of(s.delivery.Event)
	switch policy {
	case "retry":
		if len(runs) == 0 {
			s.t.Fatalf("the event never ran again: the copy got %v", later)
		}
		last := runs[len(runs)-1]
		if later.String() != "200 executed" || last.Attempt != 2 || !last.Whole() || last.Token <= s.claimed().Created {
			s.t.Errorf("a later copy got %v; last request %+v", later, last)
		}
		if again := s.copy(); again.String() != "200 replayed" || len(s.up.Of(s.delivery.Event)) != len(runs) {
			s.t.Errorf("after the second attempt a copy got %v", again)
		}
	case "block":
		if later.Code != "outcome_unknown" || later.Status != 409 || later.Executed != "unknown" {
			s.t.Errorf("a later copy got %v (executed: %s)", later, later.Executed)
		}
		if len(runs) > 1 {
			s.t.Errorf("the upstream saw a blocked event %d times", len(runs))
		}
	}
}

// seenOfVictim is what the upstream saw of the victim's own attempt.
func (s *stage) seenOfVictim() string {
	s.t.Helper()
	var runs []cluster.Exchange
	testkit.Until(s.t, "the upstream is done with the event", func() bool {
		runs = s.up.Of(s.delivery.Event)
		return !slices.ContainsFunc(runs, func(x cluster.Exchange) bool { return x.Ended.IsZero() })
	})
	byVictim := false
	if len(runs) > 0 {
		byVictim = strings.Contains(s.journal.Await("its lock", func(c cluster.Change) bool {
			return !c.Deleted && c.Value.Execution == runs[0].Execution
		}).Value.Holder, fmt.Sprintf("/%d/", s.victim.Pid()))
	}
	switch {
	case !byVictim:
		return "nothing"
	case !runs[0].Whole():
		return "a part"
	}
	return "whole, once"
}

// checkAfterwards: the workflow is free for its next event, and nothing is left behind.
func (s *stage) checkAfterwards() {
	s.t.Helper()
	if next := s.neighbour("another-event"); next.String() != "200 executed" {
		s.t.Errorf("the workflow's next event got %v", next)
	}
	for _, kind := range []string{"locks/", "queue/", "holds/"} {
		if left := s.journal.Left(kind); len(left) > 0 {
			s.t.Errorf("left in etcd: %v", left)
		}
	}
	s.sessionEnded()
	if n := len(s.journal.Left("sessions/")); n != 1 {
		s.t.Errorf("%d sessions are left, of one process", n)
	}
	s.up.CheckFence()
	if overlaps, stale := s.up.Overlaps(); len(overlaps) > 0 || stale > 0 {
		s.t.Errorf("calls of one workflow overlapped at the upstream: %v, stale %d", overlaps, stale)
	}
}

// attempt tells which attempt of the event an executed copy was.
func attempt(a cluster.Answer, runs []cluster.Exchange) string {
	if a.Decision != "executed" || len(runs) == 0 {
		return ""
	}
	return fmt.Sprintf(", attempt %d", runs[len(runs)-1].Attempt)
}

func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	late := time.NewTimer(cluster.Patience)
	defer late.Stop()
	select {
	case <-c:
	case <-late.C:
		t.Fatalf("waited %v in vain for the moment: %s", cluster.Patience, what)
	}
}
