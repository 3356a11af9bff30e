package report

import (
	"time"

	"hooklock/admin/client"
)

// Report returns what was found since then, by the clock as it is set now. The zero time means
// everything that is kept.
func (t *Tally) Report(since time.Time) client.Report {
	shown, now := t.now(), t.clock()
	// by how much it was set since the start; less does not show in the steps
	set := shown.Round(0).Sub(now).Round(time.Minute)
	since = since.Add(-set)
	if oldest := now.Add(-keptFor + stepLength); since.Before(oldest) {
		since = oldest
	}
	since = since.Truncate(stepLength)
	if since.Before(t.started) {
		since = t.started
	}
	from, to := since.UnixNano()/int64(stepLength), now.UnixNano()/int64(stepLength)
	t.mu.RLock()
	defer t.mu.RUnlock()
	r := client.Report{
		Replica: t.replica, StartedAt: client.Time{Time: t.started}, Since: client.Time{Time: since.Add(set)},
		Until: client.Time{Time: shown}, Routes: []client.RouteReport{},
	}
	for _, name := range t.order {
		c := t.routes[name].count(since, from, to)
		c.Route, c.Mode = name, t.modes[name]
		r.Routes = append(r.Routes, c)
	}
	return r
}

func (r *route) count(since time.Time, from, to int64) client.RouteReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	finding := func(k kind) client.Finding {
		return client.Finding{Count: r.found[k].since(from, to), Examples: r.examples[k].since(since)}
	}
	return client.RouteReport{
		Deliveries: r.all.since(from, to), Stale: finding(stale), Duplicates: finding(duplicate),
		Overlaps: finding(overlap), Mismatches: finding(mismatch),
		Changed: finding(changed), Redirected: finding(redirected), Twins: finding(twin),
		MissingEventIDs: finding(missingID), Forged: finding(forged), Unnamed: finding(unnamed),
		Changing: r.attempts.since(since), WrongEventID: r.ids.since(since),
	}
}
