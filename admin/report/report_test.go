package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"hooklock/admin/client"
	"hooklock/idem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that a test moves on.
type clock struct {
	at  time.Time
	set time.Duration // by how much somebody has set the clock of the machine
}

func (c *clock) now() time.Time { return c.at.Add(c.set) }

// elapsed is how long ago now is.
func (c *clock) elapsed() func() time.Duration {
	start := c.at
	return func() time.Duration { return c.at.Sub(start) }
}

func newTally() (*Tally, *clock) {
	c := &clock{at: time.Date(2026, 11, 21, 12, 3, 0, 0, time.UTC)}
	t := New("host/1", c.now, c.elapsed())
	t.SetRoutes([]Route{{Name: "stripe", Mode: "observe"}, {Name: "github", Mode: "enforce"}})
	return t, c
}

func TestEachDecisionIsCountedAsWhatItWouldHaveStopped(t *testing.T) {
	for d, want := range map[idem.Decision]func(client.RouteReport) int64{
		idem.DecisionReplayed:   func(c client.RouteReport) int64 { return c.Duplicates.Count },
		idem.DecisionAttached:   func(c client.RouteReport) int64 { return c.Duplicates.Count },
		idem.DecisionInFlight:   func(c client.RouteReport) int64 { return c.Duplicates.Count },
		idem.DecisionUnknown:    func(c client.RouteReport) int64 { return c.Duplicates.Count },
		idem.DecisionLocked:     func(c client.RouteReport) int64 { return c.Overlaps.Count },
		idem.DecisionSkipped:    func(c client.RouteReport) int64 { return c.Overlaps.Count },
		idem.DecisionMismatch:   func(c client.RouteReport) int64 { return c.Mismatches.Count },
		idem.DecisionUnverified: func(c client.RouteReport) int64 { return c.Forged.Count },
		idem.DecisionSuperseded: func(c client.RouteReport) int64 { return c.Stale.Count },
		idem.DecisionStale:      func(c client.RouteReport) int64 { return c.Stale.Count },
		idem.DecisionRejected:   func(c client.RouteReport) int64 { return c.Unnamed.Count },
		idem.DecisionExecuted:   func(c client.RouteReport) int64 { return c.Deliveries },
	} {
		tally, _ := newTally()
		tally.Note(&Delivery{Route: "stripe", Decision: d, Key: "k"})
		c := tally.Report(time.Time{}).Routes[0]
		found := c.Duplicates.Count + c.Overlaps.Count + c.Mismatches.Count + c.Forged.Count + c.Unnamed.Count +
			c.Stale.Count
		if want(c) != 1 || c.Deliveries != 1 || d != idem.DecisionExecuted && found != 1 ||
			d == idem.DecisionExecuted && found != 0 {
			t.Errorf("%s: %+v", d, c)
		}
	}
}

func TestAMissingIDIsCountedBesideTheDecision(t *testing.T) {
	tally, _ := newTally()
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionReplayed, MissingID: true})
	if c := tally.Report(time.Time{}).Routes[0]; c.MissingEventIDs.Count != 1 || c.Duplicates.Count != 1 ||
		c.Deliveries != 1 {
		t.Errorf("%+v", c)
	}
}

func TestARedirectIsNamedWithWhatToDo(t *testing.T) {
	tally, _ := newTally()
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionExecuted, Carried: true, Result: Failed, Status: 302,
		Redirected: true})
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionExecuted, Carried: true, Result: Succeeded,
		Status: 200})
	c := tally.Report(time.Time{}).Routes[0]
	if text := c.RedirectedText(); c.Redirected.Count != 1 || len(c.Redirected.Examples) != 1 ||
		!strings.Contains(text, "answered 1 deliveries with a redirect") {
		t.Errorf("%q %+v", text, c)
	}
}

func TestRoutesComeInTheirOrderWithTheirMode(t *testing.T) {
	tally, _ := newTally()
	r := tally.Report(time.Time{})
	if len(r.Routes) != 2 || r.Routes[0].Route != "stripe" || r.Routes[0].Mode != "observe" ||
		r.Routes[1].Mode != "enforce" {
		t.Errorf("%+v", r.Routes)
	}
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionExecuted})
	tally.SetRoutes([]Route{{Name: "new", Mode: "enforce"}, {Name: "stripe", Mode: "enforce"}})
	if r = tally.Report(time.Time{}); r.Routes[0].Route != "new" || r.Routes[1].Deliveries != 1 ||
		r.Routes[1].Mode != "enforce" {
		t.Errorf("after a reload: %+v", r.Routes)
	}
	tally.Note(&Delivery{Route: "github"}) // is gone
}

func TestSinceLeavesOutWhatWasBefore(t *testing.T) {
	tally, c := newTally()
	began := c.at
	for range 3 { // at 0 h, 1 h, 2 h
		tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionLocked, Key: fmt.Sprint(c.at.Hour())})
		c.at = c.at.Add(time.Hour)
	}
	r := tally.Report(c.at.Add(-90 * time.Minute))
	if o := r.Routes[0].Overlaps; o.Count != 1 || len(o.Examples) != 1 || o.Examples[0].Key != "14" {
		t.Errorf("%+v", o)
	}
	if got := r.Since.Time; !got.Equal(time.Date(2026, 11, 21, 13, 30, 0, 0, time.UTC)) {
		t.Errorf("since %v", got)
	}
	if r = tally.Report(began.Add(-time.Hour)); r.Routes[0].Overlaps.Count != 3 || !r.Since.Time.Equal(began) {
		t.Errorf("since before the start: %+v", r)
	}
}

