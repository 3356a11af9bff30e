package sender

import "hooklock/idem"

// Typeform returns the preset of Typeform.
func (known) Typeform() Preset {
	return Preset{
		Name: "typeform", EventID: "{body.event_id}", OnMismatch: idem.MismatchReplay,
		Facts:  Facts{IDSigned: true},
		verify: asHMAC(Config{Header: "Typeform-Signature", Prefix: "sha256=", Encoding: "base64"}),
		Page: Page{
			Title: "Typeform", Workflow: `typeform/{body.form_response.form_id ?? "other"}`,
			Secret:   "The secret of the webhook. Without one Typeform signs nothing: `scheme: none`.",
			SampleID: "one",
		},
		Sources: []string{"https://www.typeform.com/developers/webhooks/secure-your-webhooks/",
			"https://www.typeform.com/developers/webhooks/example-payload/"},
		Notes: []string{
			"`{body.form_response.token}` names the response.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"event_id":%s,"event_type":"form_response","form_response":{"form_id":"sample","token":%s,"submitted_at":"`+
					rfc3339(s.happened)+`","answers":[]}}`, s.id, "token_"+s.id)
			s.signBody("Typeform-Signature", "sha256=", inBase64)
		},
	}
}
