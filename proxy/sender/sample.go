package sender

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hooklock/idem/naming"
)

// Request is a sample delivery, ready to be sent.
type Request struct {
	Method string
	Target string         // path and query
	Fields []naming.Field // in order; without Host and Content-Length
	Body   []byte
}

// SampleOption configures Sample.
type SampleOption func(*sample)

// WithURL sets the URL that the sender calls. Some senders sign it; its path and query are the
// request target. The default is https://hooks.example.com/hooks/ and the name of the preset.
func WithURL(public string) SampleOption { return func(s *sample) { s.url = public } }

// WithEvent sets the event ID, so that a duplicate can be sent. The time of the event is then
// fixed, too, because some IDs contain it. By default each nanosecond has its own ID.
func WithEvent(id string) SampleOption {
	return func(s *sample) { s.id, s.happened = id, time.Unix(1767225600, 0) }
}

// WithWebhookID sets the webhook_id of a PayPal route.
func WithWebhookID(id string) SampleOption { return func(s *sample) { s.webhookID = id } }

// Unsigned leaves the signature out, for routes with scheme none. The secret is then ignored.
func Unsigned() SampleOption { return func(s *sample) { s.unsigned = true } }

// Sample returns a delivery as the sender of a preset would make it. For schemes with public keys,
// secret is the private key of a test pair: PEM, 64 hex digits of the seed for Discord, or whsk_
// and base64 for Standard Webhooks.
func Sample(preset string, secret []byte, now time.Time, options ...SampleOption) (*Request, error) {
	p, ok := Lookup(preset)
	if !ok {
		return nil, fmt.Errorf("preset %q: unknown; give one of %s", preset, strings.Join(presetNames(), ", "))
	}
	s := &sample{secret: secret, now: now, happened: now, url: "https://hooks.example.com/hooks/" + p.Name,
		webhookID: "WEBHOOK-SAMPLE"}
	s.id = fmt.Sprintf("sample-%d", now.UnixNano())
	for _, o := range options {
		o(s)
	}
	if s.id == "" || strings.ContainsFunc(s.id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fmt.Errorf("preset %s: event ID %q: give printable ASCII without spaces", p.Name, s.id)
	}
	s.unsigned = s.unsigned || p.Scheme == "none"
	if !s.unsigned && len(strings.TrimSpace(string(secret))) == 0 {
		return nil, fmt.Errorf("preset %s: this sender signs its deliveries; give --secret-file", p.Name)
	}
	u, err := url.Parse(s.url)
	if err != nil {
		return nil, fmt.Errorf("preset %s: %w", p.Name, err)
	}
	if u.Host == "" || u.Fragment != "" {
		return nil, fmt.Errorf("preset %s: url %q: give a URL such as https://hooks.example.com/path", p.Name, s.url)
	}
	s.request = Request{Method: "POST", Target: u.RequestURI()}
	s.url = u.Scheme + "://" + u.Host + s.request.Target
	s.addField("Content-Type", "application/json")
	if p.sample(s); s.err != nil && !s.unsigned {
		return nil, fmt.Errorf("preset %s: %w", p.Name, s.err)
	}
	return &s.request, nil
}

