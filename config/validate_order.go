package config

import (
	"slices"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// checkOrder checks the route alone; whether the preset knows an order is for Source.CheckRoute.
func (v *validator) checkOrder(path string, r *Route, pattern *naming.Pattern) {
	o, usual := &r.Order, defaultRoute().Order
	if !o.Asked() {
		const off = "order.by is empty, and order.preset is false"
		v.warnIdle(path+".scope", o.Scope != usual.Scope, off)
		v.warnIdle(path+".unit", o.Unit != usual.Unit, off)
		v.warnIdle(path+".on_stale", o.OnStale != usual.OnStale, off)
		return
	}
	v.require(r.Lock.Strategy != idem.NoLock, path,
		"needs a lock: with lock.strategy none two events of a scope run at once, and none is before the other; "+
			"choose another strategy, or leave order out")
	if o.Preset {
		v.require(r.Preset != "", path+".preset",
			`is true, and the route has no preset: give by a template such as "{body.created}"`)
		v.require(o.By == "", path+".by", "stands beside preset: true, which says it; leave out one of them")
		v.warnIdle(path+".unit", o.Unit != usual.Unit, "order.preset is true: the preset says it")
	}
	if pattern == nil {
		return
	}
	v.check(path+".by", checkTemplate(o.By, pattern))
	v.check(path+".scope", checkTemplate(o.Scope, pattern))
	v.orderScope(path, r)
}

// orderScope warns if events of one scope may have different locks: then they are not compared,
// because a high-water mark belongs to a workflow.
func (v *validator) orderScope(path string, r *Route) {
	workflow, scope, event := sourcesOf(r.Workflow), sourcesOf(r.Order.Scope), sourcesOf(r.EventID)
	for _, s := range workflow {
		here := func(o naming.Source) bool { return o.Text == s.Text }
		switch s.Kind {
		case naming.SourcePath, naming.SourceHost, naming.SourceMethod, naming.SourceRoute, naming.SourceLiteral:
			// the target of the event, not its subject
			continue
		}
		if r.Order.Scope == "" && !slices.ContainsFunc(event, here) || slices.ContainsFunc(scope, here) {
			continue
		}
		v.warn(path+".scope", "the workflow has {%s}, and the scope has not: two events of one scope with different "+
			"ones run at once, and are not held against "+
			"each other; make the lock as coarse as the scope, or name {%s} in the scope, too, where it is the same "+
			"for all of them", s.Text, s.Text)
		return
	}
}

// sourcesOf returns what a template reads. A wrong one is reported elsewhere.
func sourcesOf(template string) []naming.Source {
	t, err := naming.CompileTemplate(template)
	if err != nil {
		return nil
	}
	return t.Sources()
}
