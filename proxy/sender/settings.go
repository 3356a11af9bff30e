package sender

import (
	"strconv"
	"strings"
	"time"
)

// Word is a word of the configuration and the settings of a route that it stands for, by their paths in the file, such as
// lock.strategy. Lists are between commas.
type Word struct {
	Name     string
	Aliases  []string
	Settings map[string]string
}

// ExtractedID is the event_id of a preset whose ID no template can read.
const ExtractedID = "{preset}"

// PresetWords are the values of a route's preset, without the tolerance: that follows the scheme.
func PresetWords() []Word {
	var words []Word
	for _, p := range Presets() {
		words = append(words, Word{p.Name, p.Aliases, p.settings()})
	}
	return words
}

// SchemeWords are the values of a route's verify.scheme.
func SchemeWords() []Word {
	var words []Word
	for _, name := range Schemes() {
		w := Word{Name: name, Settings: map[string]string{}}
		if p, ok := Lookup(name); ok {
			w.Aliases = p.Aliases
		}
		if tolerance := DefaultTolerance(name); tolerance > 0 {
			w.Settings["verify.tolerance"] = duration(tolerance)
		}
		words = append(words, w)
	}
	return words
}

func (p *Preset) settings() map[string]string {
	s := map[string]string{
		"event_id": p.EventID, "on_missing_event_id": p.OnMissing, "verify.scheme": p.Scheme,
		"idempotency.on_mismatch": p.OnMismatch, "idempotency.in_flight": p.InFlight, "idempotency.retention": duration(p.Retention),
		"lock.strategy": p.Strategy,
	}
	if p.EventID == "" {
		s["event_id"] = ExtractedID
	}
	if p.Strategy == strategyWait {
		s["lock.wait_timeout"] = duration(p.WaitTimeout)
	}
	if len(p.Methods) > 0 {
		s["match.methods"] = strings.Join(p.Methods, ",")
	}
	for decision, status := range p.Respond {
		s["respond."+string(decision)] = strconv.Itoa(status)
	}
	return s
}

// duration is d without the empty tail that Duration.String puts on: 168h, not 168h0m0s.
func duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
