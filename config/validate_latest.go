package config

import (
	"slices"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

const maxQuiet = time.Hour

// checkLatest checks lock.strategy latest. Whether the preset's events are states is for
// Source.CheckRoute.
func (v *validator) checkLatest(path string, r *Route) {
	l, usual, lock := &r.Lock, defaultRoute().Lock, path+".lock"
	if l.Strategy != idem.Latest {
		const other = "lock.strategy is not latest"
		v.warnIdle(lock+".quiet", l.Quiet != usual.Quiet, other)
		v.warnIdle(lock+".max_wait", l.MaxWait != usual.MaxWait, other)
		return
	}
	v.require(l.Limit <= 1, lock+".limit", "%d, and under lock.strategy latest one event of a workflow runs while "+
		"the newest waits; take one of them out", l.Limit)
	v.require(l.MaxWaiting > 1, lock+".max_waiting",
		"%d: under lock.strategy latest a newer one arrives while the other still waits; choose 2 or more",
		l.MaxWaiting)
	v.requireDuration(lock+".quiet", l.Quiet, 0, maxQuiet)
	v.latestOrder(path, r)
	if l.Quiet <= 0 {
		v.warnIdle(lock+".max_wait", l.MaxWait != usual.MaxWait,
			"lock.quiet is 0s: the newest runs when the lock is free")
		return
	}
	v.require(l.MaxWait >= l.Quiet && l.MaxWait <= maxRetention, lock+".max_wait",
		"%s is out of bounds; choose from lock.quiet (%s) to %s",
		idem.DurationText(l.MaxWait), idem.DurationText(l.Quiet), idem.DurationText(maxRetention))
	v.require(l.WaitTimeout > l.Quiet || r.Park.Enabled, lock+".wait_timeout",
		"%s ends before lock.quiet (%s), so nothing would run; make it longer, or say park: true",
		idem.DurationText(l.WaitTimeout), idem.DurationText(l.Quiet))
}

// latestOrder warns if an event would replace one that is about something else, as far as the
// order's scope says what an event is about.
func (v *validator) latestOrder(path string, r *Route) {
	if !r.Order.Asked() || r.Order.Scope == "" {
		return
	}
	workflow := sourcesOf(r.Workflow)
	for _, s := range sourcesOf(r.Order.Scope) {
		if s.Kind != naming.SourceLiteral && !slices.ContainsFunc(workflow, func(o naming.Source) bool {
			return o.Text == s.Text
		}) {
			v.warn(path+".order.scope", "has {%s}, and the workflow has not: of one workflow then as many wait as "+
				"there are scopes, each the newest of its own; "+
				"name {%s} in the workflow, too, so that they do not wait for each other", s.Text, s.Text)
			return
		}
	}
}
