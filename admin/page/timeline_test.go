package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
)

func TestATimelineShowsTheEventAndItsNeighboursInRowsOfTheirOwn(t *testing.T) {
	at := func(seconds int) client.Time {
		return client.Time{Time: time.Date(2026, 11, 26, 2, 13, seconds, 0, time.UTC)}
	}
	holder := client.Execution{ExecutionID: strings.Replace(anID, "exec_m", "exec_h", 1), EventID: "evt_holder",
		Status: client.Success, Response: &client.Response{Status: 200}, StartedAt: at(0), FinishedAt: at(4)}
	beside := client.Execution{ExecutionID: strings.Replace(anID, "exec_m", "exec_b", 1), EventID: "evt_beside",
		Status: client.Failed, Outcome: client.Unknown, StartedAt: at(3), FinishedAt: at(5)}
	refused := client.Execution{Status: client.Refused, Workflow: "w", EventID: "evt_refused",
		IdempotencyKey: "0123456789abcdef", Arrivals: &client.Arrivals{
			First: client.Arrival{At: at(1), Decision: "locked", Status: 409, ExecutionID: holder.ExecutionID,
				Behind: &client.ArrivalBehind{EventID: "evt_holder", StartedAt: at(0), FinishedAt: at(4)}},
			Newest: []client.Arrival{{At: at(1), Decision: "locked", Status: 409, ExecutionID: holder.ExecutionID,
				Behind: &client.ArrivalBehind{EventID: "evt_holder", StartedAt: at(0), FinishedAt: at(4)}}},
			Counts: map[string]int64{"locked": 1},
		}}
	api := everything("plain")
	api.set("/v1/executions", &client.ExecutionPage{Executions: []client.Execution{refused, holder, beside}})
	_, text := get(t, newPage(t, api), "/page/story?key=0123456789abcdef&workflow=w")
	for _, want := range []string{
		`<text class="lane" x="0" y="16">This event</text>`,
		`<title>Delivery: 409 locked</title><rect x="18.80%" y="22" width="0.50%" height="18"/>`,
		`Other events of w</text>`,
		`<a href="#story?id=` + holder.ExecutionID + `" tabindex="-1"><g class="other"><title>Other event: evt_holder `,
		`width="75.20%"`, `evt_beside outcome unknown`,
		`<td data-head="Event"><a href="#story?id=` + beside.ExecutionID + `">evt_beside</a></td>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text[strings.Index(text, "<svg"):])
		}
	}
}

func TestAnEventWithNothingBesideItHasNoPicture(t *testing.T) {
	now := time.Now()
	if newTimeline("w", []spell{{from: now, to: now, own: true}}, now) != nil || newTimeline("w", nil, now) != nil {
		t.Error("a picture of a moment")
	}
}

// A label that has no room to its right stands left of the end of its bar, and no two overlap.
func TestTheLabelsOfATimelineStayInItAndApart(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 3, 4, 1, 9, s, 0, time.UTC) }
	long := strings.Repeat("x", 20)
	picture := newTimeline("w", []spell{
		{result: "answered 500", own: true, from: at(0), to: at(1)},
		{result: "answered 500", own: true, from: at(59), to: at(59)},
		{event: long, result: "answered 200", from: at(0), to: at(1)},
		{event: long, result: "answered 200", from: at(10), to: at(11)},
		{event: long, result: "answered 200", from: at(50), to: at(51)},
	}, at(60))
	var got []string
	for _, b := range picture.Bars {
		got = append(got, fmt.Sprintf("%d %s %t", b.Y, b.LabelX, b.Before))
	}
	if want := "22 0.00% false, 22 94.50% true, 72 0.00% false, 96 15.93% false, 72 81.25% true"; strings.Join(got,
		", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
}

// A copy that came while its event ran, and one that was refused behind it, stand where they came.
func TestTheStoryIsInTheOrderOfTime(t *testing.T) {
	at := func(s int) client.Time { return client.Time{Time: time.Date(2026, 3, 4, 1, 9, s, 0, time.UTC)} }
	x := &client.Execution{
		ExecutionID: anID, Status: client.Success, Outcome: client.Executed, StartedAt: at(10), FinishedAt: at(40),
		Arrivals: &client.Arrivals{
			First: client.Arrival{At: at(20), Decision: "in_flight", Status: 409, ExecutionID: anID},
			Newest: []client.Arrival{{At: at(30), Decision: "replayed", Status: 200, ExecutionID: anID},
				{At: at(20), Decision: "in_flight", Status: 409, ExecutionID: anID}},
		},
	}
	var got []string
	for _, i := range inOrder(itemsOf(x)) {
		got = append(got, i.At.Format("05")+" "+i.Kind)
	}
	x.Arrivals.Counts = map[string]int64{"replayed": 1, "in_flight": 1}
	if said := leftOut(x); said != "Also received: 1 in flight, 1 replayed." {
		t.Error(said)
	}
	if want := "10 attempt, 20 arrival, 30 arrival, 40 end"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}

// A delivery that waited is told when it came and when it was answered: between the two, its event
// ended.
func TestADeliveryThatWaitedIsToldWhenItCameAndWhenItWasAnswered(t *testing.T) {
	at := func(s int) client.Time { return client.Time{Time: time.Date(2026, 3, 4, 1, 9, s, 0, time.UTC)} }
	waited := client.Arrival{At: at(20), AnsweredAt: at(41), Decision: "replayed", Status: 200, ExecutionID: anID}
	x := &client.Execution{
		ExecutionID: anID, Status: client.Success, Outcome: client.Executed, StartedAt: at(10), FinishedAt: at(40),
		Arrivals: &client.Arrivals{First: waited, Newest: []client.Arrival{waited}},
	}
	var got []string
	for _, i := range inOrder(itemsOf(x)) {
		got = append(got, i.At.Format("05")+" "+i.Title)
	}
	want := "10 Attempt 1 started, 20 Delivery received, waits for its answer, 40 Attempt 1 ended: SUCCESS, " +
		"41 Delivery answered after 21 s: replayed, the sender got 200"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}
