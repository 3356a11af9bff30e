package report

import (
	"testing"
	"time"
)

// answered is a tally with a route r whose sender takes 200 within 10 s for received, and the
// limits of l.
func answered(clock *time.Time, limits ...Limit) *Tally {
	start := *clock
	t := New("a", func() time.Time { return *clock }, func() time.Duration { return clock.Sub(start) })
	t.SetRoutes([]Route{{Name: "r", Sender: Sender{limits, func(status int, took time.Duration) bool {
		return status != 200 || took > 10*time.Second
	}}}})
	return t
}

func near(tb testing.TB, t *Tally, want ...float64) {
	tb.Helper()
	for i, n := range t.Health()[0].Limits {
		if !about(n.Ratio, want[i]) {
			tb.Errorf("%s: %v, want %v", n.Limit, n.Ratio, want[i])
		}
	}
}

func about(a, b float64) bool { return a > b-0.001 && a < b+0.001 }

func TestFailuresInARowAreCountedUntilTheSenderGetsASuccess(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tally := answered(&now, Limit{InRow: 4}, Limit{InRow: 40})
	near(t, tally, 0, 0)
	tally.Note(&Delivery{Route: "r", Verified: true, Status: 503})
	tally.Note(&Delivery{Route: "r", Verified: true, Status: 200, Took: 11 * time.Second}) // it had hung up
	near(t, tally, 0.5, 0.05)
	for range 5 {
		tally.Note(&Delivery{Route: "r", Verified: true, Status: 404})
	}
	near(t, tally, 1, 0.175)
	tally.Note(&Delivery{Route: "r", Verified: true, Status: 200})
	near(t, tally, 0, 0)
}

func TestFailuresAtOtherProcessesCountUntilASuccessAtAnyOne(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tally := answered(&now, Limit{InRow: 4})
	failed := func(n int) Standing { return Standing{InRow: n, First: now, Last: now} }
	if tally.Note(&Delivery{Route: "r", Verified: true, Status: 500}); tally.NearLimit("r") {
		t.Error("one failure of four is half of them")
	}
	tally.SetElsewhere(map[string]Standings{"r": {Verified: failed(1), Suspected: failed(2)}})
	near(t, tally, 0.5)
	if h := tally.Health()[0]; !about(h.Limits[0].Unverified, 0.75) || h.Standings.Verified.InRow != 1 ||
		!tally.NearLimit("r") {
		t.Errorf("%+v, near: %v", h, tally.NearLimit("r"))
	}
	now = now.Add(time.Second)
	tally.Note(&Delivery{Route: "r", Verified: true, Status: 200})
	near(t, tally, 0)
	now = now.Add(time.Second)
	tally.SetElsewhere(map[string]Standings{"r": {Verified: failed(3)}})
	near(t, tally, 0.75)
}

func TestALongTimeOfNothingButFailures(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tally := answered(&now, Limit{For: 24 * time.Hour})
	tally.Note(&Delivery{Route: "r", Verified: true, Status: 500})
	near(t, tally, 0)
	now = now.Add(12 * time.Hour)
	near(t, tally, 0) // nothing has failed since
	tally.Note(&Delivery{Route: "r", Verified: true, Status: 500})
	near(t, tally, 0.5)
	tally.Note(&Delivery{Route: "r", Verified: true, Status: 200})
	near(t, tally, 0)
}

func TestTheShareOfAnHour(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tally := answered(&now, Limit{Share: 0.95})
	for range 19 {
		tally.Note(&Delivery{Route: "r", Verified: true, Status: 500})
	}
	near(t, tally, 0) // too few to say
	for range 19 {
		tally.Note(&Delivery{Route: "r", Verified: true, Status: 200})
	}
	near(t, tally, 0.5/0.95)
	now = now.Add(61 * time.Minute)
	near(t, tally, 0)
}

func TestAReloadKeepsWhatWasCounted(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tally := answered(&now, Limit{InRow: 4})
	tally.Note(&Delivery{Route: "r", Verified: true, Status: 500})
	tally.SetRoutes([]Route{{Name: "r", Sender: tally.senders["r"]}})
	near(t, tally, 0.25)
	if got := tally.Health()[0].Last; !got.Equal(now) {
		t.Errorf("the newest delivery came at %v", got)
	}
}

func TestOnlyVerifiedDeliveriesCountAsTheSenders(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tally := answered(&now, Limit{InRow: 4})
	verified := func(status int) { tally.Note(&Delivery{Route: "r", Status: status, Verified: true}) }
	stranger := func(status int) { tally.Note(&Delivery{Route: "r", Status: status}) }
	handshake := func() { tally.Note(&Delivery{Route: "r", Status: 200, UnsignedHandshake: true}) }
	want := func(when string, ratio, unverified float64, last time.Time) {
		t.Helper()
		h := tally.Health()[0]
		if n := h.Limits[0]; !about(n.Ratio, ratio) || !about(n.Unverified, unverified) || !h.Last.Equal(last) ||
			tally.NearLimit("r") != (ratio >= half) {
			t.Errorf("%s: %+v, the last at %v, near %v; want %v, %v, %v", when, n, h.Last, tally.NearLimit("r"), ratio,
				unverified, last)
		}
	}
	stranger(503)
	stranger(503)
	want("two requests without a signature", 0, 0.5, time.Time{})
	verified(500)
	verified(500)
	failed := now
	want("two failures of the sender's", 0.5, 1, failed)
	now = now.Add(time.Minute)
	handshake()
	want("a handshake that anybody may send", 0.5, 1, failed)
	stranger(200) // mode observe forwards it
	want("a success of a stranger", 0.5, 0, failed)
	verified(200)
	want("a success of the sender's", 0, 0, now)
}