func TestExamplesAreFewAndTheNewestComeFirst(t *testing.T) {
	tally, _ := newTally()
	for i := range 100 {
		tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionLocked, Key: fmt.Sprint(i)})
	}
	o := tally.Report(time.Time{}).Routes[0].Overlaps
	if o.Count != 100 || len(o.Examples) != maxExamples || o.Examples[0].Key != "99" ||
		o.Examples[maxExamples-1].Key != "95" {
		t.Errorf("%+v", o)
	}
}

func TestCountsGoAfterAWeek(t *testing.T) {
	tally, c := newTally()
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionLocked})
	c.at = c.at.Add(keptFor + stepLength)
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionLocked})
	if n := tally.Report(time.Time{}).Routes[0].Overlaps; n.Count != 1 || len(n.Examples) != 1 {
		t.Errorf("%+v", n)
	}
}

// The ring against a list of everything.
func TestTheRingCountsWhatAListWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var all []int64
		at := int64(5000)
		for range rapid.IntRange(0, 60).Draw(t, "notes") {
			at += rapid.Int64Range(0, steps).Draw(t, "later")
			r.add(at)
			all = append(all, at)
		}
		from, want := at-rapid.Int64Range(0, steps-1).Draw(t, "from"), int64(0)
		for _, one := range all {
			if one >= from {
				want++
			}
		}
		if got := r.countBetween(from, at); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

func TestAClockThatIsSetBackLosesNothingButThat(t *testing.T) {
	tally, c := newTally()
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionLocked})
	c.at = c.at.Add(-time.Hour)
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionLocked})
	c.at = c.at.Add(-2 * keptFor)
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionLocked})
}

func TestTimesHaveMilliseconds(t *testing.T) {
	text, err := json.Marshal(client.Time{Time: time.Date(2026, 11, 21, 12, 0, 0, 5e6, time.FixedZone("", 3600))})
	if err != nil || string(text) != `"2026-11-21T11:00:00.005Z"` {
		t.Errorf("%s %v", text, err)
	}
}

func TestWhatASenderChangesBetweenAttemptsIsReported(t *testing.T) {
	members := func(attempt uint64) []idem.Member {
		return []idem.Member{{Path: "body.id", Sum: 1}, {Path: "body.delivery_attempts", Sum: attempt}}
	}
	failed := func(key string, m []idem.Member) *Delivery {
		return &Delivery{Route: "stripe", Decision: idem.DecisionExecuted, Status: 500, Key: key, Members: m}
	}
	refused := func(key string, m []idem.Member) *Delivery {
		return &Delivery{Route: "stripe", Decision: idem.DecisionMismatch, Status: 422, Key: key, Members: m}
	}
	for name, tt := range map[string]struct {
		deliveries []*Delivery
		want       string
	}{
		"after a failure": {[]*Delivery{failed("a", members(1)), refused("a", members(2)),
			refused("a", members(3))}, "2 [body.delivery_attempts] a"},
		"two that were refused": {[]*Delivery{refused("a", members(2)), refused("a", members(3))},
			"1 [body.delivery_attempts] a"},
		"two that are equal": {[]*Delivery{refused("a", members(2)), refused("a", members(2))}, ""},
		"in another spelling": {[]*Delivery{failed("a", members(2)), refused("a", members(2))},
			"1 [the order or white space of the body] a"},
		"two failures of one event": {[]*Delivery{failed("a", members(1)), failed("a", members(2))},
			"0 [body.delivery_attempts] a"},
		"events of different keys": {[]*Delivery{failed("a", members(1)), refused("b", members(2))}, ""},
		"events of two workflows": {[]*Delivery{failed("a", members(1)),
			{Route: "stripe", Decision: idem.DecisionExecuted, Workflow: "w2", Key: "a", Members: members(2)}}, ""},
		"of which nobody knows more": {[]*Delivery{failed("a", nil), refused("a", nil)}, ""},
	} {
		tally, c := newTally()
		for _, d := range tt.deliveries {
			tally.Note(d)
		}
		got := ""
		if found := tally.Report(time.Time{}).Routes[0].Changing; found != nil {
			got = fmt.Sprint(found.Refused, " ", found.Members, " ", found.Key)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		c.at = c.at.Add(time.Hour)
		if tally.Report(c.at).Routes[0].Changing != nil {
			t.Errorf("%s: is told of after that", name)
		}
	}
}

func TestAttemptsAreRememberedInBoundedSpace(t *testing.T) {
	tally, _ := newTally()
	for i := range 1000 {
		tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionMismatch, Key: fmt.Sprint(i),
			Members: []idem.Member{{Path: "a"}}})
	}
	for i := range 100 {
		tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionMismatch, Key: "999",
			Members: []idem.Member{{Path: fmt.Sprint("m", i)}}})
	}
	a := &tally.routes["stripe"].attempts
	if len(a.seen) != maxAttempts || len(a.order) != maxAttempts || len(a.found.Members) != maxChanging {
		t.Errorf("%d, %d, %d", len(a.seen), len(a.order), len(a.found.Members))
	}
}
