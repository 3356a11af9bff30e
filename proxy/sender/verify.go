package sender

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Verifier checks the signature of a delivery. It is immutable and may be shared.
type Verifier interface {
	// Verify returns nil when the delivery was signed with one of the configured secrets or keys, and, where the sender
	// signs a time, when that is within the tolerance of now. Otherwise the error is a *SignatureError.
	Verify(d *Delivery, now time.Time) error
}

// Config says how the deliveries of a route are signed. See New.
type Config struct {
	// Scheme is the name of a preset, or "hmac", "jwt", "token" or "none".
	Scheme string
	// Secrets are tried one after the other: any match is valid, so that a secret can be rolled. Each is taken byte for byte.
	Secrets [][]byte
	// PublicKeys are PEM (public keys or certificates, several in one are fine) or the sender's own encoding: base64 for
	// SendGrid, hex for Discord, whpk_ for Standard Webhooks. Any match is valid. A certificate is pinned, not validated: its
	// dates and issuer do not matter.
	PublicKeys [][]byte
	// PublicURL is the origin that the sender was given, with the path prefix that an ingress strips if there is one. The
	// received target is appended. Only for schemes that sign the URL.
	PublicURL string
	// WebhookID is PayPal's name of the webhook; it is signed, and not in the delivery.
	WebhookID string
	// Tolerance is how far the signed timestamp may be from now. 0 = no age check. DefaultTolerance is what the sender
	// documents. Schemes that sign no time ignore it.
	Tolerance time.Duration
	// Algorithm is sha1, sha256 or sha512 for hmac; empty is sha256. github takes sha1 (the legacy header, only when asked),
	// jira sha1 and sha512, sns sha256 (SignatureVersion 1 is then refused), hubspot v1, v2 or v3 (empty: v3). For jwt it is the one that
	// is taken, such as ES256; empty: those that fit the keys.
	Algorithm string

	// For hmac, jwt and token.
	Header string // the header that carries the signature or the token; short for From with that header
	// From are the places of the signature or the token, as sources of a template: header.X, header.X[v1], query.sig, body.sig. Those that a
	// delivery has are tried, all values of a header's part too: any match is valid.
	From   []string
	Prefix string // what stands before it there
	// For hmac.
	Encoding string // hex (empty means this) or base64
	// Content is what is signed, with {body}, {method}, {url}, {target} and sources of a template; empty is {body}.
	Content string
	// Timestamp is the place of the signed time, as a source that Content has: Unix seconds or milliseconds, or RFC 3339. Empty: none is signed.
	Timestamp string
	// SecretEncoding is text (empty means this), base64 or hex: how the secrets are written. For hmac and jwt.
	SecretEncoding string

	// For jwt.
	Issuer   string   // the claim iss; empty: any
	Audience string   // is among the claim aud; empty: any
	Claims   []string // further claims, as name=value
	BodyHash string   // the claim that has the SHA-256 of the raw body, in hex or base64; empty: nothing of the body is signed
}

// errNeedsSecret and errNeedsKey are what a preset without its secret says.
var (
	errNeedsSecret = errors.New("give secret_file or scheme: none")
	errNeedsKey    = errors.New("give public_key_file or scheme: none")
	errNeedsURL    = errors.New("give public_url: this sender signs the URL that it was given")
)

// scheme is how the deliveries of one sender are verified.
type scheme struct {
	name    string
	aliases []string
	new     func(Config) (Verifier, error)
	// tolerance is what the sender or its library documents; 0 with aged set: it signs a time and documents none, so that an
	// age check might refuse honest retries.
	tolerance time.Duration
	aged      bool
	renewal   Renewal              // what can be done about a time that has passed
	renews    func(Config) Renewal // the same, where it depends on the configuration; nil: it does not
	token     bool                 // the secret comes as it is, and nothing is signed
	// What the signature covers, for warnings. covers says it where that depends on the configuration; nil: it does not.
	body    bool
	url     bool
	method  bool
	headers []string
	covers  func(Config) Coverage
}

// noScheme is the scheme that checks nothing.
const noScheme = "none"

// schemes are those of no sender in particular, and then those of the presets; made once, as these are.
var schemes = sync.OnceValue(func() []scheme {
	all := []scheme{
		{name: noScheme, new: newNone},
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

// New builds the Verifier of c. Its errors say what to give. The verifier of scheme none accepts everything.
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

// DefaultTolerance is the age that the sender of a scheme documents for its signed timestamp. 0: it signs no time, or
// documents none, so that an age check could refuse its honest retries.
func DefaultTolerance(name string) time.Duration {
	s, _ := findScheme(name)
	return s.tolerance
}

// Coverage says what a signature covers. Whatever it does not cover can be changed by whoever captured one delivery.
type Coverage struct {
	Body   bool // the whole body; for adyen, mailgun and sns only members of it are covered
	URL    bool
	Method bool
	Time   bool // a timestamp is signed: a tolerance has an effect
	// Headers are the covered ones, as their sender spells them.
	Headers []string
	// Sources are other covered sources of a template, such as body.id where the body is not signed as a whole.
	Sources []string
}

// Covers is the Coverage of c. An unknown scheme covers nothing.
func Covers(c Config) Coverage {
	s, ok := findScheme(c.Scheme)
	if !ok {
		return Coverage{}
	}
	if s.covers != nil {
		return s.covers(c)
	}
	return s.coverage()
}

func (s *scheme) coverage() Coverage {
	return Coverage{Body: s.body, URL: s.url, Method: s.method, Time: s.aged, Headers: s.headers}
}

// headVerifier is a Verifier that sees in the head alone that a delivery is not signed.
type headVerifier interface {
	// head returns a *SignatureError, or nil where the body has to be read.
	head(d *Delivery) error
}

// CheckHead says what the head of a delivery tells, before its body was read: a *SignatureError where no body could be signed by it, else
// nil. d has no body yet.
func CheckHead(v Verifier, d *Delivery) error {
	if h, ok := v.(headVerifier); ok {
		return h.head(d)
	}
	return nil
}

// needs is the head of a scheme whose deliveries have all of these headers.
func (d *Delivery) needs(scheme string, names ...string) error {
	for _, name := range names {
		if _, err := d.one(scheme, name); err != nil {
			return err
		}
	}
	return nil
}
