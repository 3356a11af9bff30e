package sender

import "hooklock/idem"

// Twitch returns the preset of Twitch (EventSub).
func (known) Twitch() Preset {
	return Preset{
		Name: "twitch", EventID: "{header.Twitch-Eventsub-Message-Id}", OnMismatch: idem.MismatchReplay,
		Facts: Facts{
			SignedTime: TimeInHeader, IDSigned: true,
			GivesUp: "the subscription is revoked after too many failures (notification_failures_exceeded)",
		},
		Handshakes: []Handshake{{"webhook_callback_verification", true, isTwitchVerification}},
		verify: asHMAC(Config{Header: twitchHeader, Prefix: "sha256=", Timestamp: "header." + twitchTime,
			Content: "{header." + twitchID + "}{header." + twitchTime + "}{body}"}),
		Page: Page{
			Title:    "Twitch EventSub",
			Workflow: `twitch/{body.event.broadcaster_user_id ?? "other"}`,
			Secret: "The `secret` that you gave when you created the subscription. The service answers the " +
				"challenge itself.",
			SampleID: "one",
		},
		Sources: []string{"https://dev.twitch.tv/docs/eventsub/handling-webhook-events/",
			"https://dev.twitch.tv/docs/eventsub/"},
		Notes: []string{
			"Twitch does not document after which answers it sends again, or for how long: " +
				"a refused event may be lost.",
			"Twitch wants an answer \"within a few seconds\", and revokes subscriptions that are too slow too often.",
			"`revocation` is an ordinary delivery.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"subscription":{"id":"sub_sample","status":"enabled","type":"channel.follow","version":"2"},"event":{"user_id":%s,"broadcaster_user_id":"1337"}}`, s.id)
			s.addField(twitchID, s.id)
			s.addField(twitchTime, s.rfc3339())
			s.addField("Twitch-Eventsub-Message-Type", "notification")
			s.addSigned(twitchHeader, "sha256="+s.hmac256(inHex, s.id, s.rfc3339(), string(s.request.Body)))
		},
	}
}

const (
	twitchHeader = "Twitch-Eventsub-Message-Signature"
	twitchID     = "Twitch-Eventsub-Message-Id"
	twitchTime   = "Twitch-Eventsub-Message-Timestamp"
)

// isTwitchVerification reports whether d is the handshake. It reads the body, because the header
// with the type of the message is not signed.
func isTwitchVerification(d *Delivery) bool {
	v := objectWith(d.Body, `"challenge"`)
	return v != nil && v.Exists("subscription") && !v.Exists("event") && countMember(v, "challenge") == 1
}
