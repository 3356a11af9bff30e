package page

import (
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
)

func TestTheOverviewDrawsWhatCameOverTimeAndHasTheSameAsATable(t *testing.T) {
	api := everything("plain")
	until := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) client.Time { return client.Time{Time: until.Add(-ago)} }
	// that became some, and ran again since
	failing := client.Counts{Deliveries: 40, Succeeded: 30, Failed: 10, DeadLetters: 991}
	api.set("/v1/routes/counts", &client.CountList{Since: at(24 * time.Hour), Until: at(0), StepSeconds: 900,
		Routes: []client.RouteCounts{
			{Route: "github", Total: failing, P50Seconds: 0.003, P95Seconds: 2, LastAt: at(time.Minute),
				Steps: []client.CountStep{{At: at(15 * time.Minute), Counts: failing}}},
			{Route: "silent", Steps: []client.CountStep{}},
		}})
	api.set("/v1/status", &client.ReplicaStatus{Parked: client.ParkedStatus{DeadLetters: 2,
		DeadLetterRoutes: []client.RouteCount{{Route: "github", Count: 2}}}})
	_, text := get(t, newPage(t, api), "/page/now")
	chart, _, _ := strings.Cut(text[strings.Index(text, `<svg class="chart"`):], "</svg>")
	if n := strings.Count(chart, "<rect"); n != 2 || !strings.Contains(chart, `class="succeeded"`) ||
		!strings.Contains(chart, `y="30" width="0.87%" height="90"`) {
		t.Errorf("%d blocks: %s", n, chart)
	}
	for _, want := range []string{"Outcomes as a table",
		`<td data-head="Failed"><a href="#find?route=github&amp;since=2026-11-26T12%3A00%3A00Z&amp;status=FAILED">10</a></td>`, "3 ms / 2 s", `<td data-head="Dead letters"><span>2</span></td>`, ">none<", "range=1h"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if !strings.Contains(chart,
		`<a href="#find?since=2026-11-27T11%3A45%3A00Z&amp;status=FAILED&amp;until=2026-11-27T12%3A00%3A00Z" tabindex="-1"><rect class="failed"`) || !strings.Contains(chart, "<title>Failed: 10</title>") {
		t.Errorf("a bar does not open what it counts: %s", chart)
	}
	if strings.Contains(chart, "style=") {
		t.Error("an inline style, which the policy of the page forbids")
	}
	api.set("/v1/routes/counts", &client.CountList{Since: at(24 * time.Hour), Until: at(0), StepSeconds: 900,
		Routes: []client.RouteCounts{{Route: "silent"}}})
	if _, text := get(t, newPage(t, api), "/page/now?range=1h"); strings.Contains(text, `<svg class="chart"`) ||
		!strings.Contains(text, "last hour") {
		t.Error("a picture of nothing")
	}
}

func TestTheRowOfARouteDrawsItsTrendWithItsFailures(t *testing.T) {
	api := everything("plain")
	until := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	at := func(ago time.Duration) client.Time { return client.Time{Time: until.Add(-ago)} }
	// of an accepted event
	busy, tries := client.Counts{Deliveries: 40, Succeeded: 30, Failed: 9, Errors: 1}, client.Counts{Failed: 1}
	list := client.CountList{Since: at(24 * time.Hour), Until: at(0), StepSeconds: 900, Routes: []client.RouteCounts{
		{Route: "github", Total: client.Counts{Deliveries: 40, Succeeded: 30, Failed: 10, Errors: 1},
			Steps: []client.CountStep{{At: at(24 * time.Hour), Counts: tries},
				{At: at(15 * time.Minute), Counts: busy}}},
		{Route: "silent", Steps: []client.CountStep{}},
	}}
	api.set("/v1/routes/counts", &list)
	_, text := get(t, newPage(t, api), "/page/now")
	for _, want := range []string{
		`<td data-head="Trend"><svg class="trend" role="img" viewBox="-0.5 0 97 24" preserveAspectRatio="none"><title>40 deliveries, 11 failed; at most 40 in 15 min</title>` +
			`<path class="all" d="M95 24V0"/><path class="failed" d="M0 24V22M95 24V18"/></svg></td>`,
		`<td data-head="Trend"></td>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if n := strings.Count(strings.Join(api.asked, " "), "/v1/routes/counts"); n != 1 {
		t.Errorf("the counts were read %d times", n)
	}
	list.Routes[0].Steps[0].At, list.Routes[0].Steps[1].At = at(-time.Hour), at(48*time.Hour)
	api.set("/v1/routes/counts", &list)
	if _, text := get(t, newPage(t, api), "/page/now"); strings.Contains(text, `class="trend"`) {
		t.Error("a step outside of the time is drawn")
	}
}

// A chart of 24 hours begins with a whole step, up to 15 minutes before.
func TestATimeAxisIsLabelledWithRoundTimes(t *testing.T) {
	since := time.Date(2026, 3, 4, 1, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		whole, step time.Duration
		want        string
	}{
		{24*time.Hour + 14*time.Minute, 15 * time.Minute, "24 h ago, 18 h ago, 12 h ago, 6 h ago"},
		{24 * time.Hour, 15 * time.Minute, "24 h ago, 18 h ago, 12 h ago, 6 h ago"},
		{60*time.Minute + 59*time.Second, time.Minute, "1 h ago, 45 min ago, 30 min ago, 15 min ago"},
		{time.Minute, time.Minute, ""},
	} {
		var texts []string
		for _, tick := range ticksOf(since, since.Add(c.whole), c.step, 0, func(d time.Duration) string {
			if d < 0 || d > c.whole {
				t.Errorf("%s of %s: a label at %s", c.step, c.whole, d)
			}
			return ""
		}) {
			texts = append(texts, tick.Text)
		}
		if got := strings.Join(texts, ", "); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.step, c.whole, got, c.want)
		}
	}
}
