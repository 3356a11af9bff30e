package sender

import (
	"crypto/sha1"

	"hooklock/idem"
)

// Intercom returns the preset of Intercom.
func (known) Intercom() Preset {
	return Preset{
		Name: "intercom", EventID: "{body.id}", OnMismatch: idem.MismatchReplay,
		Facts: Facts{
			IDSigned: true, Changes: "delivery_attempts, delivery_status, delivered_at",
			GivesUp: "paused for 15 min after 1000 errors in a row within 15 min; the subscription of a private app " +
				"is suspended after 7 days of errors",
		},
		verify: asHMAC(Config{Header: "X-Hub-Signature", Prefix: "sha1=", Algorithm: "sha1"}),
		Page: Page{
			Title: "Intercom", Workflow: `intercom/{body.data.item.id ?? "other"}`,
			Secret:   "The client secret of the app, from the Developer Hub.",
			SampleID: "notif_one",
		},
		Sources: []string{"https://developers.intercom.com/docs/webhooks/webhook-notifications",
			"https://developers.intercom.com/docs/references/webhooks/webhook-models"},
		Notes: []string{
			"429 makes Intercom slow down for everything, so no refusal is 429. An endpoint slower than 500 ms gets " +
				"a lower priority.",
			"The signature is SHA-1.",
			"`ping`, sent when you save the webhook, is an ordinary delivery.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"type":"notification_event","app_id":"sample","id":%s,"topic":"contact.created","delivery_attempts":1,"created_at":`+s.unixSeconds()+`,"data":{"type":"notification_event_data","item":{"type":"contact","id":"1"}}}`, s.prefixedID("notif_"))
			s.addSigned("X-Hub-Signature", "sha1="+string(newMAC(sha1.New, s.secret).signParts(inHex, s.request.Body)))
		},
	}
}
