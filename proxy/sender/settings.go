package sender

import (
	"maps"
	"strconv"
	"strings"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// Word is a word of the configuration, and the settings of a route that it implies by their paths,
// such as lock.strategy. Lists are separated by commas.
type Word struct {
	Name     string
	Aliases  []string
	Settings map[string]string
}

// PresetWords returns the values of the setting preset. They lack the tolerance, which belongs to
// the scheme.
func PresetWords() []Word {
	var words []Word
	for _, p := range Presets() {
		words = append(words, Word{p.Name, p.Aliases, p.settingsByName()})
	}
	return words
}

// SchemeWords returns the values of the setting verify.scheme.
func SchemeWords() []Word {
	var words []Word
	for _, name := range Schemes() {
		w := Word{Name: name, Settings: map[string]string{}}
		if p, ok := Lookup(name); ok {
			w.Aliases = p.Aliases
		}
		if tolerance := DefaultTolerance(name); tolerance > 0 {
			w.Settings["verify.tolerance"] = idem.DurationText(tolerance)
		}
		words = append(words, w)
	}
	return words
}

func (p *Preset) settingsByName() map[string]string {
	s := map[string]string{
		"event_id": p.EventID, "on_missing_event_id": string(p.OnMissing), "verify.scheme": p.Scheme,
		"idempotency.on_mismatch": string(p.OnMismatch), "idempotency.in_flight": string(p.InFlight),
		"idempotency.retention": idem.DurationText(p.Retention),
		"lock.strategy":         string(p.Strategy),
	}
	if p.EventID == "" {
		s["event_id"] = naming.EventIDOfPreset
	}
	if p.NoID {
		s = map[string]string{"verify.scheme": p.Scheme, "idempotency.enabled": "false",
			"lock.strategy": string(p.Strategy)}
	}
	if p.PayloadRetention > 0 {
		s["idempotency.payload_retention"] = idem.DurationText(p.PayloadRetention)
	}
	if p.Strategy == idem.Wait {
		s["lock.wait_timeout"] = idem.DurationText(p.WaitTimeout)
	}
	if p.Facts.UsesAnswer != nil && p.Facts.RetriesFor > 0 {
		s["idempotency.replay_retention"] = idem.DurationText(p.Facts.RetriesFor)
	}
	maps.Copy(s, p.Facts.parkSettings())
	if len(p.Methods) > 0 {
		s["match.methods"] = strings.Join(p.Methods, ",")
	}
	for name, value := range map[string]string{
		"method": p.Rule.Method, "when": strings.Join(p.Rule.When, ","), "token": p.Rule.TokenAt,
		"answer": p.Rule.Answer, "content_type": p.Rule.ContentType,
		"header": p.Rule.Header,
	} {
		if value != "" {
			s["handshake."+name] = value
		}
	}
	if p.Rule.Unsigned {
		s["handshake.unsigned"] = "true"
	}
	for decision, status := range p.Respond {
		s["respond."+string(decision)] = strconv.Itoa(status)
	}
	for name, template := range p.Labels {
		s["labels."+name] = template
	}
	return s
}
