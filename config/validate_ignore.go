package config

import (
	"fmt"
	"slices"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// checkIgnore checks the members that a route leaves out. To leave out the whole body is refused
// where the payload is the key: then each delivery would be the same event.
func (v *validator) checkIgnore(path string, r *Route) {
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

// checkTwins warns where no event can have a twin, and refuses to make twins one event there.
func (v *validator) checkTwins(path string, r *Route) {
	t, usual := &r.Twins, defaultRoute().Twins
	if t.Mode == TwinsOff {
		v.warnIdle(path+".window", t.Window != usual.Window, "twins.mode is off")
		return
	}
	v.require(t.Window > 0 && t.Window <= maxTwinsWindow, path+".window",
		"%s is out of bounds; choose up to %s, or say "+
			"twins: off", idem.DurationText(t.Window), idem.DurationText(maxTwinsWindow))
	why := noTwins(r)
	if t.Mode != TwinsSame {
		v.warnIdle(path, why != "" && *t != usual, why)
		return
	}
	v.require(why == "", path, "same_event cannot work: %s; say twins: report", why)
	v.require(r.EventID != naming.EventIDOfPreset, path,
		"same_event cannot work: only the preset can read the event ID, so "+
			"that the body cannot be compared without it; say twins: report, or give event_id as a template")
	v.require(t.Window <= r.Idempotency.Retention, path+".window", "%s is longer than idempotency.retention, %s: the "+
		"first event would be forgotten before", idem.DurationText(t.Window),
		idem.DurationText(r.Idempotency.Retention))
}

// noTwins says why no event of r can have a twin; "" = it can.
func noTwins(r *Route) string {
	switch {
	case !r.Idempotency.Enabled:
		return "idempotency.enabled is false: event IDs are not read"
	case r.EventID == "":
		return "event_id is empty: equal bodies are one event"
	case readsFingerprint(r.EventID):
		return "event_id has {fingerprint}: equal bodies are one event"
	case hasSourceOf(r.EventID, naming.SourceBodySHA256):
		return "event_id has {body_sha256}: the body is part of the ID"
	case slices.Contains(r.Ignore, "*"):
		return "ignore has *, so that nothing of the body counts"
	case isInWorkflow(r):
		return "workflow has all that event_id reads: two IDs are two workflows"
	}
	return ""
}

// isInWorkflow reports whether the workflow of r reads all that its event ID does.
func isInWorkflow(r *Route) bool {
	id, err := naming.CompileTemplate(r.EventID)
	workflow, bad := naming.CompileTemplate(r.Workflow)
	return err == nil && bad == nil && !slices.ContainsFunc(id.Sources(), func(s naming.Source) bool {
		return !slices.ContainsFunc(workflow.Sources(), func(w naming.Source) bool { return w.Text == s.Text })
	})
}

// maxTwinsWindow is the longest time after which two events may count as twins.
const maxTwinsWindow = 24 * time.Hour

func readsFingerprint(template string) bool { return hasSourceOf(template, naming.SourceFingerprint) }

func hasSourceOf(template string, kind naming.SourceKind) bool {
	t, err := naming.CompileTemplate(template)
	return err == nil && slices.ContainsFunc(t.Sources(), func(s naming.Source) bool { return s.Kind == kind })
}
