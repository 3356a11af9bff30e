package sender

import "hooklock/idem"

// CoinbaseCommerce returns the preset of CoinbaseCommerce.
func (known) CoinbaseCommerce() Preset {
	return Preset{
		Name: "coinbase-commerce", EventID: "{body.event.id}", OnMismatch: idem.MismatchReplay,
		Facts:  Facts{IDSigned: true, Changes: "attempt_number, scheduled_for"},
		verify: asHMAC(Config{Header: "X-CC-Webhook-Signature"}),
		Page: Page{
			Title:    "Coinbase Commerce",
			Workflow: `coinbase-commerce/{body.event.data.code ?? body.event.data.id ?? "other"}`,
			Secret:   "The webhook shared secret, from the settings.",
			SampleID: "one",
		},
		Sources: []string{"https://docs.cdp.coinbase.com/commerce/docs/webhooks-security",
			"https://docs.cdp.coinbase.com/commerce/docs/webhooks-fields", "coinbase-commerce-node 1.0.4"},
		Notes: []string{
			"The outer `id` names the delivery, not the event.",
			"Every subscription to an event gets the same event ID: give each its own route.",
		},
		sample: func(s *sample) {
			s.setBody(`{"id":1,"scheduled_for":"`+s.rfc3339()+
				`","attempt_number":1,"event":{"id":%s,"resource":"event","type":"charge:confirmed","api_version":"2018-03-22","created_at":"`+rfc3339(s.happened)+`","data":{"code":"SAMPLE"}}}`, s.id)
			s.signBody("X-CC-Webhook-Signature", "", inHex)
		},
	}
}
