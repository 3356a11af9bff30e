package sender

import (
	"time"

	"hooklock/idem"
)

// PagerDuty returns the preset of PagerDuty (webhooks v3).
func (known) PagerDuty() Preset {
	return Preset{
		Name: "pagerduty", EventID: "{body.event.id}", OnMismatch: idem.MismatchReplay, Strategy: idem.Wait,
		WaitTimeout: 2 * time.Second, Respond: only5xx(),
		Facts: Facts{
			Timeout: 5 * time.Second, Retries: RetriesSome, RetriesFor: 20 * time.Minute, IDSigned: true,
			RetriesOn: "after 5xx, 429 and timeouts, up to 4 times over about 20 min; any other 4xx drops the event",
			GivesUp:   "disabled for 24 h after 3 dropped events in a row; queued events are dropped",
		},
		verify: asHMAC(Config{From: []string{"header.X-PagerDuty-Signature[v1]"}}),
		Page: Page{
			Title: "PagerDuty", Workflow: `pagerduty/{body.event.data.id ?? "other"}`,
			Secret:   "The secret of the webhook subscription. PagerDuty shows it once, when you create that.",
			SampleID: "one",
		},
		Sources: []string{"https://developer.pagerduty.com/docs/webhooks-overview",
			"PagerDuty/developer-docs docs/webhooks/02-Behavior.md",
			"PagerDuty/developer-docs docs/webhooks/04-Signatures.md", "github.com/PagerDuty/go-pagerduty v1.8.0"},
		Notes: []string{
			"PagerDuty holds back later events while it retries one.",
			"Two subscriptions on one URL get the same event ID: give each its own route.",
		},
		sample: func(s *sample) {
			s.setBody(`{"event":{"id":%s,"event_type":"incident.triggered","resource_type":"incident","occurred_at":"`+
				rfc3339(s.happened)+`","data":{"id":"PGR0VU2","type":"incident"}}}`, s.id)
			s.signBody("X-PagerDuty-Signature", "v1=", inHex)
		},
	}
}
