package config

import (
	"fmt"
	"slices"
	"time"

	"hooklock/idem"
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
				"without an event ID would all be one event; name the members that change, or say "+
				"on_missing_event_id: reject or run")
		v.require(!readsFingerprint(r.EventID), at, "* leaves out the whole body, and event_id has {fingerprint}: "+
			"all deliveries would be one event; name the members that change")
	}
}

// twins warns where no event can have a twin.
func (v *validator) twins(path string, r *Route) {
	t, usual := &r.Twins, defaultRoute().Twins
	if t.Mode == TwinsOff {
		v.warnIdle(path+".window", t.Window != usual.Window, "twins.mode is off")
		return
	}
	v.require(t.Window > 0 && t.Window <= maxTwinsWindow, path+".window",
		"%s is out of bounds; choose up to %s, or say "+
			"twins: off", idem.DurationText(t.Window), idem.DurationText(maxTwinsWindow))
	switch said := *t != usual; {
	case !r.Idempotency.Enabled:
		v.warnIdle(path, said, "idempotency.enabled is false: event IDs are not read")
	case readsFingerprint(r.EventID):
		v.warnIdle(path, said, "event_id has {fingerprint}: equal bodies are one event")
	case slices.Contains(r.Ignore, "*"):
		v.warnIdle(path, said, "ignore has *, so that nothing of the body counts")
	}
}

// maxTwinsWindow is the longest time after which two events may count as twins.
const maxTwinsWindow = 24 * time.Hour

func readsFingerprint(template string) bool {
	t, err := naming.CompileTemplate(template)
	return err == nil && slices.ContainsFunc(t.Sources(), func(s naming.Source) bool {
		return s.Kind == naming.SourceFingerprint
	})
}
