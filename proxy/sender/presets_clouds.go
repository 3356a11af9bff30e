package sender

import (
	"time"

	"hooklock/idem"
)

// Senders of clouds and standards.

func standardWebhooks() Preset {
	return Preset{
		Name: "standard-webhooks", Aliases: []string{"svix"}, ExtractID: standardID, IDHeaders: []string{"webhook-id", "svix-id"}, IDText: "webhook-id, or svix-id", OnMismatch: mismatchReject,
		SenderTimeout: 15 * time.Second, RetryHorizon: 28 * time.Hour,
		Sources: []string{"standard-webhooks/standard-webhooks spec/standard-webhooks.md", "svix/svix-docs retries.mdx", "svix/svix-webhooks server config.default.toml"},
		Notes: []string{
			"ID, time and body are signed, and the ID stays the same over every attempt and manual resend.",
			"The same message goes to every endpoint with the same ID: give each endpoint its own route.",
			"The 15 s are hosted Svix; another sender may differ. webhook-delivery and Retry-After of the upstream are passed on.",
		},
	}
}

// unsignedReplay is what goes with mismatchReplayUnsigned.
const unsignedReplay = "The event's ID alone decides, and nobody signs it: whoever reaches the route and knows an ID can settle that event with a body of his own, and it never runs. " +
	"Let nobody but the sender reach the route, or have it send a secret header and check that: `verify: {scheme: token, header: …, secret_file: …}`."

func cloudevents() Preset {
	return Preset{
		Name: "cloudevents", Scheme: "none", ExtractID: cloudEventID, IDHeaders: []string{"ce-source", "ce-id"}, IDText: "source and id, in binary, structured and batched mode", OnMismatch: mismatchReplayUnsigned, Strategy: strategyWait,
		Respond:    map[idem.Decision]int{inFlight: 429, locked: 429, waitTimeout: 429, queueFull: 429, mismatch: 429, unknown: 503, unverified: 503, rejected: 503},
		Handshakes: []Handshake{{"OPTIONS", false, isWebHookOptions}},
		Sources:    []string{"cloudevents/spec spec.md", "cloudevents/spec bindings/http-protocol-binding.md", "cloudevents/spec http-webhook.md"},
		Notes: []string{
			unsignedReplay,
			"source and id together name an event, and are the same key in binary mode (percent-decoded once) and structured mode. A batch is one event.",
			"Nothing is signed. What is retried is the sender's choice, except that it must observe 429 with Retry-After: that is the refusal here.",
			"A sender may give a re-sent event a new ID; then it runs again.",
		},
	}
}

func snsPreset() Preset {
	return Preset{
		Name: "sns", ExtractID: snsID, IDHeaders: []string{"x-amz-sns-subscription-arn"}, IDText: "x-amz-sns-subscription-arn and body.MessageId (raw delivery: x-amz-sns-message-id)", OnMismatch: mismatchReplay,
		Strategy: strategyWait, WaitTimeout: 6 * time.Second, SenderTimeout: 15 * time.Second, RetryHorizon: time.Hour, Respond: only5xx(),
		Handshakes: []Handshake{
			{"SubscriptionConfirmation", true, bodyKind("SubscriptionConfirmation")},
			{"UnsubscribeConfirmation", true, bodyKind("UnsubscribeConfirmation")},
		},
		Sources: []string{"docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html", "docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html", "docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html"},
		Notes: []string{
			"SNS takes every 4xx for final and loses the message: every refusal is 503. It retries three times, 20 s apart, so a delivery waits its turn.",
			"Give the topic's signing certificate as public_key_file; SigningCertURL is never followed, so a new certificate has to be added by hand. Give old and new.",
			"Raw message delivery is not signed.",
			"The subscription's ARN is a header and not signed: who captured a delivery can send it again under another one. No age is checked, because a retry keeps its time.",
		},
	}
}

func pubsub() Preset {
	return Preset{
		Name: "pubsub", Scheme: "none", EventID: "{body.subscription}/{body.message.messageId ?? body.message.message_id}", OnMismatch: mismatchReplayUnsigned, Retention: 8 * day,
		SenderTimeout: 10 * time.Second, RetryHorizon: 7 * day,
		Sources: []string{"cloud.google.com/pubsub/docs/push"},
		Notes: []string{
			unsignedReplay,
			"deliveryAttempt changes between attempts, so the body does not decide.",
			"Google signs a token for the sender, not the body, and Hooklock does not check it: let the service or the ingress do that. Because the token changes, a duplicate gets the first status without headers and body.",
			"Success is exactly 102, 200, 201, 202 and 204. Seek and replay send the same IDs again: within the retention they get the first answer.",
			"Unwrapped messages are not relied on: there the body is the key. The 10 s are the default acknowledgement deadline of a subscription; retries go on as long as it retains messages.",
		},
	}
}

func eventgrid() Preset {
	return Preset{
		Name: "eventgrid", Scheme: "none", ExtractID: eventGridID, IDHeaders: []string{"aeg-subscription-name", "ce-source", "ce-id"}, IDText: "aeg-subscription-name, and topic and id (CloudEvents: source and id) of every element", OnMismatch: mismatchReplayUnsigned,
		SenderTimeout: 30 * time.Second, RetryHorizon: day, Respond: map[idem.Decision]int{unverified: 503, rejected: 503},
		Handshakes: []Handshake{
			{"SubscriptionValidation", false, aegType("SubscriptionValidation", "Microsoft.EventGrid.SubscriptionValidationEvent")},
			{"SubscriptionDeletion", false, aegType("SubscriptionDeletion", "Microsoft.EventGrid.SubscriptionDeletedEvent")},
			{"OPTIONS", false, isWebHookOptions},
		},
		Sources: []string{"MicrosoftDocs/azure-docs articles/event-grid/delivery-and-retry.md", "MicrosoftDocs/azure-docs articles/event-grid/webhook-event-delivery.md"},
		Notes: []string{
			unsignedReplay,
			"Event Grid never retries 400, 401, 403 and 413: those refusals are 503. Success is 200 to 204.",
			"Nothing is signed: keep a secret in the URL's query, or an Entra ID token that the service checks.",
			"A batch is one event; if Event Grid regroups it on a retry, it runs again.",
		},
	}
}
