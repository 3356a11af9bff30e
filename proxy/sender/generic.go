package sender

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"
)

// newGenericHMAC returns the verifier of the scheme hmac: a digest over c.Content, in the places
// that c.From names. Presets use it through asHMAC.
func newGenericHMAC(c Config) (Verifier, error) { return newMACVerifier(c) }

func newMACVerifier(c Config) (*macVerifier, error) {
	from, err := placesOf(&c, "")
	if err != nil {
		return nil, err
	}
	content, err := signedContent(c.Content)
	if err != nil {
		return nil, err
	}
	var url *publicURL
	if content.needsURL() {
		if url, err = parsePublicURL(c.PublicURL); err != nil {
			return nil, err
		}
	}
	stamp, err := content.timestampIndex(c.Timestamp)
	if err != nil {
		return nil, err
	}
	v, err := keyedBy(&c)
	if err != nil {
		return nil, err
	}
	v.part, v.covers = from.namesOfPlaces(), cmp.Or(c.Content, coversBody)
	if hmacRenewal(c) == RenewalPossible {
		v.sign = v.hmacSigner(hmacSigner{from, content[stamp].lookup, stamp})
	}
	v.read = func(d *Delivery, cl *claim) error {
		if err := from.readSignatures(c.Scheme, c.Prefix, d, cl); err != nil {
			return err
		}
		return content.readPieces(&c, d, cl, url, stamp)
	}
	return v, nil
}

// readPieces adds the value of each piece to cl, and the time in the piece at stamp; -1: there is
// none.
func (t pieces) readPieces(c *Config, d *Delivery, cl *claim, url *publicURL, stamp int) error {
	for i := range t {
		value, err := t[i].readValue(c.Scheme, d, cl, url)
		if err != nil {
			return err
		}
		cl.parts = append(cl.parts, value)
		if i == stamp {
			if err := cl.setAnyTime(c.Scheme, partOf(t[i].lookup.Source()), value); err != nil {
				return err
			}
		}
	}
	return nil
}

// keyedBy returns the verifier of c without its read function.
func keyedBy(c *Config) (*macVerifier, error) {
	enc, err := encodingOf(c.Encoding)
	if err != nil {
		return nil, err
	}
	newHash, err := hashOf(cmp.Or(c.Algorithm, "sha256"))
	if err != nil {
		return nil, err
	}
	keys, err := decodedSecrets(c)
	if err != nil {
		return nil, err
	}
	v, err := newKeyedVerifier(Config{Scheme: c.Scheme, Secrets: keys, Tolerance: c.Tolerance}, newHash)
	if err != nil {
		return nil, err
	}
	v.encoding = enc
	return v, nil
}

// decodedSecrets returns the keys that the secrets encode.
func decodedSecrets(c *Config) ([][]byte, error) {
	if err := checkSecrets(c.Secrets); err != nil {
		return nil, err
	}
	var keys [][]byte
	for i, s := range c.Secrets {
		key, err := decodeSecret(c.SecretEncoding, s)
		if err != nil {
			return nil, fmt.Errorf("secret %d: %w", i+1, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func decodeSecret(encoding string, secret []byte) (key []byte, err error) {
	switch encoding {
	case "", "text":
		return secret, nil
	case "hex":
		if key, err = hexBytes(secret); err != nil {
			return nil, errors.New("is not hex, as secret_encoding says")
		}
	case "base64":
		if key, err = anyBase64(secret); err != nil {
			return nil, errors.New("is not base64, as secret_encoding says")
		}
	default:
		return nil, fmt.Errorf("secret_encoding %q: give text, base64 or hex", encoding)
	}
	if len(key) == 0 {
		return nil, errNeedsSecret
	}
	return key, nil
}

func encodingOf(name string) (encoding, error) {
	switch name {
	case "", "hex":
		return inHex, nil
	case "base64":
		return inBase64, nil
	}
	return 0, fmt.Errorf("encoding %q: give hex or base64", name)
}

// signedContent parses Content.
func signedContent(content string) (pieces, error) {
	all, err := parsePieces("content", cmp.Or(content, "{body}"))
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(all, func(p piece) bool { return p.mac }) {
		return nil, fmt.Errorf("content %q: {hmac.…} is for the answer of a handshake", content)
	}
	if !slices.ContainsFunc(all, func(p piece) bool { return p.source != "" }) {
		return nil, fmt.Errorf("content %q: has no source, so one signature would fit all deliveries; give {body}",
			content)
	}
	return all, nil
}

// timestampIndex returns the index of the piece with the signed time, or -1 if source is empty.
func (t pieces) timestampIndex(source string) (int, error) {
	if source == "" {
		return -1, nil
	}
	i := slices.IndexFunc(t, func(p piece) bool { return p.name == source })
	if i < 0 {
		return 0, fmt.Errorf("timestamp %q: content has no {%s}, so anybody could change the time", source, source)
	}
	return i, nil
}

func hmacCovers(c Config) Coverage {
	content, err := signedContent(c.Content)
	if err != nil {
		return Coverage{}
	}
	cov := content.coveredParts()
	cov.Time = c.Timestamp != ""
	return cov
}

// token verifies a shared secret that the sender sends as it is. It covers nothing of the delivery.
type token struct {
	scheme, prefix string
	from           places
	digests        [][sha256.Size]byte // of the secrets: a comparison of digests does not reveal their length
}

func newToken(c Config) (Verifier, error) {
	from, err := placesOf(&c, "")
	if err != nil {
		return nil, err
	}
	if err := checkSecrets(c.Secrets); err != nil {
		return nil, err
	}
	return &token{c.Scheme, c.Prefix, from, digestsOf(c.Secrets)}, nil
}

func digestsOf(secrets [][]byte) [][sha256.Size]byte {
	var all [][sha256.Size]byte
	for _, s := range secrets {
		all = append(all, sha256.Sum256(s))
	}
	return all
}

func (v *token) checkHead(d *Delivery) error {
	if !v.from.inHead() {
		return nil
	}
	return v.Verify(d, time.Time{})
}

// Verify implements Verifier.
func (v *token) Verify(d *Delivery, _ time.Time) error {
	c := &claim{}
	c.signatures = c.signaturesMemory[:0]
	if err := v.from.readSignatures(v.scheme, v.prefix, d, c); err != nil {
		return err
	}
	if slices.ContainsFunc(c.signatures, func(value []byte) bool { return isOneOf(value, v.digests) }) {
		return nil
	}
	return &SignatureError{v.scheme, Mismatch, v.from.namesOfPlaces(), "is not the configured token"}
}

// isOneOf reports whether value is one of the secrets with these digests.
func isOneOf(value []byte, digests [][sha256.Size]byte) bool {
	presented := sha256.Sum256(value)
	match := 0
	for i := range digests {
		match |= subtle.ConstantTimeCompare(presented[:], digests[i][:])
	}
	return match == 1
}

type none struct{}

func (none) Verify(*Delivery, time.Time) error { return nil }
