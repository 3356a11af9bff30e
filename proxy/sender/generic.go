package sender

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// newGenericHMAC is the scheme hmac: a digest over what Content says, in the header that Header names.
func newGenericHMAC(c Config) (Verifier, error) {
	if c.Header == "" {
		return nil, errors.New("give header: the one that carries the signature")
	}
	if c.Algorithm == "" {
		c.Algorithm = "sha256"
	}
	enc, err := encodingOf(c.Encoding)
	if err != nil {
		return nil, err
	}
	pieces, err := parseContent(c.Content)
	if err != nil {
		return nil, err
	}
	var url *publicURL
	if slices.ContainsFunc(pieces, func(p contentPiece) bool { return p.source == "url" }) {
		if url, err = parsePublicURL(c.PublicURL); err != nil {
			return nil, err
		}
	}
	v, err := newBodyMAC(c, c.Algorithm, c.Prefix, enc, c.Header)
	if err != nil {
		return nil, err
	}
	v.covers = contentOrBody(c.Content)
	signature := v.read
	v.read = func(d *Delivery, cl *claim) error {
		if err := signature(d, cl); err != nil {
			return err
		}
		if enc == inHex {
			cl.signatures[0] = lowerHex(cl.signatures[0])
		}
		cl.parts = cl.parts[:0]
		for i := range pieces {
			value, err := pieces[i].value(c.Scheme, d, url)
			if err != nil {
				return err
			}
			cl.parts = append(cl.parts, value)
		}
		return nil
	}
	return v, nil
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

// lowerHex makes lower case of hex digits; there are senders that write them in upper case.
func lowerHex(text []byte) []byte {
	if !bytes.ContainsAny(text, "ABCDEF") {
		return text
	}
	return bytes.ToLower(text)
}

// contentPiece is literal text or one source of the signed content.
type contentPiece struct {
	literal []byte
	source  string // body, method, url or header; empty for literal text
	header  string
}

func contentOrBody(content string) string {
	if content == "" {
		return "{body}"
	}
	return content
}

// parseContent reads literal text and {body}, {method}, {url}, {header.X}.
func parseContent(content string) ([]contentPiece, error) {
	rest := contentOrBody(content)
	var pieces []contentPiece
	for rest != "" {
		text, after, braced := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return nil, fmt.Errorf("content %q: a } without its {", content)
		}
		if text != "" {
			pieces = append(pieces, contentPiece{literal: []byte(text)})
		}
		if !braced {
			break
		}
		name, end, closed := strings.Cut(after, "}")
		header, isHeader := strings.CutPrefix(name, "header.")
		switch {
		case !closed:
			return nil, fmt.Errorf("content %q: a { without its }", content)
		case isHeader && header != "":
			pieces = append(pieces, contentPiece{source: "header", header: header})
		case name == "body" || name == "method" || name == "url":
			pieces = append(pieces, contentPiece{source: name})
		default:
			return nil, fmt.Errorf("content %q: {%s} is unknown; give {body}, {method}, {url} or {header.X}", content, name)
		}
		rest = end
	}
	if !slices.ContainsFunc(pieces, func(p contentPiece) bool { return p.source != "" }) {
		return nil, fmt.Errorf("content %q: names nothing of the delivery, so that one signature would fit all; give {body}", content)
	}
	return pieces, nil
}

func (p *contentPiece) value(scheme string, d *Delivery, url *publicURL) ([]byte, error) {
	switch p.source {
	case "body":
		return d.Body, nil
	case "method":
		return d.Method, nil
	case "url":
		return url.of(scheme, d)
	case "header":
		return d.one(scheme, p.header)
	}
	return p.literal, nil
}

func contentCoverage(content string) Coverage {
	var cov Coverage
	pieces, _ := parseContent(content)
	for _, p := range pieces {
		switch p.source {
		case "body":
			cov.Body = true
		case "method":
			cov.Method = true
		case "url":
			cov.URL = true
		case "header":
			cov.Headers = append(cov.Headers, p.header)
		}
	}
	return cov
}

// token is a shared secret that the sender puts into a header as it is. It covers nothing of the delivery.
type token struct {
	scheme, header, prefix string
	digests                [][sha256.Size]byte // of the secrets: comparing digests hides their length, too
}

func newToken(c Config) (Verifier, error) {
	if c.Header == "" {
		return nil, errors.New("give header: the one that carries the token")
	}
	if err := checkSecrets(c.Secrets); err != nil {
		return nil, err
	}
	v := &token{scheme: c.Scheme, header: c.Header, prefix: c.Prefix}
	for _, s := range c.Secrets {
		v.digests = append(v.digests, sha256.Sum256(s))
	}
	return v, nil
}

func (v *token) head(d *Delivery) error { return v.Verify(d, time.Time{}) }

// Verify implements Verifier.
func (v *token) Verify(d *Delivery, _ time.Time) error {
	value, err := d.one(v.scheme, v.header)
	if err != nil {
		return err
	}
	if value, err = cutPrefix(v.scheme, v.header, value, v.prefix); err != nil {
		return err
	}
	presented := sha256.Sum256(value)
	match := 0
	for i := range v.digests {
		match |= subtle.ConstantTimeCompare(presented[:], v.digests[i][:])
	}
	if match == 1 {
		return nil
	}
	return &SignatureError{v.scheme, Mismatch, v.header, "is another token than the configured one"}
}

type none struct{}

func newNone(Config) (Verifier, error) { return none{}, nil }

func (none) Verify(*Delivery, time.Time) error { return nil }
