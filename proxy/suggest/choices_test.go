package suggest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A suggestion says how many senders there were, what other choices would have stopped and let run
// again, and which subscriptions send one change under two IDs.
func TestASuggestionComparesTheChoices(t *testing.T) {
	t.Parallel()
	all := streams()
	for name, want := range map[string][]string{
		"two subscriptions": {
			"of 1 User-Agent; ",
			"the same body but for the ID, and X-Webhook-Id 17 and 23: these are subscriptions of one hook",
		},
		"an ID in the body, and times of sending": {"of 1 User-Agent; ", "Without ignore "},
		"IDs that begin again each day":           {"{body.number} as event_id would have let 0 repeats run again, and stopped "},
		"an event ID beside an ID of the delivery": {
			"{header.X-Delivery-Id} as event_id would have let ", " run again, and stopped 0 deliveries wrongly.",
		},
	} {
		found := suggested(all[name].deliveries(1))
		text := strings.Join(found.Sentences, "\n")
		for _, sentence := range want {
			if !strings.Contains(text, sentence) {
				t.Errorf("%s: no %q in\n%s", name, sentence, text)
			}
		}
	}
}

// What names an event, and not the subscription, is not kept, and of a header with many values
// none is.
func TestOnlyNamesOfFewSubscriptionsAreKept(t *testing.T) {
	t.Parallel()
	s := &stream{repeat: 2, send: func(a attempt) []sent {
		return one([]string{js, "X-Hook-Id: h" + fmt.Sprint(a.event), "X-Webhook-Event-Id: e" + fmt.Sprint(a.event),
			"X-Hook-Name: " + strings.Repeat("n", maxSubscription+1), "X-Hook-Secret: s"}, `{"n":%d,"webhook_id":"b"}`,
			a.event)
	}}
	set := NewSet(0)
	for _, d := range s.deliveries(1) {
		set.Add(d)
	}
	for i, known := range set.tables[0].subscriptions {
		if len(known) > 0 {
			t.Errorf("%s: %v", set.tables[0].names[i], known)
		}
	}
}

// Of each choice of a workflow it is said how many events it would have stopped, because another
// one of it still ran.
func TestASuggestionSaysWhatEachWorkflowWouldHaveStopped(t *testing.T) {
	t.Parallel()
	took := func(took time.Duration, send func(a attempt) []sent) string {
		all := (&stream{repeat: 2, send: send}).deliveries(1)
		for i, d := range all {
			d.At, d.Took = begin.Add(time.Duration(i)*time.Second), took
		}
		return strings.Join(suggested(all).Sentences, "\n")
	}
	// An event each second takes 1.5 s: it meets the one before it.
	two := func(a attempt) []sent {
		return one([]string{js}, `{"event_id":%q,"order_id":"o%d","customer_id":"c%d"}`, hexOf(a.event), a.event/2%40,
			a.event/2%40/4)
	}
	text := took(1500*time.Millisecond, two)
	if !regexp.MustCompile(`Of \d+ events \d+ came while another one of this workflow ran, and would have waited or ` +
		`been refused; it would have been \d+ with {body.customer_id}, \d+ without workflow\.`).MatchString(text) {
		t.Error(text)
	}
	if text = took(0, two); strings.Contains(text, "without workflow") {
		t.Errorf("nothing ran at the same time: %s", text)
	}
	v := &view{rows: make([]row, 6)}
	for i := range v.rows {
		v.rows[i].at, v.rows[i].took = begin.Add(time.Duration(i)*time.Second), 1500*time.Millisecond
	}
	m := &member{values: []uint64{1, 2, 1, 1, 0, 0}}
	rows := []int{0, 1, 2, 3, 4, 5}
	if all, some := v.stoppedCount(rows, nil), v.stoppedCount(rows, m); all != 5 || some != 2 {
		t.Errorf("%d of one workflow, %d of three", all, some)
	}
}

// Of what may name events it is said what it would have stopped: deliveries with another body may
// be events of their own.
func TestWhatHintsWouldHaveStoppedIsSaid(t *testing.T) {
	t.Parallel()
	set := NewSet(0)
	s := stream{send: func(a attempt) []sent {
		return one([]string{js}, `{"id":"o%d","status":"s%d"}`, a.event%100, a.event%100+a.event/200)
	}}
	for _, d := range s.deliveries(3) {
		set.Add(d)
	}
	found, v := new(Suggestion), newView(set.tables[0], set.tables[0].rows)
	found.compareHints(v, []string{"{body.id}", "{header.X-None}"})
	if text := strings.Join(found.Sentences, "\n"); text !=
		"{body.id} as event_id would have stopped 200 deliveries, 100 of them with another body than the one before." {
		t.Error(text)
	}
}

// A delivery is stopped wrongly if its key came before and its event did not, whatever came
// between.
func TestARepeatBehindATwinIsNoFurtherTwin(t *testing.T) {
	t.Parallel()
	if missed, wrong := compareKeys(key{1, 2, 1, 3, 3, 0}, key{7, 7, 7, 8, 9, 0}); missed != 1 || wrong != 1 {
		t.Errorf("missed %d, wrong %d", missed, wrong)
	}
	v := &view{rows: []row{{whole: 5}, {whole: 5}, {whole: 5}}}
	if pairs := v.twinPairs(&candidate{key: key{1, 2, 1}}); len(pairs) != 1 {
		t.Errorf("%v", pairs)
	}
}
