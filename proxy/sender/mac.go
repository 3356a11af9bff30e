package sender

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"sync"
)

// mac computes keyed digests under one secret. It reuses hash states that already contain the
// secret.
type mac struct{ states sync.Pool }

type macState struct {
	hash   hash.Hash
	prefix []byte // hashed first; for HubSpot's plain digests
	sum    [sha512.Size]byte
	text   [2 * sha512.Size]byte
}

func newMAC(newHash func() hash.Hash, secret []byte) *mac {
	secret = bytes.Clone(secret)
	m := &mac{}
	m.states.New = func() any { return &macState{hash: hmac.New(newHash, secret)} }
	return m
}

// newPrefixDigest returns a mac that computes the plain SHA-256 of the secret and the parts, as
// HubSpot's versions 1 and 2 do.
func newPrefixDigest(secret []byte) *mac {
	secret = bytes.Clone(secret)
	m := &mac{}
	m.states.New = func() any { return &macState{hash: sha256.New(), prefix: secret} }
	return m
}

// matchesAny reports whether one of the presented texts is the encoded digest of parts. It compares
// texts and not decoded bytes, so that a digest has one spelling.
func (m *mac) matchesAny(enc encoding, parts, presented [][]byte) bool {
	s := m.states.Get().(*macState)
	defer m.states.Put(s)
	text := s.text[:enc.encodedLength(s.hash.Size())]
	enc.encode(text, s.digestOf(parts))
	match := 0
	for _, p := range presented {
		match |= subtle.ConstantTimeCompare(text, p)
	}
	return match == 1
}

// signParts returns the encoded digest of parts.
func (m *mac) signParts(enc encoding, parts ...[]byte) []byte {
	s := m.states.Get().(*macState)
	defer m.states.Put(s)
	text := s.text[:enc.encodedLength(s.hash.Size())]
	enc.encode(text, s.digestOf(parts))
	return bytes.Clone(text)
}

func (s *macState) digestOf(parts [][]byte) []byte {
	s.hash.Reset()
	s.hash.Write(s.prefix)
	for _, p := range parts {
		s.hash.Write(p)
	}
	return s.hash.Sum(s.sum[:0])
}

// encoding is the text form of a digest.
type encoding uint8

const (
	inHex encoding = iota // lower case
	inBase64
)

func (e encoding) encodedLength(digest int) int {
	if e == inHex {
		return hex.EncodedLen(digest)
	}
	return base64.StdEncoding.EncodedLen(digest)
}

// usualSpelling returns a text as encode spells it: hex digits may come in upper case, and base64
// in the alphabet for URLs and without padding (RFC 4648 section 5).
func (e encoding) usualSpelling(text []byte) []byte {
	switch {
	case e == inHex && bytes.ContainsAny(text, "ABCDEF"):
		return bytes.ToLower(text)
	case e == inHex:
		return text
	}
	if len(text)%4 == 0 && !bytes.ContainsAny(text, "-_") {
		return text
	}
	usual := make([]byte, 0, len(text)+3)
	for _, c := range text {
		switch c {
		case '-':
			c = '+'
		case '_':
			c = '/'
		}
		usual = append(usual, c)
	}
	for len(usual)%4 != 0 {
		usual = append(usual, '=')
	}
	return usual
}

// possibleSpellings returns an encoded digest as senders may spell it. A longer spelling comes
// before one that it begins with. An unpadded one without any letter that tells is taken for that
// of URLs.
func (e encoding) possibleSpellings(text []byte) [][]byte {
	if e == inHex {
		return [][]byte{text, bytes.ToUpper(text)}
	}
	url := bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("+"), []byte("-")), []byte("/"), []byte("_"))
	return [][]byte{text, url, bytes.TrimRight(url, "="), bytes.TrimRight(text, "=")}
}

func (e encoding) encode(dst, digest []byte) {
	if e == inHex {
		hex.Encode(dst, digest)
		return
	}
	base64.StdEncoding.Encode(dst, digest)
}

// hashOf returns the hash function that the configuration calls algorithm.
func hashOf(algorithm string) (func() hash.Hash, error) {
	switch algorithm {
	case "sha1":
		return sha1.New, nil
	case "sha256":
		return sha256.New, nil
	case "sha512":
		return sha512.New, nil
	}
	return nil, fmt.Errorf("algorithm %q: give sha1, sha256 or sha512", algorithm)
}

// checkSecrets rejects an empty list and empty secrets: any client can make an HMAC under an empty
// key.
func checkSecrets(secrets [][]byte) error {
	if len(secrets) == 0 {
		return errNeedsSecret
	}
	for i, s := range secrets {
		if len(bytes.TrimSpace(s)) == 0 {
			return fmt.Errorf("secret %d is empty: %w", i+1, errNeedsSecret)
		}
	}
	return nil
}
