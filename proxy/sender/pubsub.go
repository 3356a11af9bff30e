package sender

import (
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// PubSub returns the preset of PubSub.
func (known) PubSub() Preset {
	return Preset{
		Name: "pubsub", Scheme: "none", OnMismatch: idem.MismatchReplayUnsigned, Retention: 8 * day,
		// An unwrapped message has its metadata in headers, and its body is the publisher's: so
		// headers come first.
		EventID: "{header.X-Goog-Pubsub-Subscription-Name ?? body.subscription}/" +
			"{header.X-Goog-Pubsub-Message-Id ?? body.message.messageId ?? body.message.message_id}",
		OnMissing: naming.MissingRun,

		Facts: Facts{
			Timeout: 10 * time.Second, Success: []int{200, 201, 202, 204}, Retries: RetriesAll, RetriesFor: 7 * day,
			RetriesOn: "until the retention of the subscription ends, by default 7 days", Changes: "deliveryAttempt",
		},
		Page: Page{
			Title:    "Google Pub/Sub push",
			Workflow: `pubsub/{header.X-Goog-Pubsub-Subscription-Name ?? body.subscription ?? "other"}`,
			SampleID: "projects/sample/subscriptions/sample/one",
		},
		Sources: []string{"cloud.google.com/pubsub/docs/push"},
		Notes: []string{
			"Google signs a token about the sender, not the body. Check it with [scheme: jwt](other.md#jwt), in the " +
				"service or at the ingress. The token changes, so a duplicate gets the first status without headers " +
				"and body.",
			"102 is a success, too.",
			"Seek and replay send the same IDs again.",
			"Unwrapped messages need `--push-no-wrapper-write-metadata`: their headers have the IDs. Without it " +
				"nothing tells two messages apart, so each delivery runs.",
			"10 s is the default acknowledgement deadline of a subscription.",
		},
		sample: func(s *sample) {
			s.setBody(`{"message":{"data":"c2FtcGxl","messageId":%s,"publishTime":"`+s.rfc3339()+
				`"},"subscription":"projects/sample/subscriptions/sample"}`, s.id)
		},
	}
}
