package sender

import "hooklock/idem"

// Figma returns the preset of Figma.
func (known) Figma() Preset {
	return Preset{
		Name: "figma", EventID: `{body.webhook_id}/{body.event_type}/{body.timestamp}/{body.file_key ?? "-"}`,
		OnMismatch: idem.MismatchExecute,
		Facts:      Facts{GivesUp: "one 400 stops the webhook for good"},
		verify:     asToken("body.passcode"),
		Page: Page{
			Title: "Figma", Workflow: `figma/{body.file_key ?? body.webhook_id ?? "other"}`,
			Secret:   "The passcode that you gave when you created the webhook.",
			SampleID: "w1/FILE_UPDATE/2026-01-01T00:00:00.000Z/one",
		},
		Sources: []string{"https://developers.figma.com/docs/rest-api/webhooks-security",
			"https://developers.figma.com/docs/rest-api/webhooks"},
		Notes: []string{
			"The passcode is a member of the body: whoever knows it can make any event.",
			"`PING`, sent when you create a webhook, is an ordinary delivery.",
		},
		sample: func(s *sample) {
			var passcode string
			if !s.unsigned {
				passcode = string(s.secret)
			}
			s.setBody(`{"event_type":"FILE_UPDATE","file_key":%s,"file_name":"sample","passcode":%s,"timestamp":"`+
				rfc3339(s.happened)+`","webhook_id":"w1"}`, s.id, passcode)
		},
	}
}
