package wiring

import (
	"fmt"
	"slices"
	"time"

	"hooklock/config"
	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy"
	"hooklock/proxy/sender"
)

// knownSenders returns what proxy/sender knows, as the configuration needs it.
func knownSenders() config.Senders {
	known := func(words []sender.Word) []config.Known {
		all := make([]config.Known, len(words))
		for i, w := range words {
			all[i] = config.Known(w)
		}
		return all
	}
	return config.Senders{Presets: known(sender.PresetWords()), Schemes: known(sender.SchemeWords())}
}

// signatureConfig converts a route's verify for package sender.
func signatureConfig(v *config.Verify) sender.Config {
	return sender.Config{
		Scheme: v.Scheme, Secrets: revealedSecrets(v.Secrets), PublicKeys: revealedSecrets(v.PublicKeys),
		PublicURL: v.PublicURL,
		WebhookID: v.WebhookID,
		Tolerance: v.Tolerance, Algorithm: v.Algorithm, Header: v.Header, From: v.From, Prefix: v.Prefix,
		Encoding: v.Encoding, Content: v.Content,
		Timestamp: v.Timestamp, SecretEncoding: v.SecretEncoding, Issuer: v.Issuer, Audience: v.Audience,
		Claims: v.Claims, BodyHash: v.BodyHash,
	}
}

// handshakeRule converts a route's handshake for package sender.
func handshakeRule(h *config.Handshake) sender.HandshakeRule {
	return sender.HandshakeRule{
		Method: h.Method, When: h.When, Unsigned: h.Unsigned, TokenAt: h.TokenAt, Token: []byte(h.Token.Reveal()),
		Answer: h.Answer, ContentType: h.ContentType,
		Header: h.Header,
	}
}

func revealedSecrets(secrets []config.Secret) [][]byte {
	var texts [][]byte
	for _, s := range secrets {
		texts = append(texts, []byte(s.Reveal()))
	}
	return texts
}

// presetOf returns the route's preset, or nil.
func presetOf(r *config.Route) *sender.Preset {
	p, _ := sender.Lookup(r.Preset)
	return p
}

func newVerification(r *config.Route) (proxy.Verification, error) {
	verification := proxy.Verification{Scheme: r.Verify.Scheme, Preset: presetOf(r)}
	readable := r.Verify.Complete() && r.Handshake.Complete()
	switch {
	case r.Verify.Scheme == config.SchemeNone:
	case !readable:
		verification.Verifier = secretMissing{r.Verify.Scheme}
	default:
		c := signatureConfig(&r.Verify)
		v, err := sender.New(c)
		if err != nil {
			return verification, fmt.Errorf("verify: %w", err)
		}
		verification.Verifier = v
		verification.Diagnose = func(d *sender.Delivery, now time.Time) []string { return sender.Diagnose(c, d, now) }
	}
	if !readable {
		return verification, nil
	}
	var err error
	if verification.Handshake, err = sender.NewHandshake(handshakeRule(&r.Handshake),
		signatureConfig(&r.Verify)); err != nil {
		return verification, fmt.Errorf("handshake: %w", err)
	}
	return verification, nil
}

// leftOpen returns what a signature of r does not cover, so that a captured delivery could be
// changed.
func leftOpen(r *config.Route) naming.Open {
	covers := sender.Covers(signatureConfig(&r.Verify))
	return covers.Open()
}

// secretMissing accepts nothing. validate and explain use it without the secrets that serve
// requires.
type secretMissing struct{ scheme string }

// Verify implements sender.Verifier.
func (s secretMissing) Verify(*sender.Delivery, time.Time) error {
	return &sender.SignatureError{Scheme: s.scheme, Reason: sender.Missing, Part: "secret",
		Detail: "a secret or key of this route could not be read here, so that no signature can be checked"}
}

// checkRoute checks a route against what is known of senders.
func checkRoute(c *config.Config, r *config.Route) (problems, warnings config.Problems) {
	u := sender.Usage{
		Preset: presetOf(r), Signature: signatureConfig(&r.Verify), Readable: r.Verify.Complete() &&
			r.Handshake.Complete(), Handshake: handshakeRule(&r.Handshake),
		EventID: r.EventID, Idempotency: r.Idempotency.Enabled, Retention: r.Idempotency.Retention,
		Strategy: r.Lock.Strategy, WaitTimeout: r.Lock.WaitTimeout,
		UpstreamTimeout: c.Upstream.Timeout, MaxBody: int64(c.Limits.RequestBody),
		ParksSlow: r.Park.Enabled && slices.Contains(r.Park.On, idem.ParkSlow),
	}
	if r.Order.Asked() {
		u.OrderBy, u.OrderOfPreset, u.KeepsBack = r.Order.By, r.Order.Preset, r.Order.OnStale != idem.StaleAnnotate
		if u.OrderOfPreset && u.Preset != nil {
			u.OrderBy = u.Preset.Order
		}
	}
	problems = append(remarkProblems(u.Problems()), checkPark(r, u.Preset)...)
	if len(problems) == 0 { // what none of these has found, such as an event ID that reads nothing
		if _, err := newRoute(r, c.Upstream.Timeout); err != nil {
			problems = append(problems, problemOf(err))
		}
	}
	return problems, remarkProblems(u.Warnings())
}

func remarkProblems(all []sender.Remark) config.Problems {
	var problems config.Problems
	for _, r := range all {
		problems = append(problems, config.Problem{Path: r.Path, Text: r.Text})
	}
	return problems
}
