package sender

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Diagnose explains why a signature is not accepted: what it was compared with, and which change of
// the secret, the delivery or the settings would make it right. It shows no secret and no
// signature. It is too expensive to run for each delivery.
func Diagnose(c Config, d *Delivery, now time.Time) []string {
	v, err := New(c)
	if err != nil {
		return nil
	}
	var broken *SignatureError
	if !errors.As(v.Verify(d, now), &broken) {
		return nil
	}
	switch broken.Reason {
	case Missing:
		return signatureLikeHeaders(d)
	case TooOld, TooNew:
		return []string{"the signature itself is right"}
	}
	var found []string
	if m, ok := v.(*macVerifier); ok {
		found = append(found, m.describeSigned(d)...)
	}
	for _, t := range allTrials() {
		changed, delivery := c, *d
		if t.change(&changed, &delivery) && t.fitsDelivery(changed, &delivery, now) {
			found = append(found, "it is right "+t.text)
		}
	}
	return found
}

// signatureLikeHeaders lists the headers that may contain a signature.
func signatureLikeHeaders(d *Delivery) []string {
	var names []string
	for i := range d.Fields {
		name := string(d.Fields[i].Name)
		for _, word := range []string{"sign", "hmac", "digest", "token", "secret", "authorization", "verification",
			"webhook"} {
			if strings.Contains(strings.ToLower(name), word) {
				names = append(names, name)
				break
			}
		}
	}
	if len(names) == 0 {
		return []string{"no header of the delivery looks like a signature: check that the sender signs, and that " +
			"the proxy in front passes its headers on"}
	}
	return []string{"headers that may contain a signature: " + strings.Join(names, ", ")}
}

// describeSigned describes the content that the digest was computed over, piece by piece.
func (v *macVerifier) describeSigned(d *Delivery) []string {
	c := &claim{}
	if v.read(d, c) != nil {
		return nil
	}
	if len(c.urls) > 0 {
		c.parts[c.urlAt] = c.urls[0]
	}
	var pieces []string
	for _, p := range c.parts {
		pieces = append(pieces, describePiece(p, d))
	}
	return []string{fmt.Sprintf("the digest was made here over %s; with %d secret(s), and none fits",
		strings.Join(pieces, " + "), len(v.macs))}
}

// describePiece returns a piece for display: a short one literally.
func describePiece(piece []byte, d *Delivery) string {
	const short = 120
	if len(piece) > 0 && len(d.Body) > 0 && bytes.Equal(piece, d.Body) {
		return fmt.Sprintf("the body (%d bytes, SHA-256 %x)", len(piece), sha256.Sum256(piece))
	}
	if len(piece) <= short {
		return fmt.Sprintf("%q", piece)
	}
	return fmt.Sprintf("%d bytes", len(piece))
}

// trial is a change that may make a signature right. change reports whether it changed anything.
type trial struct {
	text   string
	change func(c *Config, d *Delivery) bool
}

func (t *trial) fitsDelivery(c Config, d *Delivery, now time.Time) bool {
	v, err := New(c)
	if err != nil {
		return false
	}
	err = v.Verify(d, now)
	var broken *SignatureError
	return err == nil || errors.As(err, &broken) && (broken.Reason == TooOld || broken.Reason == TooNew)
}

func allTrials() []trial {
	all := []trial{
		{"with the secret as it is without spaces, quotes or line breaks around it",
			eachSecret(func(s []byte) ([]byte, error) {
				return bytes.Trim(s, " \t\r\n\"'\x00\ufeff"), nil
			})},
		{"with the secret decoded from base64", eachSecret(anyBase64)},
		{"with the secret decoded from hex", eachSecret(hexBytes)},
		{"with the secret behind its whsec_, decoded from base64", eachSecret(func(s []byte) ([]byte, error) {
			return anyBase64(bytes.TrimPrefix(s, []byte(signingPrefix)))
		})},
		{"for the body without the line break at its end: it was added to what the sender sent",
			eachBody(func(b []byte) []byte {
				return bytes.TrimRight(b, "\r\n")
			})},
		{"for the body with a line break at its end: it was cut off what the sender sent",
			eachBody(func(b []byte) []byte {
				return append(bytes.Clone(b), '\n')
			})},
		{"for the body with CRLF at its end: it was cut off what the sender sent", eachBody(func(b []byte) []byte {
			return append(bytes.TrimRight(bytes.Clone(b), "\r\n"), "\r\n"...)
		})},
		{"for the body without the white space between its members: a proxy parsed and rewrote it",
			eachBody(func(b []byte) []byte {
				var compact bytes.Buffer
				if json.Compact(&compact, b) != nil {
					return b
				}
				return compact.Bytes()
			})},
		{"with https in public_url", publicScheme("http://", "https://")},
		{"with http in public_url", publicScheme("https://", "http://")},
		{"for the path with a / at its end", eachTarget(func(path, query string) string {
			return strings.TrimRight(path, "/") + "/" + query
		})},
		{"for the path without the / at its end", eachTarget(func(path, query string) string {
			return strings.TrimRight(path, "/") + query
		})},
		{"for the target without its query", eachTarget(func(path, _ string) string { return path })},
		{"with content: {body}", genericChange(func(c *Config) { c.Content, c.Timestamp = "", "" })},
	}
	for _, name := range []string{"hex", "base64"} {
		all = append(all, trial{"with encoding: " + name, genericChange(func(c *Config) { c.Encoding = name })})
	}
	for _, name := range []string{"sha1", "sha256", "sha512"} {
		all = append(all, trial{"with algorithm: " + name, genericChange(func(c *Config) { c.Algorithm = name })})
	}
	return all
}

// eachSecret returns a change that applies f to each secret.
func eachSecret(f func([]byte) ([]byte, error)) func(*Config, *Delivery) bool {
	return func(c *Config, _ *Delivery) bool {
		changed := false
		secrets := slices.Clone(c.Secrets)
		for i, s := range secrets {
			if other, err := f(s); err == nil && len(other) > 0 && !bytes.Equal(other, s) {
				secrets[i], changed = other, true
			}
		}
		c.Secrets = secrets
		return changed
	}
}

func eachBody(f func([]byte) []byte) func(*Config, *Delivery) bool {
	return func(_ *Config, d *Delivery) bool {
		other := f(d.Body)
		changed := !bytes.Equal(other, d.Body)
		d.Body = other
		return changed
	}
}

func eachTarget(f func(path, query string) string) func(*Config, *Delivery) bool {
	return func(c *Config, d *Delivery) bool {
		path, query, asked := strings.Cut(string(d.Target), "?")
		if asked {
			query = "?" + query
		}
		other := f(path, query)
		changed := other != string(d.Target) && c.PublicURL != ""
		d.Target = []byte(other)
		return changed
	}
}

func publicScheme(from, to string) func(*Config, *Delivery) bool {
	return func(c *Config, _ *Delivery) bool {
		rest, ok := strings.CutPrefix(c.PublicURL, from)
		c.PublicURL = to + rest
		return ok
	}
}

// genericChange returns a change of the settings of the scheme hmac.
func genericChange(f func(*Config)) func(*Config, *Delivery) bool {
	return func(c *Config, _ *Delivery) bool {
		f(c)
		return c.Scheme == "hmac"
	}
}
