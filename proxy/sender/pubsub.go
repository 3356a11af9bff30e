package sender

import (
	"time"

	"hooklock/idem"
)

// PubSub is the sender of that name.
func (known) PubSub() Preset {
	return Preset{
		Name: "pubsub", Scheme: "none", EventID: "{body.subscription}/{body.message.messageId ?? body.message.message_id}", OnMismatch: idem.MismatchReplayUnsigned, Retention: 8 * day,

		Facts: Facts{
			Patience: 10 * time.Second, Success: []int{200, 201, 202, 204}, Retries: RetriesAll, RetriesFor: 7 * day,
			RetriesOn: "until its retention ends, by default 7 days", Changes: "deliveryAttempt",
		},
		sample: samplePubSub,
		Page: Page{
			Title: "Google Pub/Sub push", Path: "/hooks/pubsub", Workflow: `pubsub/{body.subscription ?? "other"}`,
			SampleID: "projects/sample/subscriptions/sample/one",
		},
		Sources: []string{"cloud.google.com/pubsub/docs/push"},
		Notes: []string{
			unsignedReplay,
			"deliveryAttempt changes between attempts, so the body does not decide.",
			"Google signs a token for the sender, not the body. It is checked with `verify: {scheme: jwt, …}` (other.md), or by the service or the ingress. Because the token changes, a duplicate gets the first status without headers and body.",
			"Success is exactly 102, 200, 201, 202 and 204. Seek and replay send the same IDs again: within the retention they get the first answer.",
			"Unwrapped messages are not relied on: there the body is the key. The 10 s are the default acknowledgement deadline of a subscription; retries go on as long as it retains messages.",
		},
	}
}

func samplePubSub(s *sample) error {
	s.body(`{"message":{"data":"c2FtcGxl","messageId":%s,"publishTime":"`+s.rfc3339()+`"},"subscription":"projects/sample/subscriptions/sample"}`, s.id)
	return nil
}
