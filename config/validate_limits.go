package config

import (
	"slices"
	"strings"

	"hooklock/idem"
	"hooklock/idem/naming"
)

const (
	maxSlots     = 10_000 // of one limit: each slot waiter reads them
	maxUses      = 8      // limits of one route: each makes its transactions longer
	maxLimitName = 256
)

// SharedLimits are numbers of executions by the names of their limits.
type SharedLimits map[string]int

func (v *validator) checkSharedLimits() {
	shared := v.config.Limits.Shared
	for _, name := range sortedKeys(shared) {
		path := namedPath("limits.shared", name)
		v.requireNumber(path, shared[name], maxSlots)
		v.limitName(path, name)
		if !slices.ContainsFunc(v.config.Routes, func(r Route) bool { return slices.Contains(r.Uses, name) }) {
			v.warn(path, "has no effect: no route has it in uses")
		}
	}
}

// limitName refuses names that could be those of other limits.
func (v *validator) limitName(path, name string) {
	text, _, templated := strings.Cut(name, "{")
	switch plain := strings.TrimRight(text, "/"); {
	case len(name) > maxLimitName:
		v.refuse(path, "is longer than %d characters", maxLimitName)
	case templated && !strings.Contains(text, "/"):
		v.refuse(path, "a name with sources begins with a word and a slash, so that no value is the name of another "+
			"limit: tenant/{path.account}")
	case plain == "" || !madeOf(plain, lowerCase+digits+"-/"):
		v.refuse(path, "a name is made of a-z, 0-9, - and /, and sources in braces after that")
	}
	if templated {
		_, err := naming.CompileTemplate(name)
		v.check(path, err)
	}
}

func (v *validator) checkUses(path string, r *Route, pattern *naming.Pattern) {
	if len(r.Uses) > 0 && r.Idempotency.Enabled && r.OnMissingEventID == naming.MissingPass {
		v.warn(path, "on_missing_event_id is pass: a delivery without an event ID is forwarded without a lock, and "+
			"counts against none of these limits")
	}
	v.require(len(r.Uses) <= maxUses, path, "has %d limits; at most %d", len(r.Uses), maxUses)
	for i, name := range r.Uses {
		at := indexedPath(path, i)
		if _, known := v.config.Limits.Shared[name]; !known {
			v.refuse(at, "%q is not in limits.shared; add it there with its number, or take it out here", name)
			continue
		}
		v.require(!slices.Contains(r.Uses[:i], name), at, "%s is given twice", name)
		if pattern != nil && strings.Contains(name, "{") {
			v.check(at, checkTemplate(name, pattern))
		}
	}
}

func (v *validator) lockLimit(path string, r *Route) {
	l := &r.Lock
	path += ".limit"
	v.requireNumber(path, l.Limit, maxSlots)
	switch {
	case l.Limit <= 1:
	case l.Strategy == idem.NoLock:
		v.refuse(path, "%d, and lock.strategy none bounds nothing; take one of them out", l.Limit)
	default:
		v.warn(path, "is %d: up to %d events of a workflow run at a time and may end in another order than they "+
			"came, and the upstream gets no fencing token, "+
			"only Hooklock-Slot", l.Limit, l.Limit)
		if r.Park.Enabled && r.Park.OnFailure == idem.FailureHold {
			v.warn(path, "is %d, and park.on_failure is hold: an event that may not be tried again waits for a "+
				"person, and the others of its workflow run", l.Limit)
		}
	}
}
