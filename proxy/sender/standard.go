package sender

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"time"

	"hooklock/idem/naming"
)

// standard verifies Standard Webhooks: v1 (HMAC-SHA256) with secrets, v1a (Ed25519) with public
// keys, or both. The spec:
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
type standard struct {
	scheme string
	macs   []*mac
	keys   []ed25519.PublicKey
	age    age
	memory *scratch
	dot    []byte
	// unbranded ignores headers with the prefix svix-, which the sender never uses.
	unbranded bool
}

func newStandard(c Config) (*standard, error) {
	v := &standard{scheme: c.Scheme, age: age{tolerance: c.Tolerance}, memory: &scratch{}, dot: []byte(".")}
	if len(c.Secrets) == 0 && len(c.PublicKeys) == 0 {
		return nil, fmt.Errorf("%w; for v1a signatures public_key_file", errNeedsSecret)
	}
	if len(c.Secrets) > 0 {
		keys, err := signingSecrets(c.Secrets)
		if err != nil {
			return nil, err
		}
		c.Secrets = keys
		h, err := newKeyedVerifier(c, sha256.New)
		if err != nil {
			return nil, err
		}
		v.macs = h.macs
	}
	if len(c.PublicKeys) > 0 {
		keys, err := publicKeys(c.PublicKeys, parseWHPK, checkEd25519)
		if err != nil {
			return nil, err
		}
		v.keys = keys
	}
	return v, nil
}

// headerPrefix returns the prefix of the headers of d.
func (v *standard) headerPrefix(d *Delivery) string {
	if v.unbranded {
		return unbrandedSet
	}
	return standardSet(d)
}

func (v *standard) checkHead(d *Delivery) error {
	set := v.headerPrefix(d)
	return d.requireHeaders(v.scheme, set+"id", set+"timestamp", set+"signature")
}

// Verify implements Verifier.
func (v *standard) Verify(d *Delivery, now time.Time) error {
	set := v.headerPrefix(d)
	c, err := v.claimOf(d, set)
	if err != nil {
		return err
	}
	if err := v.matchSignatures(set+"signature", c.signatures, c.parts[:]); err != nil {
		return err
	}
	return v.age.checkAge(v.scheme, set+"timestamp", c.stamp, now)
}

// standardClaim is the signed content of a delivery and its signatures.
type standardClaim struct {
	parts      [5][]byte
	stamp      time.Time
	signatures []byte // the list as it was received
}

func (v *standard) claimOf(d *Delivery, set string) (c standardClaim, err error) {
	var values [3][]byte
	for i, name := range [3]string{"id", "timestamp", "signature"} {
		if values[i], err = d.requireOne(v.scheme, set+name); err != nil {
			return c, err
		}
	}
	var ok bool
	if c.stamp, ok = unixTime(values[1], time.Second); !ok {
		return c, &SignatureError{v.scheme, Malformed, set + "timestamp", "is not a Unix time"}
	}
	c.parts, c.signatures = [5][]byte{values[0], v.dot, values[1], v.dot, d.Body}, values[2]
	return c, nil
}

// splitSignatures returns the signatures of v1 and v1a in a list. It skips other versions.
func splitSignatures(list []byte) (shared, asymmetric [][]byte) {
	for item := range bytes.SplitSeq(list, []byte(" ")) {
		version, signature, _ := bytes.Cut(item, []byte(","))
		switch string(version) {
		case "v1":
			shared = append(shared, signature)
		case "v1a":
			asymmetric = append(asymmetric, signature)
		}
	}
	return shared, asymmetric
}

// renewSignature implements renewer. Of v1 and v1a, it renews only v1.
func (v *standard) renewSignature(d *Delivery, at time.Time) (Renewed, error) {
	set := v.headerPrefix(d)
	c, err := v.claimOf(d, set)
	if err != nil {
		return Renewed{}, err
	}
	shared, _ := splitSignatures(c.signatures)
	makers := makersOf(v.macs, inBase64, c.parts[:], shared)
	if len(makers) > 0 {
		return signer(signStandard).renewWith(d, makers, c.stamp, at)
	}
	if err := v.matchSignatures(set+"signature", c.signatures, c.parts[:]); err != nil {
		return Renewed{}, err
	}
	return Renewed{}, ErrNotRenewable // a public key matches it
}

