package sender

import (
	"encoding/base64"
	"errors"

	"hooklock/idem"
)

// Airtable returns the preset of Airtable.
func (known) Airtable() Preset {
	return Preset{
		Name: "airtable", EventID: "{body.base.id}/{body.webhook.id}/{body.timestamp}",
		OnMismatch: idem.MismatchExecute,
		Facts: Facts{
			Success: []int{204, 200}, IDSigned: true, States: true,
		},
		verify: asHMAC(Config{Header: airtableHeader, Prefix: "hmac-sha256=", SecretEncoding: "base64"}),
		key:    keyBase64,
		Page: Page{
			Title: "Airtable", Workflow: `airtable/{body.webhook.id ?? "other"}`,
			Secret: "The `macSecretBase64` of the webhook, undecoded. Airtable shows it once, when you create the " +
				"webhook.",
			SampleID: "appSample/ach_one/2026-01-01T00:00:00.000Z",
		},
		Sources: []string{"https://airtable.com/developers/web/api/webhooks-overview",
			"https://airtable.com/developers/web/api/webhook-notification", "pyairtable models.WebhookNotification"},
		Notes: []string{
			"A notification says only that something changed; the service fetches the changes.",
			"If a retry has a new timestamp, it runs again, and the service finds nothing new.",
			"A failed notification may come again: Airtable's API has a retry_number. Answer 204 without a body.",
		},
		sample: func(s *sample) {
			s.setBody(`{"base":{"id":"appSample"},"webhook":{"id":%s},"timestamp":"`+rfc3339(s.happened)+`"}`, s.prefixedID("ach_"))
			key, err := base64.StdEncoding.DecodeString(string(s.secret))
			if err != nil {
				s.keepError(errors.New("give the secret in base64, as macSecretBase64 has it"))
			}
			s.addSigned(airtableHeader, "hmac-sha256="+s.keyedSHA256(key, inHex, string(s.request.Body)))
		},
	}
}

const airtableHeader = "X-Airtable-Content-MAC"
