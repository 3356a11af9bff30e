package sender

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"hooklock/idem/naming"
)

// Recognized is a sender that deliveries look like.
type Recognized struct {
	Preset *Preset
	Header string // that only it sends
	Count  int    // deliveries that have it
}

// Recognize returns the sender that deliveries look like, by two headers that no other one sends,
// or the only one; nil without one. count returns how many of the deliveries have a header, whose
// name is in lower case.
func Recognize(deliveries int, count func(header string) int) *Recognized {
	for _, name := range slices.Sorted(maps.Keys(marks())) {
		headers, met, first := marks()[name], 0, ""
		for _, header := range headers {
			if n := count(header); n > 0 && n*20 >= deliveries*19 {
				met++
				if first == "" || n > count(first) {
					first = header
				}
			}
		}
		if p, ok := Lookup(name); ok && met > 0 && met >= min(2, len(headers)) {
			return &Recognized{Preset: p, Header: first, Count: count(first)}
		}
	}
	return nil
}

// marks are the headers that deliveries of one sender alone have, by its preset; several presets of
// one scheme count as that of its name.
var marks = sync.OnceValue(func() map[string][]string {
	owners := map[string][]string{}
	for _, p := range listed() {
		owner := p.Name
		if other, ok := Lookup(p.Scheme); ok {
			owner = other.Name
		}
		for _, header := range p.headerNames() {
			if !slices.Contains(owners[header], owner) {
				owners[header] = append(owners[header], owner)
			}
		}
	}
	found := map[string][]string{}
	for _, header := range slices.Sorted(maps.Keys(owners)) {
		if names := owners[header]; len(names) == 1 && !isCommon(header) {
			found[names[0]] = append(found[names[0]], header)
		}
	}
	return found
})

// isCommon reports whether senders of which nothing is known may have a header, too.
func isCommon(header string) bool {
	return slices.Contains([]string{"content-type", "user-agent", "authorization", "idempotency-key", "x-request-id",
		"x-request-uuid", "request-id", "x-timestamp", "x-signature", "x-event-id", "x-event-key", "x-hook-uuid",
		"x-webhook-id", "x-hub-signature",
		"x-hub-signature-256", "x-hook-signature", "signature", "date", "digest"}, header)
}

// headerNames returns the headers of a sample, and those that the event ID is read from, in lower
// case.
func (p *Preset) headerNames() (all []string) {
	for _, h := range p.IDHeaders {
		all = append(all, strings.ToLower(h))
	}
	if t, err := naming.CompileTemplate(p.EventID); err == nil {
		for _, s := range t.Sources() {
			if s.Kind == naming.SourceHeader {
				all = append(all, strings.ToLower(s.Name))
			}
		}
	}
	option := Unsigned()
	if p.key == keySecret {
		option = func(*sample) {}
	}
	if s, err := Sample(p.Name, []byte("secret"), time.Unix(1767225600, 0), option); err == nil {
		for _, f := range s.Fields {
			all = append(all, strings.ToLower(string(f.Name)))
		}
	}
	return all
}
