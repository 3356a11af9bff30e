package sender

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"hooklock/idem"
)

// Twilio returns the preset of Twilio.
func (known) Twilio() Preset {
	return Preset{
		Name: "twilio", Methods: []string{"GET", "POST"}, EventID: "{header.I-Twilio-Idempotency-Token}",
		OnMismatch:  idem.MismatchExecute,
		WaitTimeout: 5 * time.Second,
		Facts: Facts{
			Timeout: 15 * time.Second, Retries: RetriesNever,
			UsesAnswer: usesEveryAnswer, Answer: "TwiML", RetriesOn: "only after failed connections, once",
		},
		verify: scheme{new: newTwilio, body: true, url: true},
		Page: Page{
			Title: "Twilio", Workflow: `twilio/{form.MessageSid ?? form.CallSid ?? "other"}`,
			Secret:   "The account's auth token. `public_url` is the origin of the URL that Twilio was given.",
			SampleID: "one",
		},
		Sources: []string{"twilio.com/docs/usage/webhooks/webhooks-connection-overrides",
			"twilio.com/docs/usage/security", "twilio/twilio-go client/request_validator.go"},
		Notes: []string{
			"With `#rp=5xx` at the end of the URL, Twilio retries a 503, too.",
			"GET is a delivery here. HEAD is refused, because a service would do for it what it does for GET.",
			"Twilio signs the public URL with or without its port, and joins form parameters without separators: " +
				"ab=c and a=bc are signed alike.",
			"A fragment (`#rc=…`) never reaches Hooklock; whether Twilio signs it was not established.",
		},
		sample: func(s *sample) {
			form := url.Values{"MessageSid": {s.id}, "MessageStatus": {"delivered"}, "From": {"+15005550006"},
				"To": {"+15005550001"}}
			s.request.Body = []byte(form.Encode())
			s.setType("application/x-www-form-urlencoded; charset=UTF-8")
			s.addField("I-Twilio-Idempotency-Token", s.id)
			parts := appendForm([][]byte{[]byte(s.url)}, form)
			s.addSigned(twilioHeader, string(newMAC(sha1.New, s.secret).signParts(inBase64, parts...)))
		},
	}
}

const twilioHeader = "X-Twilio-Signature"

// newTwilio returns the verifier of https://www.twilio.com/docs/usage/security. Twilio signs the
// URL with or without its port, and then each form parameter or, through the query parameter
// bodySHA256, the digest of another body.
func newTwilio(c Config) (Verifier, error) {
	public, err := parsePublicURL(c.PublicURL)
	if err != nil {
		return nil, err
	}
	if err := checkSecrets(c.Secrets); err != nil {
		return nil, err
	}
	v, err := newKeyedVerifier(c, sha1.New)
	if err != nil {
		return nil, err
	}
	v.encoding, v.part = inBase64, twilioHeader
	v.covers = "the public URL with its query, and the form parameters; check public_url, too"
	v.read = func(d *Delivery, cl *claim) error {
		signature, err := d.requireOne(c.Scheme, twilioHeader)
		if err != nil {
			return err
		}
		cl.signatures = append(cl.signatures, signature)
		bases := []string{public.base, public.withoutPort, public.withPort}
		slices.Sort(bases)
		for _, base := range slices.Compact(bases) {
			url, err := joinTarget(c.Scheme, base, d)
			if err != nil {
				return err
			}
			cl.urls = append(cl.urls, url)
		}
		cl.parts = append(cl.parts, nil) // replaced by each URL
		return twilioBody(c.Scheme, d, cl)
	}
	return v, nil
}

// twilioBody adds the form parameters to the claim, or checks the digest of the body. It rejects a
// body that is not signed at all, and one that differs from the digest in the URL, whatever its
// type: otherwise a change of the type, which is not signed, would bypass the digest.
func twilioBody(scheme string, d *Delivery, cl *claim) error {
	digest, given, err := bodySHA256(scheme, d.Target)
	if err != nil {
		return err
	}
	if given {
		sum := sha256.Sum256(d.Body)
		if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(sum[:])), []byte(digest)) != 1 {
			return &SignatureError{scheme, Mismatch, "query.bodySHA256",
				"is not the SHA-256 of the body: the body was changed on the way"}
		}
	}
	if isForm(d) {
		form, err := url.ParseQuery(string(d.Body))
		if err != nil {
			return &SignatureError{scheme, Malformed, "form", "the body is not a form, or can be read in two ways"}
		}
		cl.parts = appendForm(cl.parts, form)
		return nil
	}
	if !given && len(d.Body) > 0 {
		return &SignatureError{scheme, Missing, "query.bodySHA256",
			"this body is not signed: it is not a form, and the URL has no bodySHA256"}
	}
	return nil
}

// bodySHA256 returns the query parameter bodySHA256.
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
	kind, count := d.findHeader("Content-Type")
	kind, _, _ = bytes.Cut(kind, []byte(";"))
	return count == 1 && equalName(bytes.TrimSpace(kind), "application/x-www-form-urlencoded")
}

// appendForm appends each name and value. Names are sorted; the values of a name are sorted and
// unique.
func appendForm(parts [][]byte, form url.Values) [][]byte {
	for _, name := range slices.Sorted(maps.Keys(form)) {
		for _, value := range slices.Compact(slices.Sorted(slices.Values(form[name]))) {
			parts = append(parts, []byte(name), []byte(value))
		}
	}
	return parts
}
