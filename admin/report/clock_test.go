package report

import (
	"testing"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

const year = 365 * 24 * time.Hour

func TestAClockThatIsSetChangesNothingOfWhatIsCounted(t *testing.T) {
	tally, clock := newTally()
	tally.SetRoutes([]Route{{Name: "stripe",
		Sender: Sender{[]Limit{{Share: 1}, {For: 40 * time.Minute}}, func(int, time.Duration) bool {
			return true
		}}}})
	for i, set := range []time.Duration{0, year, 0, -year, 0} {
		clock.set = set
		for range 4 {
			tally.Note(&Delivery{Route: "stripe", Verified: true, Decision: idem.DecisionReplayed})
		}
		want := int64(4 * (i + 1))
		if n := tally.Rates()[0].Decisions[string(idem.DecisionReplayed)]; n != want {
			t.Errorf("set by %v: %d lately, want %d", set, n, want)
		}
		for _, since := range []time.Time{{}, clock.now()} {
			c := tally.Report(since).Routes[0]
			if c.Deliveries != want || c.Duplicates.Count != want ||
				len(c.Duplicates.Examples) != min(int(want), maxExamples) {
				t.Errorf("set by %v: %+v, want %d", set, c, want)
			}
		}
	}
	if got := tally.Health()[0].Limits; got[0].Ratio != 1 || got[1].Ratio != 0 {
		t.Errorf("%+v", got)
	}
	clock.at = clock.at.Add(20 * time.Minute)
	if c, r := tally.Report(clock.at).Routes[0], tally.Rates()[0]; c.Deliveries != 0 ||
		len(c.Duplicates.Examples) != 0 || len(r.Decisions) != 0 {
		t.Errorf("20 minutes later: %+v, %+v", c, r)
	}
	tally.Note(&Delivery{Route: "stripe", Verified: true, Decision: idem.DecisionReplayed})
	if got := tally.Health()[0].Limits[1].Ratio; got != 0.5 {
		t.Errorf("20 of 40 minutes of failures: %v", got)
	}
}

func TestAReportShowsTheClockAsItIsSet(t *testing.T) {
	tally, clock := newTally()
	clock.set = year
	tally.Note(&Delivery{Route: "stripe", Verified: true, Decision: idem.DecisionReplayed})
	r := tally.Report(clock.now().Add(-time.Minute))
	if at := r.Routes[0].Duplicates.Examples[0].At; !at.Equal(clock.now()) || !r.Until.Equal(clock.now()) ||
		!tally.Rates()[0].LastAt.Equal(clock.now()) {
		t.Errorf("%v", r)
	}
	if since := r.Since.Time; since.After(clock.now()) || clock.now().Sub(since) > stepLength {
		t.Errorf("since %v, and it is %v", since, clock.now())
	}
}

func TestAContactFailsUntilItAnswersWhateverTheClockSays(t *testing.T) {
	var c Contact
	now := time.Now()
	c.Answer(now.Add(year))
	c.Fail(now, "UNAVAILABLE")
	if c.Seen("a").State != client.ContactFails {
		t.Error("it failed last")
	}
	c.Fail(now.Add(year), "UNAVAILABLE")
	c.Answer(now)
	if c.Seen("a").State != client.ContactAnswers {
		t.Error("it answered last")
	}
}
