package sender

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// minRSA is the shortest RSA key that is accepted, in bits.
const minRSA = 2048

// publicKeys parses the configured keys. own parses the sender's own encoding of a key.
func publicKeys[K crypto.PublicKey](raw [][]byte, own func([]byte) (K, error), check func(K) error) ([]K, error) {
	if len(raw) == 0 {
		return nil, errNeedsKey
	}
	var keys []K
	for i, text := range raw {
		found, err := publicKeysOf(text, own)
		if err != nil {
			return nil, fmt.Errorf("public key %d: %w", i+1, err)
		}
		for _, k := range found {
			if err := check(k); err != nil {
				return nil, fmt.Errorf("public key %d: %w", i+1, err)
			}
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

func publicKeysOf[K crypto.PublicKey](text []byte, own func([]byte) (K, error)) ([]K, error) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil, fmt.Errorf("empty: %w", errNeedsKey)
	}
	if !bytes.Contains(text, []byte("-----BEGIN ")) {
		k, err := own(text)
		return []K{k}, err
	}
	var keys []K
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		any, err := parseBlock(block)
		if err != nil {
			return nil, err
		}
		k, ok := any.(K)
		if !ok {
			return nil, fmt.Errorf("is a %T, not a %T", any, k)
		}
		keys = append(keys, k)
	}
	// the decoder skips blocks that it cannot read, such as a newer key
	if n := bytes.Count(text, []byte("-----BEGIN ")); len(keys) < n {
		return nil, fmt.Errorf("%[2]d of %[1]d PEM blocks could not be read: copy them from the sender again, or "+
			"remove them", n, n-len(keys))
	}
	return keys, nil
}

func parseBlock(block *pem.Block) (crypto.PublicKey, error) {
	switch block.Type {
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	case "CERTIFICATE":
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return cert.PublicKey, nil
	}
	return nil, fmt.Errorf("PEM block %q: give a PUBLIC KEY or a CERTIFICATE", block.Type)
}

func onlyPEM(text []byte) (*rsa.PublicKey, error) {
	return nil, errors.New("give PEM: a PUBLIC KEY or a CERTIFICATE")
}

func checkRSA(k *rsa.PublicKey) error {
	if k.N.BitLen() < minRSA {
		return fmt.Errorf("RSA key of %d bits: give one of at least %d", k.N.BitLen(), minRSA)
	}
	return nil
}

func checkEd25519(ed25519.PublicKey) error { return nil }

func checkP256(k *ecdsa.PublicKey) error {
	if k.Curve != elliptic.P256() {
		return errors.New("give a key on the curve P-256")
	}
	return nil
}

// base64SPKI parses a key as SendGrid shows it: base64 of the DER form.
func base64SPKI(text []byte) (*ecdsa.PublicKey, error) {
	der, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return nil, fmt.Errorf("neither PEM nor base64: %w", err)
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, err
	}
	k, ok := parsed.(*ecdsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("is a %T, not an ECDSA key", parsed)
	}
	return k, nil
}

// hexEd25519 parses a key as Discord shows it.
func hexEd25519(text []byte) (ed25519.PublicKey, error) {
	key, err := hex.DecodeString(string(text))
	return ed25519Key(key, err, "64 hex digits, as the application's page shows them")
}

// parseWHPK parses a key of version v1a of Standard Webhooks.
func parseWHPK(text []byte) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.DecodeString(string(bytes.TrimPrefix(text, []byte("whpk_"))))
	return ed25519Key(key, err, "whpk_ and the base64 of 32 bytes")
}

func ed25519Key(key []byte, err error, want string) (ed25519.PublicKey, error) {
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("give PEM or " + want)
	}
	return key, nil
}

// decodeBase64 decodes a signature. It rejects line breaks and stray bits, which the standard
// decoder accepts, so that a signature has one spelling.
func decodeBase64(text []byte) ([]byte, bool) {
	if bytes.ContainsAny(text, "\r\n") {
		return nil, false
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(out, text)
	return out[:n], err == nil
}

func hexBytes(text []byte) ([]byte, error) { return hex.DecodeString(string(text)) }

// anyBase64 decodes a key in base64 or base64url, with or without padding: senders show either.
func anyBase64(text []byte) ([]byte, error) {
	plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(string(text), "="))
	return base64.RawStdEncoding.DecodeString(plain)
}

// Public keys come from the configuration; addresses of certificates in a delivery are ignored.

// scratch pools buffers for messages that must be contiguous, as Ed25519 requires.
type scratch struct{ pool sync.Pool }

func (s *scratch) verifyEd25519(keys []ed25519.PublicKey, signature []byte, parts [][]byte) bool {
	if len(signature) != ed25519.SignatureSize {
		return false
	}
	memory, _ := s.pool.Get().(*[]byte)
	if memory == nil {
		memory = new([]byte)
	}
	message := (*memory)[:0]
	for _, p := range parts {
		message = append(message, p...)
	}
	valid := false
	for _, k := range keys {
		valid = valid || ed25519.Verify(k, message, signature)
	}
	if cap(message) <= maxScratch {
		*memory = message
		s.pool.Put(memory)
	}
	return valid
}

// maxScratch bounds the size of a pooled buffer, in bytes.
const maxScratch = 1 << 20

func verifyRSA(keys []*rsa.PublicKey, algorithm crypto.Hash, message, signature []byte) bool {
	h := algorithm.New()
	h.Write(message)
	sum := h.Sum(nil)
	return slices.ContainsFunc(keys, func(k *rsa.PublicKey) bool {
		return rsa.VerifyPKCS1v15(k, algorithm, sum, signature) == nil
	})
}
