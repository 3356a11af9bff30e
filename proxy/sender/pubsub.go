package sender

import (
	"time"

	"hooklock/idem"
)

// PubSub returns the preset of PubSub.
func (known) PubSub() Preset {
	return Preset{
		Name: "pubsub", Scheme: "none", EventID: "{body.subscription}/{body.message.messageId ?? body.message.message_id}", OnMismatch: idem.MismatchReplayUnsigned, Retention: 8 * day,

		Facts: Facts{
			Timeout: 10 * time.Second, Success: []int{200, 201, 202, 204}, Retries: RetriesAll, RetriesFor: 7 * day,
			RetriesOn: "until the retention of the subscription ends, by default 7 days", Changes: "deliveryAttempt",
		},
		sample: samplePubSub,
		Page: Page{
			Title: "Google Pub/Sub push", Path: "/hooks/pubsub", Workflow: `pubsub/{body.subscription ?? "other"}`,
			SampleID: "projects/sample/subscriptions/sample/one",
		},
		Sources: []string{"cloud.google.com/pubsub/docs/push"},
		Notes: []string{
			"Google signs a token about the sender, not the body. Check it with [scheme: jwt](other.md#jwt), in the service or at the ingress. The token changes, so a duplicate gets the first status without headers and body.",
			"102 is a success, too.",
			"Seek and replay send the same IDs again.",
			"Unwrapped messages have no such ID: the body is the key.",
			"10 s is the default acknowledgement deadline of a subscription.",
		},
	}
}

func samplePubSub(s *sample) error {
	s.body(`{"message":{"data":"c2FtcGxl","messageId":%s,"publishTime":"`+s.rfc3339()+`"},"subscription":"projects/sample/subscriptions/sample"}`, s.id)
	return nil
}
