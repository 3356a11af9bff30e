package report

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"hooklock/admin/client"
	"hooklock/idem"
)

func TestRatesAreOfTheLastMinutes(t *testing.T) {
	tally, clock := newTally()
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionExecuted, Result: Failed})
	clock.at = clock.at.Add(4 * time.Minute)
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionLocked})
	tally.CountTry("stripe", Succeeded, time.Second, Failure{}, false)
	if r := tally.Rates()[0]; r.Succeeded != 1 || r.Failed != 1 || r.Errors != 0 {
		t.Errorf("results %v", r)
	}
	if r := tally.Rates()[0]; r.Route != "stripe" || r.Mode != "observe" ||
		r.Decisions[string(idem.DecisionExecuted)] != 1 ||
		r.Decisions[string(idem.DecisionLocked)] != 1 || !r.LastAt.Equal(clock.at) {
		t.Errorf("%+v", r)
	}
	clock.at = clock.at.Add(2 * time.Minute)
	if r := tally.Rates()[0]; len(r.Decisions) != 1 || r.Decisions[string(idem.DecisionLocked)] != 1 ||
		r.Succeeded != 1 || r.Failed != 0 {
		t.Errorf("after six minutes: %+v", r)
	}
	clock.at = clock.at.Add(time.Hour)
	if r := tally.Rates()[0]; len(r.Decisions) != 0 || r.LastAt.IsZero() {
		t.Errorf("after an hour: %+v", r)
	}
	if r := tally.Rates()[1]; r.Route != "github" || len(r.Decisions) != 0 || !r.LastAt.IsZero() {
		t.Errorf("a silent route: %+v", r)
	}
}

func TestRatesCountEachDeliveryOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tally, clock := newTally()
		var at []time.Time
		for _, seconds := range rapid.SliceOfN(rapid.IntRange(0, 200), 0, 50).Draw(rt, "pauses") {
			clock.at = clock.at.Add(time.Duration(seconds) * time.Second)
			tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionExecuted})
			at = append(at, clock.at)
		}
		var surely, perhaps int64
		for _, noted := range at {
			if age := clock.at.Sub(noted); age < Recent-recentStep {
				surely++
			} else if age < Recent {
				perhaps++
			}
		}
		if n := tally.Rates()[0].Decisions[string(idem.DecisionExecuted)]; n < surely || n > surely+perhaps {
			rt.Fatalf("%d of %d to %d", n, surely, surely+perhaps)
		}
	})
}

func TestAContactKnowsWhatWasSeenLast(t *testing.T) {
	var c Contact
	if c.Seen("a") != (client.Contact{Address: "a", State: client.ContactNotAsked}) {
		t.Error("nobody has asked yet")
	}
	at := time.Unix(1, 0)
	c.Fail(at, "UNAVAILABLE")
	c.Answer(at.Add(time.Second))
	if s := c.Seen("a"); s.Failure != "UNAVAILABLE" || !s.AnsweredAt.After(s.FailedAt.Time) {
		t.Errorf("%+v", s)
	}
}
