package guard

import (
	"testing"
	"time"

	"hooklock/idem"
)

// While an event runs again that a person has let run, its old answer is not remembered: the copies
// that come after its end get the new one.
func TestTheOldAnswerOfAnEventThatRunsAgainIsNotRemembered(t *testing.T) {
	clock, claims := noon, 0
	rec := cached(1)
	rec.Retention = time.Hour
	next := &idem.Lock{ExecutionFacts: idem.ExecutionFacts{Execution: "exec_next", Scope: rec.Scope},
		Parked: &idem.Parked{On: idem.ParkAgain}}
	for name, seen := range map[string]idem.Obstacle{"it waits": {Record: rec, Waiting: next},
		"it runs": {Record: rec, Lock: next}} {
		g := guardOf(t, &asked{seen: seen, claims: &claims}, &clock)
		v := g.Admit(t.Context(), &idem.Request{Scope: rec.Scope, Policy: testPolicy()}).Verdict
		if v.Decision != idem.DecisionParked || v.Holder != next.Execution {
			t.Errorf("%s: a copy meets %+v", name, v)
		}
		if g.cache.get(rec.Scope.Key, noon) != nil {
			t.Errorf("%s: the old answer is remembered", name)
		}
	}
}

// An attempt that a person asked for and that failed is remembered with the answer of the one
// before.
func TestAnEventThatFailedWhenItRanAgainIsRememberedAsSettled(t *testing.T) {
	clock, claims := noon, 0
	rec := cached(1)
	rec.Retention, rec.Status, rec.Outcome, rec.Remembered = time.Hour, idem.Failed, idem.Unknown, false
	rec.Earlier = []idem.Attempt{{Execution: "exec_first", Status: idem.Success, Outcome: idem.Executed,
		AnswerStatus: 201, Settled: true}}
	rec.InheritAnswer()
	g := guardOf(t, &asked{seen: idem.Obstacle{Record: rec}, claims: &claims}, &clock)
	for range 2 {
		v := g.Admit(t.Context(), &idem.Request{Scope: rec.Scope, Fingerprint: rec.Fingerprint,
			Policy: testPolicy()}).Verdict
		if v.Decision != idem.DecisionReplayed || v.Record.Answer.Status != 201 {
			t.Fatalf("%+v", v)
		}
	}
	if claims != 1 {
		t.Errorf("the ledger was asked %d times", claims)
	}
}
