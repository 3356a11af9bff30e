package sender

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
)

// privateKey reads the private key of a test pair: PEM, 64 hex digits (the seed of an Ed25519 key), or whsk_ and the base64
// of an Ed25519 seed or key.
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

// asymmetricPrefix marks the private keys of Standard Webhooks' version v1a.
const asymmetricPrefix = "whsk_"

// signWith signs with the private key that the secret is, which must be a K. algorithm 0 signs the message itself.
func signWith[K crypto.Signer](s *sample, algorithm crypto.Hash, message []byte) ([]byte, error) {
	key, err := privateKey(s.secret)
	if err != nil {
		return nil, err
	}
	if _, ok := key.(K); !ok {
		var want K
		return nil, fmt.Errorf("the private key is a %T where a %T is due", key, want)
	}
	if algorithm != 0 {
		h := algorithm.New()
		h.Write(message)
		message = h.Sum(nil)
	}
	return key.Sign(rand.Reader, message, algorithm)
}
