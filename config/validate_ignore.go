package config

import (
	"fmt"
	"slices"

	"hooklock/idem/naming"
)

// ignore checks the members that a route leaves out. To leave out the whole body is refused where
// the payload is the key: then each delivery would be the same event.
func (v *validator) ignore(path string, r *Route) {
	_, err := naming.CompileIgnored(r.Ignore)
	v.check(path, err)
	for i, name := range r.Ignore {
		at := fmt.Sprintf("%s[%d]", path, i)
		v.require(!slices.Contains(r.Ignore[:i], name), at, "%s is given twice", name)
		if name != "*" || !r.Idempotency.Enabled {
			continue
		}
		v.require(r.OnMissingEventID != naming.MissingPayload, at,
			"* leaves out the whole body, and on_missing_event_id is payload: deliveries "+
				"without an event ID would all be one event; name the members that change, or say on_missing_event_id: "+
				"reject or run")
		v.require(!readsFingerprint(r.EventID), at, "* leaves out the whole body, and event_id has {fingerprint}: "+
			"all deliveries would be one event; name the members that change")
	}
}

func readsFingerprint(template string) bool {
	t, err := naming.CompileTemplate(template)
	return err == nil && slices.ContainsFunc(t.Sources(), func(s naming.Source) bool {
		return s.Kind == naming.SourceFingerprint
	})
}
