package sender

import (
	"time"

	"hooklock/idem"
)

// Calendly returns the preset of Calendly.
func (known) Calendly() Preset {
	return Preset{
		Name: "calendly", EventID: "{body.event}/{body.payload.uri}/{body.created_at}",
		OnMismatch: idem.MismatchExecute,
		Facts: Facts{
			Timeout: 15 * time.Second, Retries: RetriesAll, RetriesFor: day, SignedTime: TimeInHeader, IDSigned: true,
			RetriesOn: "after 3xx, 4xx and 5xx, at growing intervals for 24 h, or until 24 h after the meeting",
			Limits:    []Limit{{For: 24 * time.Hour}},
			GivesUp:   "disabled after 24 h of failures; it must then be created again",
		},
		verify: asHMAC(Config{From: []string{"header.Calendly-Webhook-Signature[v1]"},
			Timestamp: "header.Calendly-Webhook-Signature[t]",
			Content:   "{header.Calendly-Webhook-Signature[t]}.{body}"}),
		Page: Page{
			Title: "Calendly", Workflow: `calendly/{body.payload.uri ?? "other"}`,
			Secret: "The webhook signing key: an OAuth app shows it on its page; with a personal access token it " +
				"is the `signing_key` of the subscription. Without one Calendly signs nothing: `scheme: none`.",
			SampleID: "invitee.created/https://api.calendly.com/scheduled_events/S/invitees/one/2026-01-01T00:00:00.000Z",
		},
		Sources: []string{"https://developer.calendly.com/api-docs/overview/webhooks/webhook-signatures",
			"https://developer.calendly.com/api-docs/overview/webhooks/webhook-timeouts",
			"https://developer.calendly.com/api-docs/overview/webhooks/webhook-errors"},
		Notes: []string{
			"A subscription of the organisation and one of a user both get the event. On one URL it runs once only " +
				"if the bodies are equal: give each its own route.",
		},
		sample: func(s *sample) {
			s.setBody(`{"event":"invitee.created","created_at":"`+rfc3339(s.happened)+
				`","created_by":"https://api.calendly.com/users/S","payload":{"uri":%s,"email":"a@example.com","status":"active"}}`,
				"https://api.calendly.com/scheduled_events/S/invitees/"+s.id)
			s.addSigned("Calendly-Webhook-Signature", "t="+s.unixSeconds()+",v1="+
				s.hmac256(inHex, s.unixSeconds(), ".", string(s.request.Body)))
		},
	}
}
