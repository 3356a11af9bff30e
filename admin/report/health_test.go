package report

import (
	"testing"
	"time"
)

// answered is a tally with a route r whose sender takes 200 within 10 s for received, and the limits of l.
func answered(clock *time.Time, limits ...Limit) *Tally {
	start := *clock
	t := New("a", func() time.Time { return *clock }, func() time.Duration { return clock.Sub(start) })
	t.SetRoutes([]Route{{Name: "r", Sender: Sender{limits, func(status int, took time.Duration) bool { return status != 200 || took > 10*time.Second }}}})
	return t
}

func near(tb testing.TB, t *Tally, want ...float64) {
	tb.Helper()
	got := t.Health()[0].Limits
	for i, n := range got {
		if n.Ratio < want[i]-0.001 || n.Ratio > want[i]+0.001 {
			tb.Errorf("%s: %v, want %v", n.Limit, n.Ratio, want[i])
		}
	}
}

func TestFailuresInARowAreCountedUntilTheSenderHearsASuccess(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tally := answered(&now, Limit{InRow: 4}, Limit{InRow: 40})
	near(t, tally, 0, 0)
	tally.Note(&Delivery{Route: "r", Status: 503})
	tally.Note(&Delivery{Route: "r", Status: 200, Took: 11 * time.Second}) // it had hung up
	near(t, tally, 0.5, 0.05)
	for range 5 {
		tally.Note(&Delivery{Route: "r", Status: 404})
	}
	near(t, tally, 1, 0.175)
	tally.Note(&Delivery{Route: "r", Status: 200})
	near(t, tally, 0, 0)
}

func TestALongTimeOfNothingButFailures(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tally := answered(&now, Limit{For: 24 * time.Hour})
	tally.Note(&Delivery{Route: "r", Status: 500})
	near(t, tally, 0)
	now = now.Add(12 * time.Hour)
	near(t, tally, 0) // nothing has failed since
	tally.Note(&Delivery{Route: "r", Status: 500})
	near(t, tally, 0.5)
	tally.Note(&Delivery{Route: "r", Status: 200})
	near(t, tally, 0)
}

func TestTheShareOfAnHour(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tally := answered(&now, Limit{Share: 0.95})
	for range 19 {
		tally.Note(&Delivery{Route: "r", Status: 500})
	}
	near(t, tally, 0) // too few to say
	for range 19 {
		tally.Note(&Delivery{Route: "r", Status: 200})
	}
	near(t, tally, 0.5/0.95)
	now = now.Add(61 * time.Minute)
	near(t, tally, 0)
}

func TestAReloadKeepsWhatWasCounted(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tally := answered(&now, Limit{InRow: 4})
	tally.Note(&Delivery{Route: "r", Status: 500})
	tally.SetRoutes([]Route{{Name: "r", Sender: tally.senders["r"]}})
	near(t, tally, 0.25)
	if got := tally.Health()[0].Last; !got.Equal(now) {
		t.Errorf("the newest delivery came at %v", got)
	}
}
