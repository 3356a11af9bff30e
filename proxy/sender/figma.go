package sender

import (
	"time"

	"hooklock/idem"
)

// Figma is the sender of that name.
func (known) Figma() Preset {
	return Preset{
		Name: "figma", EventID: `{body.webhook_id}/{body.event_type}/{body.timestamp}/{body.file_key ?? "-"}`, OnMismatch: idem.MismatchExecute,
		Strategy: idem.Wait, WaitTimeout: time.Second, Respond: only5xx(),
		Facts:  Facts{GivesUp: "400 stops the webhook at once"},
		verify: asToken("body.passcode"),
		sample: sampleFigma,
		Page: Page{
			Title: "Figma", Path: "/hooks/figma", Workflow: `figma/{body.file_key ?? body.webhook_id ?? "other"}`,
			Verify:   "secret_file: /etc/hooklock/figma.secret",
			Secret:   "The passcode that was given when the webhook was made.",
			SampleID: "w1/FILE_UPDATE/2026-01-01T00:00:00.000Z/one",
		},
		Sources: []string{"https://developers.figma.com/docs/rest-api/webhooks-security", "https://developers.figma.com/docs/rest-api/webhooks"},
		Notes: []string{
			"Nothing is signed: the passcode is a member of the body, and who knows it can make any event.",
			"Figma stops a webhook for good that answers 400 to a wrong passcode: every refusal is 503.",
			"Figma gives an event no ID: webhook, kind, time and file name it, and a known one with another body runs.",
			"`PING`, which comes when a webhook is made, is an ordinary delivery.",
		},
	}
}

func sampleFigma(s *sample) error {
	var passcode string
	if !s.unsigned {
		passcode = string(s.secret)
	}
	s.body(`{"event_type":"FILE_UPDATE","file_key":%s,"file_name":"sample","passcode":%s,"timestamp":"`+rfc3339(s.happened)+`","webhook_id":"w1"}`, s.id, passcode)
	return nil
}
