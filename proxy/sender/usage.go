package sender

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// Usage holds the settings of a route that Problems and Warnings check.
type Usage struct {
	Preset    *Preset // may be nil
	Signature Config
	// Readable reports whether the secrets and keys of the route could be read. Otherwise they are
	// not checked.
	Readable  bool
	Handshake HandshakeRule
	// EventID is the template event_id.
	EventID string

	OrderBy       string // order.by; empty if there is no order
	OrderOfPreset bool   // the preset sets OrderBy
	KeepsBack     bool   // a stale event does not run

	Idempotency bool // one execution per event
	Retention   time.Duration
	Strategy    idem.Strategy
	WaitTimeout time.Duration
	// UpstreamTimeout is upstream.timeout.
	UpstreamTimeout time.Duration
	// ParksSlow reports whether the sender gets a 2xx in time although the service has not
	// answered.
	ParksSlow bool
	// MaxBody is the longest accepted body, in bytes.
	MaxBody int64
}

// Remark is an error or a warning about a setting of a route. Path is relative to the route.
type Remark struct{ Path, Text string }

// Problems returns the errors that keep a route from working.
func (u *Usage) Problems() []Remark {
	var all []Remark
	if u.EventID == naming.EventIDOfPreset && (u.Preset == nil || u.Preset.ExtractID == nil) {
		all = append(all, Remark{"event_id",
			`"{preset}" needs a preset that reads the ID itself; give a template such as "{body.id}"`})
	}
	if u.OrderOfPreset && u.Preset != nil && u.Preset.Order == "" {
		all = append(all, Remark{"order.preset", "is true, and the preset " + u.Preset.Name +
			` has no order; give order.by a template such as "{body.created}"`})
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

// Warnings returns remarks about settings that are allowed and most likely not intended.
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

// warnSignature warns about what the signature does not cover.
func (u *Usage) warnSignature(warn func(path, format string, args ...any)) {
	covers, c, documented := Covers(u.Signature), &u.Signature, DefaultTolerance(u.Signature.Scheme)
	switch {
	case covers.Time && c.Tolerance == 0 && documented > 0:
		warn("verify.tolerance", "0s: no age check, so a captured delivery can be sent again for ever; %s documents %s",
			c.Scheme, documented)
	case c.Timestamp != "" && c.Tolerance == 0:
		warn("verify.timestamp", "has no effect without a tolerance: no age is checked; set verify.tolerance to "+
			"what the sender documents, often 5m")
	case !covers.Time && c.Tolerance > 0 && c.Tolerance != documented:
		warn("verify.tolerance", "has no effect: no time is signed")
	}
	u.warnUnread(warn)
	if u.Readable && u.Idempotency {
		if name := covers.Uncovered(u.EventID, u.Preset); name != "" {
			warn("event_id", "{%s} is not signed: duplicates are found, but a captured delivery can be sent again "+
				"under another ID", name)
		}
	}
}

// warnUnread warns about settings that neither the scheme nor an {hmac.…} of the handshake reads.
// It finds them by replacing each with nonsense, which is rejected if the setting is read.
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

// warnTimes compares the times of the route with those of its sender.
func (u *Usage) warnTimes(warn func(path, format string, args ...any)) {
	p := u.Preset
	if u.Idempotency && u.Retention < p.Facts.RetriesFor {
		warn("idempotency.retention", "%s: %s sends again for %s, and a retry after the retention runs the event again",
			u.Retention, p.Name, p.Facts.RetriesFor)
	}
	needed, what := u.UpstreamTimeout, "upstream.timeout"
	if u.Strategy.Waits() { // duplicates and retried deliveries wait, too, but find the outcome when they come again
		needed, what = needed+u.WaitTimeout, "lock.wait_timeout + upstream.timeout"
	}
	if p.Facts.Timeout > 0 && needed > p.Facts.Timeout && !u.ParksSlow {
		warn("preset", "%s waits %s for an answer, and %s is %s: it may hang up before; the outcome is recorded all "+
			"the same", p.Name, p.Facts.Timeout, what, needed)
	}
}

// warnSize warns if the sender may send bodies that are too long, which it would send in vain again
// and again.
func (u *Usage) warnSize(warn func(path, format string, args ...any)) {
	if f := &u.Preset.Facts; f.Largest > u.MaxBody {
		warn("preset", "%s sends bodies of up to %d MiB, more than limits.request_body: what is longer is 413, "+
			"however often it comes; write limits: {request_body: %[2]dMiB}", u.Preset.Name, f.Largest>>20)
	}
}

// warnLatest warns about strategy latest if the newest event does not contain what the replaced
// ones said.
func (u *Usage) warnLatest(warn func(path, format string, args ...any)) {
	if u.Strategy == idem.Latest && !u.Preset.Facts.States {
		warn("lock.strategy", "latest: events of %s are not known to be states: a replaced one never runs, and the "+
			"newer one may not repeat what it says; "+
			"say wait, or park: true, unless the service reads the current state at each event", u.Preset.Name)
	}
}

// warnOrder warns if order.by is not signed: an event with a far future time would make all that
// follow stale.
func (u *Usage) warnOrder(warn func(path, format string, args ...any)) {
	if u.Signature.Scheme == noScheme {
		warn("order.on_stale", "nothing is signed: anyone who reaches the route can send an event dated far in the "+
			"future, and later events do not run; check signatures (verify), or say annotate")
		return
	}
	covers := Covers(u.Signature)
	if name := covers.Uncovered(u.OrderBy, nil); u.Readable && name != "" {
		warn("order.on_stale", "{%s} is not signed: a captured delivery can be sent again with a date far in the "+
			"future, and later events do not run; say on_stale: annotate", name)
	}
}

// Uncovered returns the first source of a template that c does not cover, or "". p is the preset
// that reads the event ID if the template is "{preset}"; it may be nil.
func (c *Coverage) Uncovered(template string, p *Preset) string {
	if template == naming.EventIDOfPreset {
		if p != nil {
			if i := slices.IndexFunc(p.IDHeaders, func(h string) bool { return !c.coversHeader(h) }); i >= 0 {
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
			covered = c.coversHeader(s.Name) || slices.Contains(c.Sources, s.Text)
		case naming.SourcePath:
			covered = c.URL
		case naming.SourceQuery:
			covered = c.URL || slices.Contains(c.Sources, s.Text)
		case naming.SourceBody, naming.SourceForm, naming.SourceXML:
			covered = c.Body || !c.coversParts() || slices.Contains(c.Sources, s.Text)
		}
		if !covered {
			return s.Text
		}
	}
	return ""
}

// coversParts reports whether c covers parts of a delivery by name.
func (c *Coverage) coversParts() bool { return len(c.Sources) > 0 || len(c.Headers) > 0 }

func (c *Coverage) coversHeader(name string) bool {
	return slices.ContainsFunc(c.Headers, func(h string) bool { return strings.EqualFold(h, name) })
}

// Open returns what an attacker who captured a delivery could change in it. It returns the zero
// value if the signature does not cover the body.
func (c *Coverage) Open() naming.Open {
	if !c.Body {
		return naming.Open{}
	}
	return naming.Open{Method: !c.Method, Host: !c.coversHeader("host"), Target: !c.URL}
}