func presetNames() []string {
	var names []string
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// sample is a delivery under construction.
type sample struct {
	request   Request
	secret    []byte
	now       time.Time // of the attempt
	happened  time.Time // of the event
	url       string
	id        string
	webhookID string
	unsigned  bool
	err       error // the first one about the secret
}

// keepError keeps the first error. One of an unsigned sample does not matter: it is about the
// secret.
func (s *sample) keepError(err error) { s.err = cmp.Or(s.err, err) }

// prefixedID returns the event ID with a prefix, unless it already has it.
func (s *sample) prefixedID(prefix string) string { return prefix + strings.TrimPrefix(s.id, prefix) }

func (s *sample) addField(name, value string) {
	s.request.Fields = append(s.request.Fields, naming.Field{Name: []byte(name), Value: []byte(value)})
}

// addSigned adds a field of the signature, unless the sample is unsigned.
func (s *sample) addSigned(name, value string) {
	if !s.unsigned {
		s.addField(name, value)
	}
}

// setType changes the media type of the body.
func (s *sample) setType(value string) {
	for i := range s.request.Fields {
		if equalName(s.request.Fields[i].Name, "Content-Type") {
			s.request.Fields[i].Value = []byte(value)
		}
	}
}

// setBody sets the body. Each %s in format is replaced with an argument as a JSON string.
func (s *sample) setBody(format string, args ...string) {
	quoted := make([]any, len(args))
	for i, a := range args {
		quoted[i] = quoteJSON(a)
	}
	s.request.Body = fmt.Appendf(nil, format, quoted...)
}

// quoteJSON returns printable ASCII as a JSON string.
func quoteJSON(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func (s *sample) unixSeconds() string { return strconv.FormatInt(s.now.Unix(), 10) }
func (s *sample) unixMillis() string  { return unixMillis(s.now) }
func (s *sample) rfc3339() string     { return rfc3339(s.now) }

func unixMillis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
func rfc3339(t time.Time) string    { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// hmac256 signs parts with the secret. It returns "" if the sample is unsigned.
func (s *sample) hmac256(enc encoding, parts ...string) string {
	return s.keyedSHA256(s.secret, enc, parts...)
}

func (s *sample) keyedSHA256(key []byte, enc encoding, parts ...string) string {
	if s.unsigned {
		return ""
	}
	return string(newMAC(sha256.New, key).signParts(enc, []byte(strings.Join(parts, ""))))
}

// signRequest adds the signature of the current request. It does nothing if the sample is unsigned.
func (s *sample) signRequest(key []byte, sign signer) {
	fields, err := sign(s.request.asDelivery(), []*mac{newMAC(sha256.New, key)}, s.now)
	s.keepError(err)
	for _, f := range fields {
		s.addSigned(string(f.Name), string(f.Value))
	}
}

// asDelivery returns r as a Delivery. It shares r's memory.
func (r *Request) asDelivery() *Delivery {
	return &Delivery{Method: []byte(r.Method), Target: []byte(r.Target), Fields: r.Fields, Body: r.Body}
}

// errPrivateKey is returned if the secret of a sample is not the private key that the sender's
// scheme needs.
var errPrivateKey = errors.New("give the private key of a test pair (PEM) whose public key is the route's " +
	"public_key_file: only the sender has its own")

// privateKey parses the private key of a test pair: PEM, 64 hex digits (the seed of an Ed25519
// key), or whsk_ and base64 of an Ed25519 seed or key.
func privateKey(secret []byte) (crypto.Signer, error) {
	text := bytes.TrimSpace(secret)
	if seed, err := hex.DecodeString(string(text)); err == nil && len(seed) == ed25519.SeedSize {
		return ed25519.NewKeyFromSeed(seed), nil
	}
	if encoded, ok := bytes.CutPrefix(text, []byte(asymmetricPrefix)); ok {
		key, err := base64.StdEncoding.DecodeString(string(encoded))
		if err != nil || (len(key) != ed25519.SeedSize && len(key) != ed25519.PrivateKeySize) {
			return nil, fmt.Errorf("give %s and the base64 of an Ed25519 key", asymmetricPrefix)
		}
		return ed25519.NewKeyFromSeed(key[:ed25519.SeedSize]), nil
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errPrivateKey
	}
	switch block.Type {
	case "PRIVATE KEY":
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		if key, ok := parsed.(crypto.Signer); ok {
			return key, nil
		}
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	return nil, errPrivateKey
}

// asymmetricPrefix is the prefix of private keys of version v1a of Standard Webhooks.
const asymmetricPrefix = "whsk_"

// signWith signs a message with the secret, which must be a private key of type K. Algorithm 0
// signs the message itself. It returns nil if the sample is unsigned.
func signWith[K crypto.Signer](s *sample, algorithm crypto.Hash, message []byte) []byte {
	if s.unsigned {
		return nil
	}
	key, err := privateKey(s.secret)
	if err != nil {
		s.keepError(err)
		return nil
	}
	if want, ok := key.(K); !ok {
		s.keepError(fmt.Errorf("the private key is a %T, not a %T", key, want))
		return nil
	}
	if algorithm != 0 {
		h := algorithm.New()
		h.Write(message)
		message = h.Sum(nil)
	}
	signature, err := key.Sign(rand.Reader, message, algorithm)
	s.keepError(err)
	return signature
}
