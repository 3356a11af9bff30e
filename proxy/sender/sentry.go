package sender

import (
	"time"

	"hooklock/idem"
)

// Sentry returns the preset of Sentry (integration platform).
func (known) Sentry() Preset {
	return Preset{
		Name: "sentry", EventID: "{header.Request-ID}", OnMismatch: idem.MismatchExecute,
		WaitTimeout: 250 * time.Millisecond,
		Facts: Facts{
			Timeout: time.Second,
			GivesUp: "unsubscribed after 1000 timeouts within 24 h, except published integrations",
			Changes: "Request-ID and Sentry-Hook-Timestamp, if it sends again at all",
		},
		verify: asHMAC(Config{Header: "Sentry-Hook-Signature"}),
		Page: Page{
			Title:    "Sentry",
			Workflow: `sentry/{body.data.issue.id ?? body.data.event.issue_id ?? body.installation.uuid ?? "other"}`,
			Secret:   "The client secret of the integration.",
			SampleID: "one",
		},
		Sources: []string{"https://docs.sentry.io/integrations/integration-platform/webhooks/",
			"https://sentry.io/changelog/2023-10-3-change-to-integration-platform-webhook-handling",
			"getsentry/sentry src/sentry/sentry_apps/api/serializers/app_platform_event.py"},
		Notes: []string{
			"Request-ID is new for each request, so a retry runs again, as without Hooklock. The body is no ID: two " +
				"events can have the same.",
			"Requests of UI components (issue links, alert actions) need their own answer: give them another route, " +
				"or none.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"action":"created","installation":{"uuid":"7a485448-a9e2-4c85-8a3c-4f44175783c9"},"data":{"issue":{"id":"1","title":%s}},"actor":{"type":"application","id":"sentry","name":"Sentry"}}`, s.id)
			s.addField("Request-ID", s.id)
			s.addField("Sentry-Hook-Resource", "issue")
			s.addField("Sentry-Hook-Timestamp", s.unixSeconds())
			s.signBody("Sentry-Hook-Signature", "", inHex)
		},
	}
}
