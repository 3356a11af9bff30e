package sender

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Verifier checks the signature of a delivery. It is immutable and safe for concurrent use.
type Verifier interface {
	// Verify returns nil if one of the configured secrets or keys signed the delivery and the
	// signed time, if there is one, is within the tolerance of now. Otherwise it returns a
	// *SignatureError.
	Verify(d *Delivery, now time.Time) error
}

// Config says how the deliveries of a route are signed. See New.
type Config struct {
	// Scheme is the name of a preset, or "hmac", "jwt", "token" or "none".
	Scheme string
	// Secrets are tried one after the other, byte for byte: any match is valid, so that a secret
	// can be rolled.
	Secrets [][]byte
	// PublicKeys are PEM (public keys or certificates, one or several) or the sender's own
	// encoding: base64 for SendGrid, hex for Discord, whpk_ for Standard Webhooks. Any match is
	// valid. A certificate is pinned, not validated: its dates and issuer do not matter.
	PublicKeys [][]byte
	// PublicURL is the origin that the sender calls, with the path prefix that an ingress strips.
	// The received target is appended. Only schemes that sign the URL read it.
	PublicURL string
	// WebhookID is PayPal's ID of the webhook, which is signed and not in the delivery.
	WebhookID string
	// Tolerance is the greatest distance of the signed timestamp from now. 0 means no age check.
	// Schemes that sign no time ignore it. DefaultTolerance returns what the sender documents.
	Tolerance time.Duration
	// Algorithm is sha1, sha256 (the default) or sha512 for hmac. github also accepts sha1 (the
	// legacy header), jira sha1 and sha512, sns sha256 (which refuses SignatureVersion 1), hubspot
	// v1, v2 or v3 (the default). For jwt it is the accepted algorithm, such as ES256; the default
	// is those that fit the keys.
	Algorithm string

	// For hmac, jwt and token.
	Header string // the header with the signature or the token; short for From with that header
	// From lists the places of the signature or the token as template sources: header.X,
	// header.X[v1], query.sig, body.sig. All values there are tried: any match is valid.
	From   []string
	Prefix string // the text before it
	// For hmac.
	Encoding string // hex (the default) or base64
	// Content is what is signed, with {body}, {method}, {url}, {target} and template sources. The
	// default is {body}.
	Content string
	// Timestamp is the source in Content that is the signed time: Unix seconds or milliseconds, or
	// RFC 3339. If empty, no time is signed.
	Timestamp string
	// SecretEncoding is text (the default), base64 or hex. For hmac and jwt.
	SecretEncoding string

	// For jwt.
	Issuer   string   // the required claim iss; may be empty
	Audience string   // a required element of the claim aud; may be empty
	Claims   []string // further claims, as name=value
	BodyHash string   // the claim with the SHA-256 of the raw body, in hex or base64; if empty, the body is not signed
}

// errNeedsSecret, errNeedsKey and errNeedsURL are returned by New if the scheme needs a setting
// that c lacks.
var (
	errNeedsSecret = errors.New("give secret_file or scheme: none")
	errNeedsKey    = errors.New("give public_key_file or scheme: none")
	errNeedsURL    = errors.New("give public_url: this sender signs the URL that it calls")
)

// scheme describes how the deliveries of one sender are verified.
type scheme struct {
	name    string
	aliases []string
	new     func(Config) (Verifier, error)
	// tolerance is the age that the sender or its library documents. If it is 0 and aged is set,
	// the sender signs a time and documents no age, so an age check might refuse honest retries.
	tolerance time.Duration
	aged      bool
	renewal   Renewal              // of the signatures
	renews    func(Config) Renewal // replaces renewal if it depends on the configuration
	token     bool                 // the secret is sent as it is, and nothing is signed
	// What the signature covers, for warnings. covers replaces the fields if that depends on the
	// configuration.
	body    bool
	url     bool
	headers []string
	covers  func(Config) Coverage
}

// noScheme is the scheme that checks nothing.
const noScheme = "none"

// schemes returns the generic schemes and then those of the presets. It builds them once.
var schemes = sync.OnceValue(func() []scheme {
	all := []scheme{
		{name: noScheme, new: func(Config) (Verifier, error) { return none{}, nil }},
		{name: "hmac", new: newGenericHMAC, covers: hmacCovers, renews: hmacRenewal},
		{name: "jwt", new: newJWT, covers: jwtCovers},
		{name: "token", new: newToken},
	}
	for _, p := range listed() {
		if p.verify.new != nil {
			all = append(all, p.verify)
		}
	}
	return all
})

// Schemes lists the names that Config.Scheme takes, without aliases.
func Schemes() []string {
	var names []string
	for _, s := range schemes() {
		names = append(names, s.name)
	}
	return names
}

func findScheme(name string) (scheme, bool) {
	all := schemes()
	i := slices.IndexFunc(all, func(s scheme) bool { return s.name == name || slices.Contains(s.aliases, name) })
	if i < 0 {
		return scheme{}, false
	}
	return all[i], true
}

// New returns the Verifier of c. The Verifier of scheme none accepts everything.
func New(c Config) (Verifier, error) {
	s, ok := findScheme(c.Scheme)
	if !ok {
		return nil, fmt.Errorf("scheme %q: unknown; give one of %v", c.Scheme, Schemes())
	}
	if c.Tolerance < 0 {
		return nil, fmt.Errorf("scheme %s: tolerance is negative; give 0s for no age check", s.name)
	}
	c.Scheme = s.name
	v, err := s.new(c)
	if err != nil {
		return nil, fmt.Errorf("scheme %s: %w", s.name, err)
	}
	return v, nil
}

// DefaultTolerance returns the age that the sender of a scheme documents for its signed timestamp.
// It returns 0 if the sender signs no time or documents no age.
func DefaultTolerance(name string) time.Duration {
	s, _ := findScheme(name)
	return s.tolerance
}

// Coverage says what a signature covers. An attacker who captured a delivery can change the rest.
type Coverage struct {
	Body   bool // the whole body; for adyen, mailgun and sns only members of it are covered
	URL    bool
	Method bool
	Time   bool // a timestamp is signed: a tolerance has an effect
	// Headers lists the covered headers, spelled as the sender does.
	Headers []string
	// Sources lists other covered template sources, such as body.id if the body is not signed as a
	// whole.
	Sources []string
}

// Covers returns the Coverage of c. An unknown scheme covers nothing.
func Covers(c Config) Coverage {
	s, _ := findScheme(c.Scheme)
	return s.coverageOf(c)
}

// coverageOf returns the Coverage of c, which has this scheme.
func (s *scheme) coverageOf(c Config) Coverage {
	if s.covers != nil {
		return s.covers(c)
	}
	return Coverage{Body: s.body, URL: s.url, Time: s.aged, Headers: s.headers}
}

// headVerifier is a Verifier that can tell from the head of a delivery that it is not signed.
type headVerifier interface {
	// checkHead returns a *SignatureError, or nil if the body is needed.
	checkHead(d *Delivery) error
}

// CheckHead checks the head of a delivery before its body is read. It returns a *SignatureError if
// no body could match the head. It does not read d.Body.
func CheckHead(v Verifier, d *Delivery) error {
	if h, ok := v.(headVerifier); ok {
		return h.checkHead(d)
	}
	return nil
}

// requireHeaders returns a *SignatureError if d lacks one of the named headers.
func (d *Delivery) requireHeaders(scheme string, names ...string) error {
	for _, name := range names {
		if _, err := d.requireOne(scheme, name); err != nil {
			return err
		}
	}
	return nil
}