// signStandard implements signer. It uses the header names of the received ID.
func signStandard(d *Delivery, keys []*mac, at time.Time) ([]naming.Field, error) {
	set := standardSet(d)
	id, _ := d.findHeader(set + "id")
	stamp := stampField(set+"timestamp", at, time.Second)
	var list []byte
	for i, m := range keys {
		if i > 0 {
			list = append(list, ' ')
		}
		list = append(append(list, "v1,"...),
			m.signParts(inBase64, id, []byte("."), stamp.Value, []byte("."), d.Body)...)
	}
	return []naming.Field{stamp, {Name: []byte(set + "signature"), Value: list}}, nil
}

func (v *standard) matchSignatures(part string, list []byte, parts [][]byte) error {
	shared, asymmetric := splitSignatures(list)
	if slices.ContainsFunc(v.macs, func(m *mac) bool { return m.matchesAny(inBase64, parts, shared) }) {
		return nil
	}
	if len(v.keys) > 0 && len(asymmetric) > maxSlowSignatures {
		return &SignatureError{v.scheme, Malformed, part, "has more than " + strconv.Itoa(maxSlowSignatures) +
			" v1a signatures"}
	}
	for _, s := range asymmetric {
		if v.memory.verifyEd25519(v.keys, decodeSignature(s), parts) {
			return nil
		}
	}
	if (len(v.macs) == 0 || len(shared) == 0) && (len(v.keys) == 0 || len(asymmetric) == 0) {
		return &SignatureError{v.scheme, Missing, part,
			"has no signature of a version for which a key is configured (v1: secret, v1a: public key)"}
	}
	return &SignatureError{v.scheme, Mismatch, part,
		"made with another secret, or changed on the way: the ID, the timestamp and the raw body"}
}

const signingPrefix = "whsec_"

func isSigningSecret(secret []byte) bool { return bytes.HasPrefix(secret, []byte(signingPrefix)) }

// signingSecrets returns the keys of the secrets. It decodes the base64 after whsec_, with or
// without padding, as the vendors' libraries do. A secret without the prefix yields two keys,
// decoded and as it is: some senders omit the prefix, and Polar does not encode its secrets.
// Stripe's secrets look the same and are used undecoded; they do not pass through here.
func signingSecrets(secrets [][]byte) ([][]byte, error) {
	if err := checkSecrets(secrets); err != nil {
		return nil, err
	}
	var keys [][]byte
	for i, s := range secrets {
		encoded, prefixed := bytes.CutPrefix(s, []byte(signingPrefix))
		key, err := anyBase64(encoded)
		switch {
		case err != nil && prefixed:
			return nil, fmt.Errorf("secret %d: give whsec_ and base64, as the sender shows it", i+1)
		case err == nil:
			keys = append(keys, key)
		}
		if !prefixed {
			keys = append(keys, s)
		}
	}
	return keys, nil
}

const unbrandedSet = "webhook-"

// standardSet returns the prefix of the headers of d. The two sets are never mixed, so that the
// signed ID is the event ID.
func standardSet(d *Delivery) string {
	if !d.hasHeader("webhook-id") && !d.hasHeader("webhook-signature") && d.hasHeader("svix-id") {
		return "svix-"
	}
	return unbrandedSet
}

// maxSlowSignatures bounds the Ed25519 signatures of one delivery that are tried, because each
// costs far more than a digest.
const maxSlowSignatures = 8

// decodeSignature returns the bytes of a signature, or nil if it is not base64.
func decodeSignature(text []byte) []byte {
	if out, ok := decodeBase64(text); ok {
		return out
	}
	return nil
}

func (s *sample) signStandard(id string) {
	s.addField("webhook-id", id)
	asymmetric := bytes.HasPrefix(s.secret, []byte(asymmetricPrefix))
	if s.unsigned || asymmetric {
		s.addField("webhook-timestamp", s.unixSeconds())
	}
	if asymmetric {
		signature := signWith[ed25519.PrivateKey](s, 0, []byte(id+"."+s.unixSeconds()+"."+string(s.request.Body)))
		s.addSigned("webhook-signature", "v1a,"+base64.StdEncoding.EncodeToString(signature))
		return
	}
	keys, err := signingSecrets([][]byte{s.secret})
	if err != nil {
		s.keepError(err)
		return
	}
	s.signRequest(keys[0], signStandard)
}
