package sender

import (
	"crypto/sha1"

	"hooklock/idem"
)

// Vercel returns the preset of Vercel.
func (known) Vercel() Preset {
	return Preset{
		Name: "vercel", EventID: "{body.id}", OnMismatch: idem.MismatchReplay,
		Facts:  Facts{IDSigned: true},
		verify: asHMAC(Config{Header: "x-vercel-signature", Algorithm: "sha1"}),
		Page: Page{
			Title:    "Vercel",
			Workflow: `vercel/{body.payload.project.id ?? body.payload.deployment.id ?? "other"}`,
			Secret: "The secret that Vercel shows once, when you create the webhook. For an integration's " +
				"webhook, its client secret.",
			SampleID: "evt_one",
		},
		Sources: []string{"https://vercel.com/docs/webhooks/webhooks-api",
			"https://trigger.dev/docs/webhooks/providers/vercel (which header, algorithm and secret)"},
		Notes: []string{
			"The signature is SHA-1.",
			"Log drains and deployment checks are signed the same and have no such ID: the body is the key.",
		},
		sample: func(s *sample) {
			s.setBody(`{"id":%s,"type":"deployment.succeeded","createdAt":`+unixMillis(s.happened)+
				`,"region":null,"payload":{"team":{"id":"team_sample"},"project":{"id":"prj_sample"},"deployment":{"id":"dpl_sample"}}}`, s.prefixedID("evt_"))
			s.addSigned("x-vercel-signature", string(newMAC(sha1.New, s.secret).signParts(inHex, s.request.Body)))
		},
	}
}
