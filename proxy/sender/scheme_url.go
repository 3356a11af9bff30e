package sender

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Schemes that sign the public URL: Twilio, Square, HubSpot.

const (
	twilioHeader = "X-Twilio-Signature"
	squareHeader = "x-square-hmacsha256-signature"

	hubspotV3     = "X-HubSpot-Signature-v3"
	hubspotTime   = "X-HubSpot-Request-Timestamp"
	hubspotLegacy = "X-HubSpot-Signature"
)

// newTwilio: https://www.twilio.com/docs/usage/security. It signs the URL with or without its port, and then either each
// form parameter, or, through the query parameter bodySHA256, the digest of another body.
func newTwilio(c Config) (Verifier, error) {
	public, err := parsePublicURL(c.PublicURL)
	if err != nil {
		return nil, err
	}
	keys, err := macs(c, sha1.New)
	if err != nil {
		return nil, err
	}
	v := &macVerifier{scheme: c.Scheme, macs: keys, encoding: inBase64, digest: sha1.Size, part: twilioHeader}
	v.covers = "the public URL with its query, and the form parameters; look at public_url, too"
	v.read = func(d *Delivery, cl *claim) error {
		signature, err := d.one(c.Scheme, twilioHeader)
		if err != nil {
			return err
		}
		cl.signatures = append(cl.signatures, signature)
		bases := []string{public.base, public.withoutPort, public.withPort}
		slices.Sort(bases)
		for _, base := range slices.Compact(bases) {
			url, err := join(c.Scheme, base, d)
			if err != nil {
				return err
			}
			cl.urls = append(cl.urls, url)
		}
		cl.parts = append(cl.parts, nil) // the URL's place
		return twilioBody(c.Scheme, d, cl)
	}
	return v, nil
}

// twilioBody adds the form parameters to the claim, or checks the digest of the body. A body of which nothing is signed is
// refused, and so is one that disagrees with the URL's digest, whatever its type: else the type, which is not signed, could
// be changed to get around the digest.
func twilioBody(scheme string, d *Delivery, cl *claim) error {
	digest, given, err := bodySHA256(scheme, d.Target)
	if err != nil {
		return err
	}
	if given {
		sum := sha256.Sum256(d.Body)
		if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(sum[:])), []byte(digest)) != 1 {
			return &SignatureError{scheme, Mismatch, "query.bodySHA256", "is not the SHA-256 of the body: the body was changed on the way"}
		}
	}
	if isForm(d) {
		form, err := url.ParseQuery(string(d.Body))
		if err != nil {
			return &SignatureError{scheme, Malformed, "form", "the body is no form that can be read in one way only"}
		}
		cl.parts = appendForm(cl.parts, form)
		return nil
	}
	if !given && len(d.Body) > 0 {
		return &SignatureError{scheme, Missing, "query.bodySHA256", "nothing signs this body: it is no form, and the URL has no bodySHA256"}
	}
	return nil
}

// bodySHA256 finds the query parameter of that name.
func bodySHA256(scheme string, target []byte) (digest string, given bool, err error) {
	_, query, _ := bytes.Cut(target, []byte("?"))
	for item := range bytes.SplitSeq(query, []byte("&")) {
		name, value, _ := bytes.Cut(item, []byte("="))
		if string(name) != "bodySHA256" {
			continue
		}
		if given {
			return "", false, &SignatureError{scheme, Malformed, "query.bodySHA256", "given more than once"}
		}
		digest, given = strings.ToLower(string(value)), true
	}
	return digest, given, nil
}

func isForm(d *Delivery) bool {
	kind, count := d.header("Content-Type")
	kind, _, _ = bytes.Cut(kind, []byte(";"))
	return count == 1 && equalName(bytes.TrimSpace(kind), "application/x-www-form-urlencoded")
}

// appendForm adds each name and value, names sorted, the values of one name sorted and without repetition.
func appendForm(parts [][]byte, form url.Values) [][]byte {
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := slices.Compact(slices.Sorted(slices.Values(form[name])))
		for _, value := range values {
			parts = append(parts, []byte(name), []byte(value))
		}
	}
	return parts
}

