package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/idem"
)

const (
	// countsSince is how far back counts go if the request does not say.
	countsSince = 24 * time.Hour
	// maxCountSteps bounds the steps of one answer.
	maxCountSteps = 1440
)

// getCounts returns the counts of each route, over all replicas and all workflows.
func (c *call) getCounts() error {
	q, err := c.countQuery()
	if err != nil {
		return err
	}
	ctx, done := c.readContext()
	defer done()
	hour, err := c.api.options.Ledger.Counts(ctx,
		idem.CountQuery{Since: c.api.options.Now().Add(-time.Hour), Step: time.Minute})
	if err != nil {
		return err
	}
	h, err := c.api.options.Ledger.Counts(ctx, q)
	if err != nil {
		return err
	}
	list := client.CountList{
		Since: client.Time{Time: h.Since}, Until: client.Time{Time: h.Until}, StepSeconds: h.Step.Seconds(),
		Routes: []client.RouteCounts{}}
	for _, r := range c.api.options.Process.Routes() { // also those without deliveries
		if !slices.ContainsFunc(h.Routes, func(one idem.RouteHistory) bool { return one.Route == r.Route }) {
			h.Routes = append(h.Routes, idem.RouteHistory{RouteCounts: idem.RouteCounts{Route: r.Route}})
		}
	}
	slices.SortStableFunc(h.Routes, func(a, b idem.RouteHistory) int { return strings.Compare(a.Route, b.Route) })
	for i := range h.Routes {
		view := viewOfCounts(&h.Routes[i])
		isSame := func(r idem.RouteHistory) bool { return r.Route == view.Route }
		if at := slices.IndexFunc(hour.Routes, isSame); at >= 0 {
			view.PerMinute = float64(hour.Routes[at].Counts[idem.CountDeliveries]) / time.Hour.Minutes()
		}
		list.Routes = append(list.Routes, view)
	}
	return c.respond(http.StatusOK, list)
}

// countQuery reads since, until, step and latency.
func (c *call) countQuery() (q idem.CountQuery, err error) {
	now := c.api.options.Now()
	if q.Since, q.Until, err = c.readPeriod(c.query("since"), c.query("until")); err != nil {
		return q, err
	}
	end := now
	if !q.Until.IsZero() && q.Until.Before(now) {
		end = q.Until
	}
	switch text := c.query("latency"); text {
	case "", "true", "false":
		q.Times = text != "false"
	default:
		return q, refuse("bad_request", "latency="+quoteText(text)+": give true or false")
	}
	if q.Since.IsZero() {
		q.Since = end.Add(-countsSince)
	}
	if oldest := now.Add(-idem.HourRetention); q.Since.Before(oldest) {
		q.Since = oldest
	}
	whole := time.Minute
	if now.Sub(q.Since.Truncate(time.Hour)) > idem.MinuteRetention+time.Hour {
		whole = time.Hour
	}
	text := c.query("step")
	if text == "" {
		for _, q.Step = range []time.Duration{time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour} {
			if q.Step%whole == 0 && end.Sub(q.Since) <= q.Step*100 {
				break
			}
		}
		return q, nil
	}
	if q.Step, err = time.ParseDuration(text); err != nil || q.Step < whole || q.Step%whole != 0 ||
		q.Step > 24*time.Hour {
		return q, refuse("bad_request", "step="+quoteText(
			text)+": give whole minutes, such as 15m, or whole hours where "+
			"since is more than 24h ago; up to 24h")
	}
	if end.Sub(q.Since) > q.Step*maxCountSteps {
		return q, refuse("bad_request", fmt.Sprintf("step=%s: that is more than %d steps; give a longer step, or a "+
			"later since", quoteText(text), maxCountSteps))
	}
	return q, nil
}

func viewOfCounts(r *idem.RouteHistory) client.RouteCounts {
	view := client.RouteCounts{
		Route: r.Route, Total: numbersOf(&r.Counts), P50Seconds: r.Took.Quantile(0.5).Seconds(),
		P95Seconds: r.Took.Quantile(0.95).Seconds(), LastAt: client.Time{Time: r.Last},
		Steps: []client.CountStep{},
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		view.Steps = append(view.Steps, client.CountStep{
			At: client.Time{Time: s.At}, Counts: numbersOf(&s.Counts),
			P50Seconds: s.Took.Quantile(0.5).Seconds(), P95Seconds: s.Took.Quantile(0.95).Seconds(),
		})
	}
	return view
}

func numbersOf(c *idem.Counts) client.Counts {
	n := func(kind idem.CountKind) int64 { return int64(min(c[kind], 1<<53)) } //nolint:gosec // bounded here
	return client.Counts{
		Deliveries: n(idem.CountDeliveries), Succeeded: n(idem.CountSucceeded), Failed: n(idem.CountFailed),
		Errors: n(idem.CountErrors), Parked: n(idem.CountParked), Duplicates: n(idem.CountDuplicates),
		Busy: n(idem.CountBusy), BadSignatures: n(idem.CountBadSignatures),
		Refused: n(idem.CountRefused), DeadLetters: n(idem.CountDeadLetters), Changed: n(idem.CountChanged),
	}
}
