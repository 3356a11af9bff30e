package config

import (
	"time"

	"hooklock/idem"
)

// Twins says what happens to an event whose body came before under another event ID, within one
// route and workflow: two subscriptions of one hook, or two events that are alike.
type Twins struct {
	// report counts and names such events, and runs them; same_event takes each for a duplicate of
	// the first, whatever its ID is; off does not look. Default report.
	Mode TwinsMode `koanf:"mode"`
	// Within what time after the first of them. Default 10m.
	Window time.Duration `koanf:"window"`
}

// Order says what happens to an event that is older than the newest of its scope that went through.
type Order struct {
	// Whether the preset says by and unit. Default false.
	Preset bool `koanf:"preset"`
	// Template of an event's position among the others of its scope: a number, or a time of RFC
	// 3339. Default empty: order is not checked.
	By string `koanf:"by"`
	// Template of what such events are about, inside of the workflow. Default empty: the workflow
	// itself.
	Scope string `koanf:"scope"`
	// What a number counts: s, ms, or none (a version, a sequence). Default none.
	Unit idem.OrderUnit `koanf:"unit"`
	// annotate runs it and tells the upstream, with Hooklock-Stale, how much older it is; skip
	// answers 200 and does not run it; reject answers
	// 409. Default annotate.
	OnStale idem.OnStale `koanf:"on_stale"`
}

// Asked reports whether the order of events is checked.
func (o *Order) Asked() bool { return o.By != "" || o.Preset }
