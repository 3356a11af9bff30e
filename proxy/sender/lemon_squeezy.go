package sender

import (
	"time"

	"hooklock/idem"
)

// LemonSqueezy is the sender of that name.
func (known) LemonSqueezy() Preset {
	return Preset{
		Name: "lemon-squeezy", EventID: "{body.meta.event_name}/{body.data.type}/{body.data.id}/{body_sha256}", OnMismatch: idem.MismatchExecute, Retention: day,
		Strategy: idem.Wait, WaitTimeout: time.Second,
		Facts: Facts{
			Success: []int{200}, Retries: RetriesAll, RetriesFor: 155 * time.Second, IDSigned: true,
			RetriesOn: "every answer but 200, three times: after 5, 25 and 125 s",
		},
		verify: asHMAC(Config{Header: "X-Signature"}),
		sample: sampleLemonSqueezy,
		Page: Page{
			Title: "Lemon Squeezy", Path: "/hooks/lemon-squeezy", Workflow: `lemon-squeezy/{body.data.id ?? "other"}`,
			Verify: "secret_file: /etc/hooklock/lemon-squeezy.secret",
			Secret: "The signing secret of the webhook.",
		},
		Sources: []string{"https://docs.lemonsqueezy.com/help/webhooks/webhook-requests", "https://docs.lemonsqueezy.com/help/webhooks/signing-requests"},
		Notes: []string{
			"Lemon Squeezy gives an event no ID: it is named by its kind, its object and the whole body. Its objects have an updated_at, so that two changes do not have the same body.",
			"It tries four times within three minutes, and then the event is lost: a delivery waits its turn.",
			"A resend by hand within the day of the retention gets the first answer; `hooklock executions forget` lets it run again.",
			"No time is signed. Lemon Squeezy documents 200 as the only success; Hooklock passes the upstream's status on as it is.",
		},
	}
}

func sampleLemonSqueezy(s *sample) error {
	s.body(`{"meta":{"event_name":"order_created","test_mode":true},"data":{"type":"orders","id":%s,"attributes":{"status":"paid","updated_at":"`+rfc3339(s.happened)+`"}}}`, s.id)
	s.add("X-Event-Name", "order_created")
	s.signBody("X-Signature", "", inHex)
	return nil
}
