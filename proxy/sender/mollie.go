package sender

import "hooklock/idem"

// Mollie returns the preset of Mollie (next-gen webhooks).
func (known) Mollie() Preset {
	return Preset{
		Name: "mollie", EventID: "{body.id}", OnMismatch: idem.MismatchReplay,
		Labels: map[string]string{"object": "{body.entityId}"},
		Facts:  Facts{IDSigned: true},
		verify: asHMAC(Config{From: []string{"header.X-Mollie-Signature[sha256]"}}),
		Page: Page{
			Title: "Mollie", Workflow: `mollie/{body.entityId ?? "other"}`,
			Secret:   "The signing secret of the webhook subscription. Mollie shows it once, when you create that.",
			SampleID: "event_one",
		},
		Sources: []string{"https://docs.mollie.com/reference/webhooks-new",
			"mollie/mollie-api-php src/Webhooks/SignatureValidator.php"},
		Notes: []string{
			"For next-gen webhooks, which are signed JSON. Classic webhooks (`webhookUrl`) are an unsigned form " +
				"`id=tr_…`: [mollie-classic](mollie-classic.md).",
		},
		sample: func(s *sample) {
			s.setBody(`{"resource":"event","id":%s,"type":"payment-link.paid","entityId":"pl_sample","createdAt":"`+
				rfc3339(s.happened)+`"}`, s.prefixedID("event_"))
			s.signBody("X-Mollie-Signature", "sha256=", inHex)
		},
	}
}
