package page

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"hooklock/admin/client"
)

// The line of this week is drawn over that of the last, hour over hour.
func TestTheLatencyOfThisWeekIsShownOverThatOfTheLast(t *testing.T) {
	until := time.Date(2026, 11, 28, 12, 30, 0, 0, time.UTC)
	since := until.Truncate(time.Hour).Add(-336 * time.Hour)
	at := func(hour int, p50, p95 float64) client.CountStep {
		return client.CountStep{At: client.Time{Time: since.Add(time.Duration(hour) * time.Hour)}, P50Seconds: p50,
			P95Seconds: p95, Counts: client.Counts{Deliveries: 1, Succeeded: 1}}
	}
	list := &client.CountList{Since: client.Time{Time: since}, Until: client.Time{Time: until}, StepSeconds: 3600,
		Routes: []client.RouteCounts{{Route: "stripe", Steps: []client.CountStep{
			at(5, 0.1, 0.2), at(6, 0.1, 0.4), at(168+5, 0.2, 0.8), at(336, 0.1, 0.1),
		}}}}
	api := &scripted{answers: map[string]any{"/v1/routes/counts": list}}
	server := newPage(t, api)
	_, text := get(t, server, "/page/latency?route=stripe&range=7d")
	for _, want := range []string{
		"The top is 800 ms", `class="p95" d="M5 1.0h.6M168 `, `class="p95 before" d="M5 89.5h.6L6 60.0"`, "p50 a week before",
		`<td data-head="p95"><span>800 ms</span></td>`, `<td data-head="p95 a week before"><span>200 ms</span></td>`, ">Outcomes<",
		"7 days ago", "route=stripe",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if strings.Contains(text, since.Add(5*time.Hour).Format(time.RFC3339)) {
		t.Error("outcomes of the week before are shown as those of this one")
	}
	if _, text := get(t, server, "/page/latency?route=other"); !strings.Contains(text,
		"Nothing is known of this route") {
		t.Errorf("another route: %s", text)
	}
	list.Routes[0].Steps = nil
	if _, text := get(t, server, "/page/latency?route=stripe"); !strings.Contains(text, "was not called in this time") {
		t.Errorf("no calls: %s", text)
	}
	api.set("/v1/routes/counts", &client.Problem{Status: 503, Code: client.CodeStoreUnavailable})
	if r, text := get(t, server, "/page/latency?route=stripe"); r.StatusCode != http.StatusOK ||
		!strings.Contains(text, "etcd does not answer") {
		t.Errorf("etcd is away: %d %s", r.StatusCode, text)
	}
}
