package operate_test

import (
	"testing"
	"time"

	"hooklock/etcdlock"
	"hooklock/etcdlock/etcdtest"
	"hooklock/etcdlock/ledgertest"
	"hooklock/etcdlock/protocol"
	"hooklock/idem"
	"hooklock/idem/guard"
)

// asking is the policy of a route that asks.
func asking() *idem.Policy {
	keep := idem.StatusSet{}
	keep.Add(200, 299)
	return &idem.Policy{
		Route: "r", Strategy: idem.FailFast, Idempotency: true, Retention: time.Hour, Keep: keep, ReplayBody: 100,
		OnUnknown: idem.UnknownAsk,
		Ask:       &idem.AskPolicy{After: time.Second, Attempts: 3, Answer: 204}, InFlight: idem.Conflict,
		OnMismatch: idem.MismatchReplay,
	}
}

// unknownOne runs an event whose outcome is unknown, and returns its execution.
func unknownOne(t *testing.T, g *guard.Guard, event string) idem.ExecutionID {
	t.Helper()
	run := g.Admit(t.Context(), &idem.Request{Scope: lockFor("w", event).Scope, Policy: asking(),
		Question: "/orders/1"})
	if run.Execution == nil {
		t.Fatalf("%+v", run)
	}
	id := run.Execution.Lock().Execution
	if end := run.Execution.End(guard.Tried{Sent: true,
		Failure: idem.Failure{Code: "upstream_failed"}}); !end.Recorded {
		t.Fatalf("%+v", end)
	}
	return id
}

func TestAnEventOfUnknownOutcomeLeavesAQuestionAndAClosedLock(t *testing.T) {
	e := etcdtest.Start(t)
	a, _ := gate(t, e)
	g, s := gate(t, e)
	id := unknownOne(t, a, "one")
	deliver := func(event string) guard.Admission {
		return g.Admit(t.Context(), &idem.Request{Scope: lockFor("w", event).Scope, Policy: asking(),
			Question: "/orders/2"})
	}
	open, err := s.Questions().Open(within(t, patience), 10)
	if err != nil || len(open) != 1 || open[0].Execution != id || open[0].URL != "/orders/1" || open[0].Route != "r" {
		t.Fatalf("%+v %v", open, err)
	}
	if got := deliver("two"); got.Decision != idem.DecisionLocked || got.ClosedUntil.IsZero() {
		t.Errorf("another event, while the service is asked: %+v", got)
	}
	if got := deliver("one"); got.Decision != idem.DecisionUnknown {
		t.Errorf("a copy, while the service is asked: %+v", got)
	}
}

func TestWhatTheServiceSaysBecomesTheOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		said idem.Outcome
		copy idem.Decision // "" = it runs
	}{
		"executed":     {idem.Executed, idem.DecisionReplayed},
		"not executed": {idem.NotExecuted, ""},
		"nothing":      {idem.Unknown, idem.DecisionUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := etcdtest.Start(t)
			a, _ := gate(t, e)
			b, s := gate(t, e)
			id := unknownOne(t, a, "one")
			said := idem.Asked{Outcome: c.said, At: time.Now(), URL: "/orders/1", Status: 200, Times: 2}
			record, err := s.Questions().Answer(within(t, patience), id, said, 204)
			if err != nil || record == nil || record.Outcome != c.said {
				t.Fatalf("%+v %v", record, err)
			}
			count(t, e, ledgertest.Layout.All(protocol.KindQuestions), 0)
			found := mustFind(t, s, id)
			if found.Record == nil || found.Record.Asked == nil || found.Record.Asked.Times != 2 ||
				found.Record.Asked.Outcome != c.said {
				t.Errorf("its record says %+v", found.Record)
			}
			for _, g := range []*guard.Guard{a, b} {
				var got guard.Admission
				eventually(t, "each process knows", func() bool { // one may remember what it was
					got = g.Admit(t.Context(), &idem.Request{Scope: lockFor("w", "one").Scope, Policy: asking()})
					return got.Decision == c.copy
				})
				if c.said == idem.Executed && (got.Record.Answer == nil || got.Record.Answer.Status != 204) {
					t.Errorf("a copy gets %+v", got.Record.Answer)
				}
				if got.Execution != nil {
					if attempt := got.Execution.Lock().Attempt; attempt != 2 {
						t.Errorf("attempt %d", attempt)
					}
					got.Execution.End(guard.Tried{}) // nothing was sent
				}
			}
			next := b.Admit(t.Context(), &idem.Request{Scope: lockFor("w", "two").Scope, Policy: asking()})
			if next.Execution == nil {
				t.Fatalf("the lock is not free: %+v", next)
			}
			next.Execution.End(guard.Tried{})
		})
	}
}

