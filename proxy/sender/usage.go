package sender

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// Usage is how a route takes the deliveries of a sender, as far as what is known of senders has an opinion on it.
type Usage struct {
	Preset    *Preset // nil without one
	Signature Config
	// Readable: the secrets and keys that the route names were read. Else nothing is said of them.
	Readable  bool
	Handshake HandshakeRule
	// EventID is the template.
	EventID string

	// OrderBy is the template of where an event stands among the others; empty: nobody looks. OrderOfPreset: it is the preset's. KeepsBack: what is
	// older does not run.
	OrderBy                  string
	OrderOfPreset, KeepsBack bool

	Idempotency bool // one execution per event
	Retention   time.Duration
	Strategy    idem.Strategy
	WaitTimeout time.Duration
	// UpstreamTimeout is how long the service may take.
	UpstreamTimeout time.Duration
	// ParksSlow reports whether the sender gets a 2xx in time although the service has not answered.
	ParksSlow bool
	// MaxBody is the longest body that is taken, in bytes.
	MaxBody int64
}

// Remark says what is wrong, or odd, with a setting of a route, by its path inside of the route.
type Remark struct{ Path, Text string }

// Problems are what keeps a route from working.
func (u *Usage) Problems() []Remark {
	var all []Remark
	if u.EventID == naming.EventIDOfPreset && (u.Preset == nil || u.Preset.ExtractID == nil) {
		all = append(all, Remark{"event_id", `"{preset}" needs a preset that reads the ID itself; give a template such as "{body.id}"`})
	}
	if u.OrderOfPreset && u.Preset != nil && u.Preset.Order == "" {
		all = append(all, Remark{"order.preset", "is true, and of " + u.Preset.Name + ` it is not established where an event stands among the others; give order.by a template such as "{body.created}"`})
	}
	if !u.Readable {
		return all
	}
	if _, err := New(u.Signature); err != nil {
		return append(all, Remark{"verify", err.Error()})
	}
	if _, err := NewHandshake(u.Handshake, u.Signature); err != nil {
		all = append(all, Remark{"handshake", err.Error()})
	}
	return all
}

// Warnings are what is allowed and most likely not meant.
func (u *Usage) Warnings() []Remark {
	var all []Remark
	warn := func(path, format string, args ...any) { all = append(all, Remark{path, fmt.Sprintf(format, args...)}) }
	if u.Signature.Scheme != noScheme {
		u.warnSignature(warn)
	}
	if u.Preset != nil {
		u.warnTimes(warn)
		u.warnSize(warn)
		u.warnLatest(warn)
	}
	if u.OrderBy != "" && u.KeepsBack {
		u.warnOrder(warn)
	}
	return all
}

// warnSignature looks at what the signature leaves open.
func (u *Usage) warnSignature(warn func(path, format string, args ...any)) {
	covers, c, documented := Covers(u.Signature), &u.Signature, DefaultTolerance(u.Signature.Scheme)
	switch {
	case covers.Time && c.Tolerance == 0 && documented > 0:
		warn("verify.tolerance", "0s: no age check, so that whoever captured a delivery can send it again for ever; %s documents %s", c.Scheme, documented)
	case c.Timestamp != "" && c.Tolerance == 0:
		warn("verify.timestamp", "has no effect without a tolerance: no age is checked; set verify.tolerance to what the sender documents, often 5m")
	case !covers.Time && c.Tolerance > 0 && c.Tolerance != documented:
		warn("verify.tolerance", "has no effect: no time is signed")
	}
	u.warnUnread(warn)
	if u.Readable && u.Idempotency {
		if name := covers.Uncovered(u.EventID, u.Preset); name != "" {
			warn("event_id", "{%s} is not signed: duplicates are found, but whoever captured a delivery can send it again under another ID", name)
		}
	}
}

// warnUnread tells of what neither the scheme nor an {hmac.…} of the handshake reads: what they read, they do not take as nonsense.
func (u *Usage) warnUnread(warn func(path, format string, args ...any)) {
	if !u.Readable {
		return
	}
	c := &u.Signature
	for _, setting := range []struct {
		path, what string
		given      bool
		spoil      func(*Config)
	}{
		{"verify.algorithm", "", c.Algorithm != "", func(c *Config) { c.Algorithm = "?" }},
		{"verify.public_url", "", c.PublicURL != "", func(c *Config) { c.PublicURL = "?" }},
		{"verify.webhook_id", "", c.WebhookID != "", func(c *Config) { c.WebhookID = "" }},
		{"verify", "its secret ", len(c.Secrets) > 0, func(c *Config) { c.Secrets = [][]byte{nil} }},
		{"verify", "its public key ", len(c.PublicKeys) > 0, func(c *Config) { c.PublicKeys = [][]byte{nil} }},
	} {
		if !setting.given {
			continue
		}
		spoiled := *c
		setting.spoil(&spoiled)
		_, err := New(spoiled)
		if _, alsoErr := NewHandshake(u.Handshake, spoiled); err == nil && alsoErr == nil {
			warn(setting.path, "%shas no effect: verify.scheme %s does not read it", setting.what, c.Scheme)
		}
	}
}

