package sender

import "time"

// Senders of messages, mail, calls and contacts.

func twilio() Preset {
	return Preset{
		Name: "twilio", Methods: []string{"GET", "POST"}, EventID: "{header.I-Twilio-Idempotency-Token}", OnMismatch: mismatchExecute,
		Strategy: strategyWait, WaitTimeout: 5 * time.Second, SenderTimeout: 15 * time.Second, NeverRetries: true, Respond: only5xx(),
		Sources: []string{"twilio.com/docs/usage/webhooks/webhooks-connection-overrides", "twilio.com/docs/usage/security", "twilio/twilio-go client/request_validator.go"},
		Notes: []string{
			"By default Twilio retries failed connections only, and needs the TwiML of the answer: a delivery waits its turn, and a copy gets the first one's answer. With #rp=5xx at the end of the URL it retries a 503, too.",
			"GET is a delivery here; HEAD is refused, because a service would do for it what it does for GET.",
			"Signs the public URL, with or without its port. Names and values of form parameters are joined without separators (Twilio's design), so ab=c and a=bc are signed alike. No time is signed.",
			"That the token is the same on a retry is likely, not documented; a known token with another body runs. The token's header is not signed.",
			"A fragment (#rc=…) never reaches Hooklock; whether Twilio signs it was not established.",
		},
	}
}

func sendgrid() Preset {
	return Preset{
		Name: "sendgrid", ExtractID: sendGridID, IDText: "the set of sg_event_id of all elements", OnMismatch: mismatchReplay, RetryHorizon: day,
		Sources: []string{"twilio.com/docs/sendgrid/for-developers/tracking-events/event", "sendgrid/sendgrid-go helpers/eventwebhook"},
		Notes: []string{
			"A batch is one event, named by the sg_event_id of all its elements. If SendGrid regroups them on a retry, they run again. If one element has none, the body is the key.",
			"\"Test Your Integration\" sends fixed IDs: the second click gets the first one's answer.",
			"SendGrid does not say how long it waits, nor whether it renews the signed time on a retry: there is no age check unless tolerance is set.",
		},
	}
}

func mailgun() Preset {
	return Preset{
		Name: "mailgun", EventID: "{body.event-data.id}", OnMismatch: mismatchExecute, Strategy: strategyWait, RetryHorizon: 8 * time.Hour,
		Sources: []string{"documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-retries", "mailgun/mailgun-go webhooks.go"},
		Notes: []string{
			"Waits its turn, because Mailgun does not retry notifications of delivered mail. Any status but 200 and 406 is retried otherwise; 406 is never sent.",
			"The signature covers a timestamp and a token, not the event: who captured one signature can put it on any event, until the secret changes.",
			"That the ID is the same on a retry is likely, not documented; a known ID with another body runs.",
		},
	}
}

func hubspot() Preset {
	return Preset{
		Name: "hubspot", ExtractID: hubSpotID, IDText: "digest of all elements without attemptNumber", OnMismatch: mismatchReplay, Strategy: strategyWait, WaitTimeout: 2 * time.Second,
		SenderTimeout: 5 * time.Second, RetryHorizon: day, RetryAfterUnit: time.Millisecond, Respond: only5xx(),
		Sources: []string{"developers.hubspot.com/docs/api/webhooks", "developers.hubspot.com/docs/guides/apps/authentication/validating-requests", "HubSpot/hubspot-api-nodejs src/utils/signature.ts"},
		Notes: []string{
			"A batch is one event. HubSpot says that eventId is not unique, so the batch is named by everything in it except attemptNumber. If HubSpot regroups a batch on a retry, it runs again.",
			"Workflow webhooks take every 4xx but 429 for final: every refusal is 503. They read Retry-After in milliseconds; they send no array, so the body is the key.",
			"Version 3 is checked unless algorithm says v1 or v2. Those two are plain digests: no time is signed, and who captured a delivery can append to its body.",
			"The public URL is signed as the target arrived; HubSpot may have signed another percent-encoding of it.",
		},
	}
}

func zoom() Preset {
	return Preset{
		Name:    "zoom",
		EventID: `{body.event}/{body.event_ts}/{body.payload.account_id}/{body.payload.object.uuid ?? body.payload.object.id}/{body.payload.object.participant.user_id ?? body.payload.object.participant.id ?? "-"}`, OnMismatch: mismatchExecute,
		Strategy: strategyWait, WaitTimeout: time.Second, SenderTimeout: 3 * time.Second, RetryHorizon: 90 * time.Minute, Respond: only5xx(),
		Handshakes: []Handshake{{"endpoint.url_validation", true, isZoomValidation}},
		Sources:    []string{"developers.zoom.us/docs/api/webhooks", "developers.zoom.us/changelog/platform/webhook-url-validation", "zoom/webhook-sample index.js"},
		Notes: []string{
			"Zoom documents no ID of an event. The ID is put together from event, time, account, object and participant; because two events could share all of them, a known ID with another body runs. So a retry with a new download token runs again.",
			"Waits its turn for 1 s of the 3 s that Zoom gives. Which statuses it retries is not documented: every refusal is 503.",
			"The unit of the signed time is not documented, nor whether a retry renews it: there is no age check unless tolerance is set.",
		},
	}
}
