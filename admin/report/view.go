package report

import (
	"time"

	"hooklock/idem"
)

// Report is what GET /v1/report answers.
type Report struct {
	// Replica is the process that counted. Others have counted their own deliveries.
	Replica   string `json:"replica"`
	StartedAt Time   `json:"startedAt"`
	// Since is the start of its counts: what was asked for, rounded down to Step, but not before StartedAt and no longer ago than Kept.
	Since  Time         `json:"since"`
	Until  Time         `json:"until"`
	Routes []RouteCount `json:"routes"`
}

// RouteCount is what was found on one route.
type RouteCount struct {
	Route      string  `json:"route"`
	Mode       string  `json:"mode"`
	Deliveries uint64  `json:"deliveries"`
	Stale      Finding `json:"staleEvents"`
	Duplicates Finding `json:"duplicates"`
	Overlaps   Finding `json:"overlaps"`
	Mismatches Finding `json:"mismatches"`
	MissingIDs Finding `json:"missingEventIds"`
	Forged     Finding `json:"forged"`
	Unnamed    Finding `json:"unnamed"`
	// Changing is nil if no sender was seen to change an event between attempts.
	Changing *Changing `json:"changing,omitempty"`
}

// Finding is how often something was found, with the newest examples.
type Finding struct {
	Count    uint64    `json:"count"`
	Examples []Example `json:"examples"`
}

// Example is one delivery.
type Example struct {
	noted    time.Time     // by the clock of the tally
	At       Time          `json:"at"`
	Decision idem.Decision `json:"decision"`
	// Carried: the decision was carried out. Otherwise the delivery was forwarded.
	Carried   bool             `json:"carriedOut"`
	Key       string           `json:"key,omitempty"` // short, as in the log
	Workflow  string           `json:"workflow,omitempty"`
	Execution idem.ExecutionID `json:"executionId,omitempty"` // the execution that stood in the way
	Code      string           `json:"code,omitempty"`
	Signature string           `json:"signature,omitempty"`
	Status    int              `json:"status,omitempty"` // the status sent in response
	TraceID   string           `json:"traceId,omitempty"`
}

// Time is a moment as the API writes it: RFC 3339 with milliseconds, in UTC.
type Time time.Time

const layout = "2006-01-02T15:04:05.000Z07:00"

// MarshalText implements encoding.TextMarshaler.
func (t Time) MarshalText() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, layout), nil
}

// Report returns what was found since then, by the clock as it is set now. The zero time means everything that is kept.
func (t *Tally) Report(since time.Time) Report {
	shown, now := t.now(), t.clock()
	set := shown.Round(0).Sub(now).Round(time.Minute) // by how much it was set since the start; less does not show in the steps
	since = since.Add(-set)
	if oldest := now.Add(-Kept + Step); since.Before(oldest) {
		since = oldest
	}
	since = since.Truncate(Step)
	if since.Before(t.started) {
		since = t.started
	}
	from, to := since.UnixNano()/int64(Step), now.UnixNano()/int64(Step)
	t.mu.RLock()
	defer t.mu.RUnlock()
	r := Report{Replica: t.replica, StartedAt: Time(t.started), Since: Time(since.Add(set)), Until: Time(shown), Routes: []RouteCount{}}
	for _, name := range t.order {
		c := t.routes[name].count(since, from, to)
		c.Route, c.Mode = name, t.modes[name]
		r.Routes = append(r.Routes, c)
	}
	return r
}

func (r *route) count(since time.Time, from, to int64) RouteCount {
	r.mu.Lock()
	defer r.mu.Unlock()
	finding := func(k Kind) Finding { return Finding{r.found[k].since(from, to), r.examples[k].since(since)} }
	return RouteCount{
		Deliveries: r.all.since(from, to), Stale: finding(Stale), Duplicates: finding(Duplicate), Overlaps: finding(Overlap), Mismatches: finding(Mismatch),
		MissingIDs: finding(MissingID), Forged: finding(Forged), Unnamed: finding(Unnamed),
		Changing: r.attempts.since(since),
	}
}
