package sender

import (
	"time"

	"hooklock/idem"
)

// Square returns the preset of Square.
func (known) Square() Preset {
	return Preset{
		Name: "square", EventID: "{body.event_id}", OnMismatch: idem.MismatchReplay,
		Facts: Facts{
			Timeout: 10 * time.Second, Retries: RetriesAll, RetriesFor: day, IDSigned: true,
			RetriesOn: "eleven times over 24 h",
		},
		verify: asHMAC(Config{Header: squareHeader, Encoding: "base64", Content: "{url}{body}"}),
		Page: Page{
			Title: "Square", Workflow: `square/{body.merchant_id ?? "other"}`,
			Secret:   "The signature key of the subscription. `public_url` is the origin of its notification URL.",
			SampleID: "one",
		},
		Sources: []string{"developer.squareup.com/docs/webhooks-overview",
			"square/square-nodejs-sdk tests/integration/webhooks.test.ts"},
		Notes: []string{
			"Square signs the registered URL letter for letter: `public_url` and the received target must make it.",
			"Every subscription to an event gets the same ID: give each its own route.",
		},
		sample: func(s *sample) {
			s.setBody(`{"merchant_id":"SAMPLE","type":"payment.updated","event_id":%s,"created_at":"`+s.rfc3339()+
				`","data":{"type":"payment","id":"p1"}}`, s.id)
			s.addSigned(squareHeader, s.hmac256(inBase64, s.url, string(s.request.Body)))
		},
	}
}

const squareHeader = "x-square-hmacsha256-signature"
