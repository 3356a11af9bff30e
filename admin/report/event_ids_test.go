package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

func wrongIDOf(t *Tally) *client.WrongEventID { return t.Report(time.Time{}).Routes[0].WrongEventID }

func TestAPlaceholderIsNamedAtOnce(t *testing.T) {
	tally, c := newTally()
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionExecuted, EventID: "evt_1"})
	if w := wrongIDOf(tally); w != nil {
		t.Fatalf("%+v", w)
	}
	for range 2 {
		tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionReplayed, EventID: "$UNIQID", Placeholder: true})
	}
	if w := wrongIDOf(tally); w == nil || w.EventID != "$UNIQID" || w.Why != client.IDPlaceholder ||
		w.Deliveries != 2 || !w.At.Equal(c.at) {
		t.Fatalf("%+v", w)
	}
	if r := tally.Rates()[0]; r.WrongEventID == nil || r.WrongEventID.EventID != "$UNIQID" {
		t.Errorf("not with the rates: %+v", r)
	}
	c.at = c.at.Add(25 * time.Hour)
	if r := tally.Rates()[0]; r.WrongEventID != nil {
		t.Errorf("a day later: %+v", r.WrongEventID)
	}
}

func TestAnIDOfAllDeliveriesThatDifferIsNamed(t *testing.T) {
	tally, _ := newTally()
	note := func(id string, changed bool) {
		tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionReplayed, EventID: id, Changed: changed})
	}
	long := strings.Repeat("g", 200)
	for i := range constantAfter - 1 {
		note(long, i%2 == 1)
	}
	if w := wrongIDOf(tally); w != nil {
		t.Fatalf("named too early: %+v", w)
	}
	note(long, false)
	if w := wrongIDOf(tally); w == nil || w.EventID != long[:maxEventID] || w.Why != client.IDConstant ||
		w.Deliveries != constantAfter {
		t.Fatalf("%+v", w)
	}
}

func TestAnEventThatIsSentAgainAndAgainIsNoConstantID(t *testing.T) {
	tally, _ := newTally()
	for range 3 * constantAfter { // the same bytes
		tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionReplayed, EventID: "evt_1"})
	}
	for i := range 3 * constantAfter { // other bytes, among other events
		tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionReplayed, EventID: fmt.Sprint(i % 3),
			Changed: true})
		tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionExecuted})
	}
	if w := wrongIDOf(tally); w != nil {
		t.Errorf("%+v", w)
	}
}

func TestAChangedDuplicateIsCountedBesideTheDuplicates(t *testing.T) {
	tally, _ := newTally()
	member := func(n uint64) []idem.Member {
		return []idem.Member{{Path: "body.status", Sum: n}, {Path: "body.id", Sum: 7}}
	}
	tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionReplayed, Carried: true, Key: "k"})
	for n := range uint64(2) {
		tally.Note(&Delivery{Route: "stripe", Decision: idem.DecisionReplayed, Carried: true, Key: "k", Changed: true,
			Differs: []string{"body"}, Members: member(n)})
	}
	r := tally.Report(time.Time{}).Routes[0]
	if r.Duplicates.Count != 3 || r.Changed.Count != 2 || len(r.Changed.Examples) != 2 ||
		r.Changed.Examples[0].Differs[0] != "body" {
		t.Errorf("%+v", r)
	}
	if c := r.Changing; c == nil || c.Replayed != 1 || c.Refused != 0 || len(c.Members) != 1 ||
		c.Members[0] != "body.status" {
		t.Errorf("what differs: %+v", c)
	}
	if text := r.ChangedText(); !strings.HasPrefix(text,
		"2 of 3 duplicates were other requests than the first delivery of their event ID (body.status)") {
		t.Error(text)
	}
	if n := tally.Take()[0].Counts; n[idem.CountChanged] != 2 || n[idem.CountDuplicates] != 3 {
		t.Errorf("%v", n)
	}
}

func TestTheFirstDeliveryShowsWhatAChangedDuplicateChanges(t *testing.T) {
	tally, _ := newTally()
	for n, decision := range []idem.Decision{idem.DecisionExecuted, idem.DecisionReplayed} {
		tally.Note(&Delivery{Route: "stripe", Decision: decision, Key: "k", Changed: n > 0, Members: []idem.Member{{Path: "body.status", Sum: uint64(n)}}}) //nolint:gosec // it is 0 or 1
	}
	if c := tally.Report(time.Time{}).Routes[0].Changing; c == nil || c.Replayed != 1 || c.Members[0] != "body.status" {
		t.Errorf("%+v", c)
	}
}

func BenchmarkNotingAnEventID(b *testing.B) {
	var e eventIDs
	now, d := moment{}, &Delivery{EventID: "1f0c5a0e-7b1d-4b8e-9c3e-0a1b2c3d4e5f"}
	for b.Loop() {
		e.noteDelivery(d, now)
	}
}
