package sender

import "hooklock/idem"

// Notion returns the preset of Notion.
func (known) Notion() Preset {
	return Preset{
		Name: "notion", EventID: "{body.subscription_id}/{body.id}", OnMismatch: idem.MismatchReplay,
		Facts:  Facts{IDSigned: true, Changes: "attempt_number"},
		verify: asHMAC(Config{Header: "X-Notion-Signature", Prefix: "sha256="}),
		Page: Page{
			Title: "Notion", Workflow: `notion/{body.entity.id ?? "other"}`,
			Secret: "The `verification_token` that Notion sends when you create the subscription. It signs " +
				"everything.",
			SampleID: "sub_sample/one",
		},
		Sources: []string{"https://developers.notion.com/reference/webhooks",
			"https://developers.notion.com/reference/webhooks-events-delivery", "@notionhq/client 5.26.0"},
		Notes: []string{
			"The first request brings the verification_token, unsigned, and is refused. To see it, set the " +
				"subscription up with `mode: observe` on the route. Enforce when the token is in the file.",
		},
		sample: func(s *sample) {
			s.setBody(`{"id":%s,"timestamp":"`+rfc3339(s.happened)+
				`","subscription_id":"sub_sample","integration_id":"int_sample","type":"page.content_updated","attempt_number":1,"entity":{"id":"page_sample","type":"page"},"data":{}}`, s.id)
			s.signBody("X-Notion-Signature", "sha256=", inHex)
		},
	}
}
