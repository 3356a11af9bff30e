package wiring

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hooklock/config"
	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy"
	"hooklock/proxy/sender"
)

// knownSenders is what proxy/sender knows, as the configuration wants it.
func knownSenders() config.Senders {
	known := func(words []sender.Word) []config.Known {
		all := make([]config.Known, len(words))
		for i, w := range words {
			all[i] = config.Known{Name: w.Name, Aliases: w.Aliases, Values: w.Settings}
		}
		return all
	}
	return config.Senders{Presets: known(sender.PresetWords()), Schemes: known(sender.SchemeWords())}
}

// signatureConfig is a route's verify in the sender's words.
func signatureConfig(v *config.Verify) sender.Config {
	return sender.Config{
		Scheme: v.Scheme, Secrets: revealed(v.Secrets), PublicKeys: revealed(v.PublicKeys), PublicURL: v.PublicURL, WebhookID: v.WebhookID,
		Tolerance: v.Tolerance, Algorithm: v.Algorithm, Header: v.Header, Prefix: v.Prefix, Encoding: v.Encoding, Content: v.Content,
	}
}

func revealed(secrets []config.Secret) [][]byte {
	var texts [][]byte
	for _, s := range secrets {
		texts = append(texts, []byte(s.Reveal()))
	}
	return texts
}

// presetOf is the route's preset, nil without one.
func presetOf(r *config.Route) *sender.Preset {
	p, _ := sender.Lookup(r.Preset)
	return p
}

func newVerification(r *config.Route) (proxy.Verification, error) {
	verification := proxy.Verification{Scheme: r.Verify.Scheme, Preset: presetOf(r)}
	switch {
	case r.Verify.Scheme == config.SchemeNone:
	case !r.Verify.Complete():
		verification.Verifier = secretMissing{r.Verify.Scheme}
	default:
		v, err := sender.New(signatureConfig(&r.Verify))
		if err != nil {
			return verification, fmt.Errorf("verify: %w", err)
		}
		verification.Verifier = v
	}
	return verification, nil
}

// leftOpen is what whoever captured a delivery of r could change in it. A scheme that does not sign the body signs nothing that tells one
// delivery from another.
func leftOpen(r *config.Route) naming.Open {
	covers := sender.Covers(signatureConfig(&r.Verify))
	if !covers.Body {
		return naming.Open{}
	}
	host := slices.ContainsFunc(covers.Headers, func(h string) bool { return strings.EqualFold(h, "host") })
	return naming.Open{Method: !covers.Method, Host: !host, Target: !covers.URL}
}

// secretMissing accepts nothing. It stands where validate and explain run without the secrets that serve insists on.
type secretMissing struct{ scheme string }

// Verify implements sender.Verifier.
func (s secretMissing) Verify(*sender.Delivery, time.Time) error {
	return &sender.SignatureError{Scheme: s.scheme, Reason: sender.Missing, Part: "secret", Detail: "a secret or key of this route could not be read here, so that no signature can be checked"}
}

// checkRoute judges what needs the knowledge of senders.
func checkRoute(c *config.Config, r *config.Route) (problems, warnings config.Problems) {
	preset := presetOf(r)
	if r.EventID == naming.EventIDOfPreset && (preset == nil || preset.ExtractID == nil) {
		problems = append(problems, config.Problem{Path: "event_id", Text: `"{preset}" needs a preset that reads the ID itself; give a template such as "{body.id}"`})
	}
	if r.Verify.Complete() {
		if _, err := sender.New(signatureConfig(&r.Verify)); err != nil {
			problems = append(problems, config.Problem{Path: "verify", Text: err.Error()})
		}
	}
	warn := func(path, format string, args ...any) {
		warnings = append(warnings, config.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	warnSignature(r, warn)
	if preset != nil {
		warnTimes(c, r, preset, warn)
	}
	return problems, warnings
}

type warner func(path, format string, args ...any)

// warnSignature looks at what the signature leaves open.
func warnSignature(r *config.Route, warn warner) {
	if r.Verify.Scheme == config.SchemeNone {
		return
	}
	covers := sender.Covers(signatureConfig(&r.Verify))
	switch {
	case covers.Time && r.Verify.Tolerance == 0 && sender.DefaultTolerance(r.Verify.Scheme) > 0:
		warn("verify.tolerance", "0s: no age check, so that whoever captured a delivery can send it again for ever; %s documents %s", r.Verify.Scheme, sender.DefaultTolerance(r.Verify.Scheme))
	case !covers.Time && r.Verify.Tolerance > 0 && r.Verify.Tolerance != sender.DefaultTolerance(r.Verify.Scheme):
		warn("verify.tolerance", "has no effect: no time is signed")
	}
	if r.Verify.Complete() && r.Idempotency.Enabled {
		if name := Uncovered(r.EventID, presetOf(r), &covers); name != "" {
			warn("event_id", "{%s} is not signed: duplicates are found, but whoever captured a delivery can send it again under another ID", name)
		}
	}
}

// Uncovered is the first source of an event ID that the signature does not cover, empty if there is none.
func Uncovered(template string, preset *sender.Preset, covers *sender.Coverage) string {
	signed := func(header string) bool {
		return slices.ContainsFunc(covers.Headers, func(h string) bool { return strings.EqualFold(h, header) })
	}
	if template == naming.EventIDOfPreset {
		if preset != nil {
			if i := slices.IndexFunc(preset.IDHeaders, func(h string) bool { return !signed(h) }); i >= 0 {
				return "header." + preset.IDHeaders[i]
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
			covered = signed(s.Name)
		case naming.SourcePath, naming.SourceQuery:
			covered = covers.URL
		case naming.SourceBody, naming.SourceForm:
			covered = covers.Body
		}
		if !covered {
			return s.Text
		}
	}
	return ""
}

// warnTimes compares the route with what its sender does.
func warnTimes(c *config.Config, r *config.Route, p *sender.Preset, warn warner) {
	if r.Idempotency.Enabled && r.Idempotency.Retention < p.Facts.RetriesFor {
		warn("idempotency.retention", "%s: %s goes on trying for %s, and a retry after the retention runs the event again", r.Idempotency.Retention, p.Name, p.Facts.RetriesFor)
	}
	needed, what := c.Upstream.Timeout, "upstream.timeout"
	if r.Lock.Strategy == idem.Wait {
		needed, what = needed+r.Lock.WaitTimeout, "lock.wait_timeout + upstream.timeout"
	}
	if p.Facts.Patience > 0 && needed > p.Facts.Patience {
		warn("preset", "%s waits %s for an answer, and %s is %s: it may hang up before; the outcome is recorded all the same", p.Name, p.Facts.Patience, what, needed)
	}
}
