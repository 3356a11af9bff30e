package sender

import (
	"crypto/sha256"
	"fmt"
	"hash"
)

// Schemes that sign only the raw body sign neither a time, so a captured delivery stays valid, nor
// a header with the event ID.

const coversBody = "the raw body"

func cutPrefix(scheme, part string, value []byte, prefix string) ([]byte, error) {
	if len(value) < len(prefix) || string(value[:len(prefix)]) != prefix {
		return nil, &SignatureError{scheme, Malformed, part, fmt.Sprintf("does not begin with %q", prefix)}
	}
	return value[len(prefix):], nil
}

// sha256MACs returns a verifier with an HMAC-SHA256 for each secret of c. The caller sets what it
// reads.
func sha256MACs(c Config) (*macVerifier, error) {
	if err := checkSecrets(c.Secrets); err != nil {
		return nil, err
	}
	return newKeyedVerifier(c, sha256.New)
}

// newKeyedVerifier returns a verifier for decoded keys, which may consist of white space.
func newKeyedVerifier(c Config, newHash func() hash.Hash) (*macVerifier, error) {
	v := &macVerifier{scheme: c.Scheme, digest: newHash().Size(), age: age{tolerance: c.Tolerance}}
	for i, key := range c.Secrets {
		if len(key) == 0 {
			return nil, fmt.Errorf("secret %d is empty: %w", i+1, errNeedsSecret)
		}
		v.macs = append(v.macs, newMAC(newHash, key))
	}
	return v, nil
}

func (s *sample) signBody(header, prefix string, enc encoding) {
	s.addSigned(header, prefix+s.hmac256(enc, string(s.request.Body)))
}
