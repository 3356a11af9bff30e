package sender

import (
	"time"

	"hooklock/idem"
)

// Paddle returns the preset of Paddle.
func (known) Paddle() Preset {
	return Preset{
		Name: "paddle", EventID: "{body.event_id}", OnMismatch: idem.MismatchReplay,
		Labels: map[string]string{"object": "{body.data.id}"},
		Facts: Facts{
			Timeout: 5 * time.Second, Success: []int{200}, Retries: RetriesAll, RetriesFor: 3 * day,
			SignedTime: TimeInHeader, IDSigned: true,
			RetriesOn: "60 times over 3 days; in the sandbox 3 times",
		},
		verify: asHMAC(Config{From: []string{"header.Paddle-Signature[h1]"}, Timestamp: "header.Paddle-Signature[ts]",
			Content: "{header.Paddle-Signature[ts]}:{body}", Tolerance: minutes5}),
		Page: Page{
			Title: "Paddle", Workflow: `paddle/{body.data.id ?? "other"}`,
			Secret: "The secret key of the notification destination (`pdl_ntfset_…`). Each destination has its " +
				"own: give each its own route.",
			SampleID: "evt_one",
		},
		Sources: []string{"https://developer.paddle.com/webhooks/signature-verification",
			"https://developer.paddle.com/webhooks/respond-to-webhooks", "@paddle/paddle-node-sdk 3.10.0"},
		Notes: []string{
			"`notification_id` names one notification. A manual replay has a new one and keeps the event ID.",
			"Paddle's library refuses signatures older than 5 s. Here it is 5 min, so that a clock that is a little " +
				"off loses nothing.",
		},
		sample: func(s *sample) {
			s.setBody(`{"event_id":%s,"event_type":"transaction.completed","occurred_at":"`+rfc3339(s.happened)+
				`","notification_id":%s,"data":{"id":"txn_sample","status":"completed"}}`, s.prefixedID("evt_"), "ntf_"+s.unixMillis())
			s.addSigned("Paddle-Signature", "ts="+s.unixSeconds()+";h1="+
				s.hmac256(inHex, s.unixSeconds(), ":", string(s.request.Body)))
		},
	}
}
