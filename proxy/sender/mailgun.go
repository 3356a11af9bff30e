package sender

import (
	"strings"
	"time"

	"hooklock/idem"
)

// Mailgun is the sender of that name.
func (known) Mailgun() Preset {
	return Preset{
		Name: "mailgun", EventID: "{body.event-data.id}", OnMismatch: idem.MismatchExecute, Strategy: idem.Wait,
		Facts: Facts{
			Success: []int{200}, Retries: RetriesSome, RetriesFor: 8 * time.Hour, SignedTime: TimeInBody,
			RetriesOn: "all but 200 and 406, over 8 hours; delivered mail never",
		},
		verify: scheme{new: newMailgun, aged: true},
		sample: sampleMailgun,
		Page: Page{
			Title: "Mailgun", Path: "/hooks/mailgun", Workflow: `mailgun/{body.event-data.message.headers.message-id ?? "other"}`,
			Verify:   "secret_file: /etc/hooklock/mailgun.secret",
			Secret:   "The HTTP webhook signing key of the account.",
			SampleID: "one",
		},
		Renewal: RenewalImpossible,
		Sources: []string{"documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-retries", "mailgun/mailgun-go webhooks.go"},
		Notes: []string{
			"Waits its turn, because Mailgun does not retry notifications of delivered mail. Any status but 200 and 406 is retried otherwise; 406 is never sent.",
			"The signature covers a timestamp and a token, not the event: who captured one signature can put it on any event, until the secret changes.",
			"That the ID is the same on a retry is likely, not documented; a known ID with another body runs.",
		},
	}
}

// newMailgun: https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks. The signature covers a timestamp and a
// token, not the event: one captured signature fits any event.
func newMailgun(c Config) (Verifier, error) {
	v, err := sha256MACs(c)
	if err != nil {
		return nil, err
	}
	v.part = "body.signature.signature"
	v.covers = "signature.timestamp and signature.token"
	v.read = func(d *Delivery, cl *claim) error {
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
		stamp, _ := text(signed, "timestamp")
		nonce, _ := text(signed, "token")
		signature := signed.GetStringBytes("signature")
		if len(stamp) == 0 || len(nonce) == 0 || len(signature) == 0 {
			return &SignatureError{c.Scheme, Missing, "body.signature", "timestamp, token or signature is not there"}
		}
		cl.signatures = append(cl.signatures, signature)
		cl.parts = append(cl.parts, stamp, nonce)
		return cl.setTime(c.Scheme, "body.signature.timestamp", stamp, time.Second)
	}
	return v, nil
}

func sampleMailgun(s *sample) error {
	var signature string
	nonce := strings.Repeat("a", 40) + s.seconds()
	if !s.unsigned {
		signature = s.hmac256(inHex, s.seconds(), nonce)
	}
	s.body(`{"signature":{"timestamp":"`+s.seconds()+`","token":%s,"signature":%s},"event-data":{"id":%s,"event":"opened"}}`, nonce, signature, s.id)
	return nil
}
