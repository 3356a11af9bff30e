package sender

import (
	"fmt"

	"hooklock/idem"
)

// DocuSign returns the preset of DocuSign (Connect).
func (known) DocuSign() Preset {
	var from []string
	for i := range 10 {
		from = append(from, fmt.Sprintf("header.X-DocuSign-Signature-%d", i+1))
	}
	return Preset{
		Name:       "docusign",
		EventID:    `{body.event}/{body.data.envelopeId}/{body.data.recipientId ?? "-"}/{body.generatedDateTime}`,
		OnMismatch: idem.MismatchReplay,
		Labels:     map[string]string{"envelope": "{body.data.envelopeId}"},
		Facts:      Facts{IDSigned: true, Changes: "retryCount"},
		verify:     asHMAC(Config{From: from, Encoding: "base64"}),
		Page: Page{
			Title: "DocuSign Connect", Workflow: `docusign/{body.data.envelopeId ?? "other"}`,
			Secret: "The Connect HMAC key. With several keys (up to ten) each delivery has a signature of each; " +
				"one match is enough.",
			SampleID: "envelope-completed/one/-/2026-01-01T00:00:00.000Z",
		},
		Sources: []string{"https://developers.docusign.com/platform/webhooks/connect/hmac/",
			"https://developers.docusign.com/platform/webhooks/connect/json-sim-event-model/"},
		Notes: []string{
			"For Connect configurations with JSON (SIM). With legacy XML the body is the key, unless `event_id` " +
				"names XML elements.",
			"If a retry has a new generatedDateTime, it runs again.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"event":"envelope-completed","apiVersion":"v2.1","uri":"/restapi/v2.1/accounts/a/envelopes/e","retryCount":0,"configurationId":1,"generatedDateTime":"`+rfc3339(s.happened)+`","data":{"accountId":"a","envelopeId":%s}}`, s.id)
			s.signBody("X-DocuSign-Signature-1", "", inBase64)
		},
	}
}
