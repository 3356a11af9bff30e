package sender

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"hooklock/idem"
)

// Mailgun returns the preset of Mailgun.
func (known) Mailgun() Preset {
	return Preset{
		Name: "mailgun", ExtractID: mailgunID,
		IDText:     "digest of event-data; of an inbound message, the form without timestamp, token and signature",
		OnMismatch: idem.MismatchReplay, Strategy: idem.Wait,
		Facts: Facts{
			Success: []int{200}, Retries: RetriesSome, RetriesFor: 8 * time.Hour, SignedTime: TimeInBody,
			RetriesOn: "after all but 200 and 406, over 8 hours; notifications of delivered mail never",
			Changes:   "the signature, which is in the body",
		},
		verify: scheme{new: newMailgun, aged: true},
		Page: Page{
			Title:    "Mailgun",
			Workflow: `mailgun/{body.event-data.message.headers.message-id ?? "other"}`,
			Secret: "The HTTP webhook signing key of the account, or, for the events of subaccounts, that of the " +
				"primary account.",
		},
		Renewal: RenewalImpossible,
		Sources: []string{"documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks",
			"documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-retries",
			"mailgun/mailgun-go webhooks.go"},
		Notes: []string{
			"The signature covers a timestamp and a token, not the event: a captured one fits any event until the " +
				"secret changes.",
			"Mailgun promises the ID in event-data to be unique for a day only.",
			"A 406 would end the retries; Hooklock never sends it.",
			"Inbound messages (routes that forward to a URL) are forms, also with attachments: raise " +
				"`limits.request_body` for them. All fields and files except the signature's make the ID.",
		},
		sample: func(s *sample) {
			nonce := strings.Repeat("a", 40) + s.unixSeconds()
			s.setBody(`{"signature":{"timestamp":"`+s.unixSeconds()+
				`","token":%s,"signature":%s},"event-data":{"id":%s,"event":"opened"}}`,
				nonce, s.hmac256(inHex, s.unixSeconds(), nonce), s.id)
		},
	}
}

// newMailgun returns the verifier of
// https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks. The signature covers a
// timestamp and a token, not the event: a captured signature fits any event.
func newMailgun(c Config) (Verifier, error) {
	v, err := sha256MACs(c)
	if err != nil {
		return nil, err
	}
	v.part = "body.signature.signature"
	v.covers = "signature.timestamp and signature.token"
	v.read = func(d *Delivery, cl *claim) error {
		if fields, once, form := formFields(d, "timestamp", "token", "signature"); form {
			if !once {
				return &SignatureError{c.Scheme, Malformed, "form.signature",
					"timestamp, token or signature is given more than once"}
			}
			return cl.setMailgun(c.Scheme, "form.", []byte(fields["timestamp"]), []byte(fields["token"]),
				[]byte(fields["signature"]))
		}
		body, err := parseStrict(c.Scheme, d.Body)
		if err != nil {
			return err
		}
		if _, err := signedObject(c.Scheme, "body", body); err != nil {
			return err
		}
		signed, err := signedObject(c.Scheme, "body.signature", body, "signature")
		if err != nil {
			return err
		}
		stamp, _ := memberText(signed, "timestamp")
		nonce, _ := memberText(signed, "token")
		// The events of a subaccount are signed with the primary account's key, too.
		return cl.setMailgun(c.Scheme, "body.signature.", stamp, nonce, signed.GetStringBytes("signature"),
			signed.GetStringBytes("parent-signature"))
	}
	return v, nil
}

// setMailgun sets the claim of one signature, or of two over the same content.
func (c *claim) setMailgun(scheme, at string, stamp, nonce []byte, signatures ...[]byte) error {
	for _, s := range signatures {
		if len(s) > 0 {
			c.signatures = append(c.signatures, s)
		}
	}
	if len(stamp) == 0 || len(nonce) == 0 || len(c.signatures) == 0 {
		return &SignatureError{scheme, Missing, at + "signature", "timestamp, token or signature is missing"}
	}
	c.parts = append(c.parts, stamp, nonce)
	return c.setTime(scheme, at+"timestamp", stamp, time.Second)
}

// mailgunID returns the digest of the event without the signature.
func mailgunID(d *Delivery) EventID {
	h, buffer := sha256.New(), make([]byte, 4<<10)
	if eachFormPart(d, func(name, file string, value io.Reader) {
		switch name {
		case "timestamp", "token", "signature":
			return
		}
		content := sha256.New()
		_, _ = io.CopyBuffer(content, value, buffer) // eachFormPart reports a part that breaks off
		// quoted, so that different lists give different texts
		fmt.Fprintf(h, "%q %q %x\n", name, file, content.Sum(nil))
	}) {
		return foundID("mailgun form", hex.EncodeToString(h.Sum(nil)))
	}
	v, err := parseJSON(d.Body)
	if err != nil {
		return missingID
	}
	if n := countMember(v, "event-data"); n != 1 {
		return onceOrAmbiguous(n)
	}
	return foundID("event-data", digestWithout(v.Get("event-data")))
}