// warnTimes compares the route with what its sender does.
func (u *Usage) warnTimes(warn func(path, format string, args ...any)) {
	p := u.Preset
	if u.Idempotency && u.Retention < p.Facts.RetriesFor {
		warn("idempotency.retention", "%s: %s goes on trying for %s, and a retry after the retention runs the event again", u.Retention, p.Name, p.Facts.RetriesFor)
	}
	needed, what := u.UpstreamTimeout, "upstream.timeout"
	if u.Strategy.Waits() { // not for those who wait because they were refused before, or are copies: what they wait for is there when they come again
		needed, what = needed+u.WaitTimeout, "lock.wait_timeout + upstream.timeout"
	}
	if p.Facts.Patience > 0 && needed > p.Facts.Patience && !u.ParksSlow {
		warn("preset", "%s waits %s for an answer, and %s is %s: it may hang up before; the outcome is recorded all the same", p.Name, p.Facts.Patience, what, needed)
	}
}

// warnSize: a body that is too long is too long each time it comes.
func (u *Usage) warnSize(warn func(path, format string, args ...any)) {
	if f := &u.Preset.Facts; f.Largest > u.MaxBody {
		warn("preset", "%s sends bodies of up to %d MiB, more than limits.request_body: what is longer is 413, however often it comes; write limits: {request_body: %[2]dMiB}", u.Preset.Name, f.Largest>>20)
	}
}

// warnLatest: what is replaced never runs, which loses nothing where the newest event says all that those before it said.
func (u *Usage) warnLatest(warn func(path, format string, args ...any)) {
	if u.Strategy == idem.Latest && !u.Preset.Facts.States {
		warn("lock.strategy", "latest: events of %s are facts, as far as is known, and not states: one that is replaced says something that the newer one does not repeat, "+
			"and never runs; say wait, or park: true, unless the service reads the state itself whenever an event comes", u.Preset.Name)
	}
}

// warnOrder: whoever can say where an event stands can put one before all that follow, so that they do not run.
func (u *Usage) warnOrder(warn func(path, format string, args ...any)) {
	if u.Signature.Scheme == noScheme {
		warn("order.on_stale", "nothing is signed: whoever reaches the route can send an event of a far future, and what follows does not run; check signatures (verify), or say annotate")
		return
	}
	covers := Covers(u.Signature)
	if name := covers.Uncovered(u.OrderBy, nil); u.Readable && name != "" {
		warn("order.on_stale", "{%s} is not signed: whoever captured a delivery can send it again with a far future, and what follows does not run; say on_stale: annotate", name)
	}
}

// Uncovered is the first source of an event ID that is not covered, empty if there is none. p is the preset that reads it where the template leaves
// it to one; nil without one.
func (c *Coverage) Uncovered(template string, p *Preset) string {
	if template == naming.EventIDOfPreset {
		if p != nil {
			if i := slices.IndexFunc(p.IDHeaders, func(h string) bool { return !c.header(h) }); i >= 0 {
				return "header." + p.IDHeaders[i]
			}
		}
		return ""
	}
	t, err := naming.CompileTemplate(template)
	if err != nil {
		return "" // reported already
	}
	for _, s := range t.Sources() {
		covered := true
		switch s.Kind {
		case naming.SourceHeader:
			covered = c.header(s.Name) || slices.Contains(c.Sources, s.Text)
		case naming.SourcePath:
			covered = c.URL
		case naming.SourceQuery:
			covered = c.URL || slices.Contains(c.Sources, s.Text)
		case naming.SourceBody, naming.SourceForm, naming.SourceXML:
			covered = c.Body || !c.parts() || slices.Contains(c.Sources, s.Text)
		}
		if !covered {
			return s.Text
		}
	}
	return ""
}

// parts reports whether single parts of a delivery are covered that are known by name. Of others, such as a token's, nothing is said.
func (c *Coverage) parts() bool { return len(c.Sources) > 0 || len(c.Headers) > 0 }

func (c *Coverage) header(name string) bool {
	return slices.ContainsFunc(c.Headers, func(h string) bool { return strings.EqualFold(h, name) })
}

// Open is what whoever captured a delivery could change in it. A signature that does not cover the body covers nothing that tells one delivery
// from another.
func (c *Coverage) Open() naming.Open {
	if !c.Body {
		return naming.Open{}
	}
	return naming.Open{Method: !c.Method, Host: !c.header("host"), Target: !c.URL}
}
