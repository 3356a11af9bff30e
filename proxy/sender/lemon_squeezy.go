package sender

import (
	"time"

	"hooklock/idem"
)

// LemonSqueezy returns the preset of LemonSqueezy.
func (known) LemonSqueezy() Preset {
	return Preset{
		Name: "lemon-squeezy", EventID: "{body.meta.event_name}/{body.data.type}/{body.data.id}/{body_sha256}",
		OnMismatch: idem.MismatchExecute, Retention: day,
		Labels:   map[string]string{"object": "{body.data.id}"},
		Strategy: idem.Wait, WaitTimeout: time.Second,
		Facts: Facts{
			Success: []int{200}, Retries: RetriesAll, RetriesFor: 155 * time.Second, IDSigned: true,
			RetriesOn: "after every answer but 200, three times: after 5, 25 and 125 s",
		},
		verify: asHMAC(Config{Header: "X-Signature"}),
		Page: Page{
			Title: "Lemon Squeezy", Workflow: `lemon-squeezy/{body.data.id ?? "other"}`,
			Secret: "The signing secret of the webhook.",
		},
		Sources: []string{"https://docs.lemonsqueezy.com/help/webhooks/webhook-requests",
			"https://docs.lemonsqueezy.com/help/webhooks/signing-requests"},
		Notes: []string{
			"The objects have an updated_at, so two changes have different bodies.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"meta":{"event_name":"order_created","test_mode":true},"data":{"type":"orders","id":%s,"attributes":{"status":"paid","updated_at":"`+rfc3339(s.happened)+`"}}}`, s.id)
			s.addField("X-Event-Name", "order_created")
			s.signBody("X-Signature", "", inHex)
		},
	}
}
