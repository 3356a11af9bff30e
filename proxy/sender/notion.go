package sender

import (
	"time"

	"hooklock/idem"
)

// Notion is the sender of that name.
func (known) Notion() Preset {
	return Preset{
		Name: "notion", EventID: "{body.subscription_id}/{body.id}", OnMismatch: idem.MismatchReplay, Strategy: idem.Wait, WaitTimeout: time.Second, Respond: only5xx(),
		Facts:  Facts{IDSigned: true, Changes: "attempt_number"},
		verify: asHMAC(Config{Header: "X-Notion-Signature", Prefix: "sha256="}),
		sample: sampleNotion,
		Page: Page{
			Title: "Notion", Path: "/hooks/notion", Workflow: `notion/{body.entity.id ?? "other"}`,
			Verify:   "secret_file: /etc/hooklock/notion.secret",
			Secret:   "The `verification_token` that Notion sends when the subscription is made: it is the key of all signatures.",
			SampleID: "sub_sample/one",
		},
		Sources: []string{"https://developers.notion.com/reference/webhooks", "https://developers.notion.com/reference/webhooks-events-delivery", "@notionhq/client 5.26.0"},
		Notes: []string{
			"The event ID is in the signed body. The body counts the attempts, so that the body does not decide.",
			"No time is signed: a copy within the retention is a duplicate, because the ID is signed.",
			"The first request brings the verification_token, which nothing can check, because it is the secret: it is refused here. To see it, set up the subscription with `mode: observe` on the route, so that it reaches the service, and enforce when the token is in the file.",
		},
	}
}

func sampleNotion(s *sample) error {
	s.body(`{"id":%s,"timestamp":"`+rfc3339(s.happened)+`","subscription_id":"sub_sample","integration_id":"int_sample","type":"page.content_updated","attempt_number":1,"entity":{"id":"page_sample","type":"page"},"data":{}}`, s.id)
	s.signBody("X-Notion-Signature", "sha256=", inHex)
	return nil
}
