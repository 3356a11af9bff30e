package sender

import "hooklock/idem"

// Zendesk returns the preset of Zendesk.
func (known) Zendesk() Preset {
	return Preset{
		Name: "zendesk", EventID: `{header.X-Zendesk-Webhook-Id ?? "-"}/{header.X-Zendesk-Webhook-Invocation-Id}`,
		OnMismatch: idem.MismatchExecute,
		Facts: Facts{
			SignedTime: TimeInHeader, RetriesOn: "after certain statuses, which were not established",
			GivesUp: "a circuit breaker holds deliveries back while most of them fail",
		},
		verify: asHMAC(Config{Header: "X-Zendesk-Webhook-Signature", Encoding: "base64", Timestamp: "header." +
			zendeskTime, Content: "{header." + zendeskTime + "}{body}"}),
		Page: Page{
			Title: "Zendesk", Workflow: `zendesk/{body.detail.id ?? body.ticket.id ?? "other"}`,
			Secret:   "The signing secret of the webhook, from its page or the API.",
			SampleID: "01SAMPLE/one",
		},
		Sources: []string{"https://developer.zendesk.com/documentation/webhooks/verifying/",
			"https://developer.zendesk.com/api-reference/webhooks/introduction"},
		Notes: []string{
			"All attempts of an invocation have one ID.",
			"A trigger's body is what its template says. If it is not JSON, give `workflow` another source.",
		},
		sample: func(s *sample) {
			s.setBody(`{"id":%s,"type":"zen:event-type:ticket.created","time":"`+rfc3339(s.happened)+
				`","detail":{"id":"1","subject":"sample"}}`, s.id)
			s.addField("X-Zendesk-Webhook-Id", "01SAMPLE")
			s.addField("X-Zendesk-Webhook-Invocation-Id", s.id)
			s.addSigned(zendeskTime, s.rfc3339())
			s.addSigned("X-Zendesk-Webhook-Signature", s.hmac256(inBase64, s.rfc3339(), string(s.request.Body)))
		},
	}
}

const zendeskTime = "X-Zendesk-Webhook-Signature-Timestamp"