func TestOneProcessAsksAtATime(t *testing.T) {
	e := etcdtest.Start(t)
	g, s := gate(t, e)
	unknownOne(t, g, "one")
	open, err := s.Questions().Open(within(t, patience), 10)
	if err != nil || len(open) != 1 {
		t.Fatalf("%+v %v", open, err)
	}
	first, second := open[0], open[0]
	if mine, err := s.Questions().Begin(within(t, patience), &first); !mine || err != nil || first.Asked != 1 {
		t.Fatalf("%+v %v", first, err)
	}
	if mine, err := s.Questions().Begin(within(t, patience), &second); mine || err != nil {
		t.Errorf("two processes ask at once: %+v %v", second, err)
	}
	open, err = s.Questions().Open(within(t, patience), 10)
	if err != nil || len(open) != 1 || open[0].Asked != 1 || open[0].Revision != first.Revision || open[0].Lease == 0 {
		t.Errorf("%+v %v", open, err)
	}
}

// TestAnAnswerCorrectsNothingThatAPersonHasDecided, and nothing that has run again.
func TestAnAnswerCorrectsNothingThatAPersonHasDecided(t *testing.T) {
	executed := idem.Asked{Outcome: idem.Executed, At: time.Now(), URL: "/orders/1", Status: 200, Times: 1}
	for name, decide := range map[string]func(*testing.T, *etcdtest.Etcd, *guard.Guard, *etcdlock.Store,
		idem.ExecutionID){
		"it was forgotten": func(t *testing.T, _ *etcdtest.Etcd, _ *guard.Guard, s *etcdlock.Store,
			id idem.ExecutionID) {
			if _, err := s.Forget(within(t, patience), id, byOps(false), nil); err != nil {
				t.Fatal(err)
			}
		},
		"it runs again": func(t *testing.T, _ *etcdtest.Etcd, g *guard.Guard, s *etcdlock.Store, id idem.ExecutionID) {
			if _, err := s.ForceRelease(within(t, patience), "w", id, byOps(false), nil); err != nil {
				t.Fatal(err)
			}
			retry := asking()
			retry.OnUnknown, retry.Ask = idem.UnknownRetry, nil // at a replica with another configuration
			if run := g.Admit(t.Context(),
				&idem.Request{Scope: lockFor("w", "one").Scope, Policy: retry}); run.Execution == nil {
				t.Fatalf("%+v", run)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := etcdtest.Start(t)
			g, s := gate(t, e)
			id := unknownOne(t, g, "one")
			decide(t, e, g, s, id)
			if record, err := s.Questions().Answer(within(t, patience), id, executed, 200); err != nil ||
				record != nil {
				t.Errorf("%+v %v", record, err)
			}
			count(t, e, ledgertest.Layout.All(protocol.KindQuestions), 0)
			if got := g.Admit(t.Context(),
				&idem.Request{Scope: lockFor("w", "one").Scope,
					Policy: asking()}); got.Decision == idem.DecisionReplayed {
				t.Errorf("the answer counts: %+v", got)
			} else if got.Execution != nil {
				got.Execution.End(guard.Tried{})
			}
		})
	}
}

func TestTheEndByAPersonLeavesNoQuestion(t *testing.T) {
	e := etcdtest.Start(t)
	g, s := gate(t, e)
	run := g.Admit(t.Context(), &idem.Request{Scope: lockFor("w", "one").Scope, Policy: asking(),
		Question: "/orders/1"})
	if _, err := s.ForceRelease(within(t, patience), "w", run.Execution.Lock().Execution, byOps(false),
		nil); err != nil {
		t.Fatal(err)
	}
	count(t, e, ledgertest.Layout.All(protocol.KindQuestions), 0)
	run.Execution.End(guard.Tried{Sent: true})
}

func TestADeadProcessLeavesAQuestion(t *testing.T) {
	e := etcdtest.Start(t)
	a, dead := gate(t, e)
	_, s := gate(t, e)
	if run := a.Admit(t.Context(), &idem.Request{Scope: lockFor("w", "one").Scope, Policy: asking(),
		Question: "/orders/1"}); run.Execution == nil {
		t.Fatalf("%+v", run)
	}
	ledgertest.Close(t, dead)
	eventually(t, "the question is there", func() bool {
		open, err := s.Questions().Open(within(t, patience), 10)
		return err == nil && len(open) == 1
	})
}
