package admin

import (
	"context"
	"testing"
	"time"

	"hooklock/idem"
)

// counting is a ledger that has counted one answer with a 500, and notes what it was asked.
type counting struct {
	unreachable
	asked idem.CountQuery
}

func (l *counting) Counts(_ context.Context, q idem.CountQuery) (idem.CountHistory, error) {
	l.asked = q
	r := idem.RouteHistory{
		RouteCounts: idem.RouteCounts{
			Route: "github", Counts: idem.Counts{idem.CountDeliveries: 1, idem.CountFailed: 1}, Last: q.Since}}
	r.Took.Note(time.Second)
	r.Steps = []idem.CountStep{{At: q.Since, Counts: r.Counts, Took: r.Took}}
	return idem.CountHistory{
		Since: q.Since, Until: q.Since.Add(time.Hour), Step: q.Step, Routes: []idem.RouteHistory{r}}, nil
}

func TestCountsSayWhatCameOfTheDeliveriesOfEachRoute(t *testing.T) {
	ledger := &counting{}
	now := time.Date(2026, 11, 27, 12, 0, 30, 0, time.UTC)
	r := newRig(t, ledger, func(o *Options) { o.Process, o.Now = &process{}, func() time.Time { return now } })
	a := r.want(200, "", "GET", "/v1/routes/counts", readToken1, "")
	routes := a.json["routes"].([]any)
	github, stripe := routes[0].(map[string]any), routes[1].(map[string]any)
	if len(routes) != 2 || github["route"] != "github" || github["total"].(map[string]any)["failed"] != 1.0 ||
		len(github["steps"].([]any)) != 1 || github["p95Seconds"].(float64) < 0.7 {
		t.Errorf("%s", a.body)
	}
	if step := github["steps"].([]any)[0].(map[string]any); step["p95Seconds"] != github["p95Seconds"] ||
		step["p50Seconds"] != github["p50Seconds"] {
		t.Errorf("a step with all: %v", github)
	}
	if stripe["route"] != "stripe" || stripe["total"].(map[string]any)["deliveries"] != 0.0 || stripe["lastAt"] != nil {
		t.Errorf("a configured route without deliveries: %v", stripe)
	}
	for query, want := range map[string]idem.CountQuery{
		"":                            {Since: now.Add(-24 * time.Hour), Step: 15 * time.Minute},
		"?since=1h":                   {Since: now.Add(-time.Hour), Step: time.Minute},
		"?since=1h&step=5m":           {Since: now.Add(-time.Hour), Step: 5 * time.Minute},
		"?since=96h":                  {Since: now.Add(-96 * time.Hour), Step: time.Hour},
		"?since=9000h":                {Since: now.Add(-30 * 24 * time.Hour), Step: 6 * time.Hour},
		"?since=9000h&step=24h":       {Since: now.Add(-30 * 24 * time.Hour), Step: 24 * time.Hour},
		"?since=2026-11-27T11:00:00Z": {Since: now.Add(-time.Hour - 30*time.Second), Step: time.Minute},
		"?until=1h": {
			Since: now.Add(-25 * time.Hour), Step: time.Hour, Until: now.Add(-time.Hour)},
		"?since=96h&until=95h": {
			Since: now.Add(-96 * time.Hour), Step: time.Hour, Until: now.Add(-95 * time.Hour)},
		"?since=2026-11-26T12:00:30Z&step=1m": {Since: now.Add(-24 * time.Hour), Step: time.Minute},
	} {
		if r.want(200, "", "GET", "/v1/routes/counts"+query, opsToken, ""); !ledger.asked.Since.Equal(want.Since) ||
			ledger.asked.Step != want.Step || !ledger.asked.Until.Equal(want.Until) || !ledger.asked.Times {
			t.Errorf("%q asks for %+v, want %+v", query, ledger.asked, want)
		}
	}
	if r.want(200, "", "GET", "/v1/routes/counts?latency=false", opsToken, ""); ledger.asked.Times {
		t.Error("times are read that are left out")
	}
	for _, query := range []string{
		"?step=90s", "?step=0s", "?step=-1m", "?step=48h", "?since=48h&step=1m", "?since=48h&step=90m", "?since=soon",
		"?step=x", "?since=1h&until=2h", "?latency=x"} {
		r.want(400, "bad_request", "GET", "/v1/routes/counts"+query, opsToken, "")
	}
	r.want(403, "forbidden", "GET", "/v1/routes/counts", stripeToken, "")
	r.api.options.Ledger = unreachable{}
	r.want(503, "store_unavailable", "GET", "/v1/routes/counts", opsToken, "")
}