// newSquare: https://developer.squareup.com/docs/webhooks/step3validate. The URL is the one registered, letter for letter.
func newSquare(c Config) (Verifier, error) {
	public, err := parsePublicURL(c.PublicURL)
	if err != nil {
		return nil, err
	}
	v, err := newBodyMAC(c, "sha256", "", inBase64, squareHeader)
	if err != nil {
		return nil, err
	}
	v.covers = "the registered URL and the raw body; look at public_url, too"
	v.read = func(d *Delivery, cl *claim) error {
		signature, err := d.one(c.Scheme, squareHeader)
		if err != nil {
			return err
		}
		url, err := public.of(c.Scheme, d)
		if err != nil {
			return err
		}
		cl.signatures = append(cl.signatures, signature)
		cl.parts = append(cl.parts, url, d.Body)
		return nil
	}
	return v, nil
}

// newHubSpot: https://developers.hubspot.com/docs/guides/apps/authentication/validating-requests. Versions 1 and 2 are
// plain digests without a time, and only read when the configuration asks for them: HubSpot sends old and new side by
// side, and whoever captured a delivery could drop the new one.
func newHubSpot(c Config) (Verifier, error) {
	switch c.Algorithm {
	case "", "v3":
		return newHubSpotV3(c)
	case "v1", "v2":
		return newHubSpotLegacy(c)
	}
	return nil, fmt.Errorf("algorithm %q: give v3, or v1 or v2 for the older signatures", c.Algorithm)
}

func newHubSpotV3(c Config) (Verifier, error) {
	public, err := parsePublicURL(c.PublicURL)
	if err != nil {
		return nil, err
	}
	v, err := sha256MACs(c)
	if err != nil {
		return nil, err
	}
	v.encoding, v.part = inBase64, hubspotV3
	v.covers = "the method, the public URL, the raw body and the timestamp; look at public_url, too"
	v.read = func(d *Delivery, cl *claim) error {
		if !d.has(hubspotV3) && d.has(hubspotLegacy) {
			return &SignatureError{c.Scheme, Missing, hubspotV3, "only an older signature came: set algorithm to v1 or v2 to accept it"}
		}
		signature, err := d.one(c.Scheme, hubspotV3)
		if err != nil {
			return err
		}
		stamp, err := d.one(c.Scheme, hubspotTime)
		if err != nil {
			return err
		}
		url, err := public.of(c.Scheme, d)
		if err != nil {
			return err
		}
		cl.signatures = append(cl.signatures, signature)
		cl.parts = append(cl.parts, d.Method, url, d.Body, stamp)
		return cl.setTime(c.Scheme, hubspotTime, stamp, time.Millisecond)
	}
	return v, nil
}

func newHubSpotLegacy(c Config) (Verifier, error) {
	if err := checkSecrets(c.Secrets); err != nil {
		return nil, err
	}
	v := &macVerifier{scheme: c.Scheme, digest: sha256.Size, part: hubspotLegacy, covers: coversBody}
	for _, secret := range c.Secrets {
		v.macs = append(v.macs, newPrefixDigest(secret))
	}
	var public *publicURL
	if c.Algorithm == "v2" {
		var err error
		if public, err = parsePublicURL(c.PublicURL); err != nil {
			return nil, err
		}
		v.covers = "the method, the public URL and the raw body; look at public_url, too"
	}
	v.read = func(d *Delivery, cl *claim) error {
		signature, err := d.one(c.Scheme, hubspotLegacy)
		if err != nil {
			return err
		}
		if version, count := d.header("X-HubSpot-Signature-Version"); count > 0 && string(version) != c.Algorithm {
			return &SignatureError{c.Scheme, Malformed, "X-HubSpot-Signature-Version", "is not the configured version " + c.Algorithm}
		}
		cl.signatures = append(cl.signatures, signature)
		if public != nil {
			url, err := public.of(c.Scheme, d)
			if err != nil {
				return err
			}
			cl.parts = append(cl.parts, d.Method, url)
		}
		cl.parts = append(cl.parts, d.Body)
		return nil
	}
	return v, nil
}
