package sender

import (
	"crypto/sha1"
	"time"

	"hooklock/idem"
)

// Vercel is the sender of that name.
func (known) Vercel() Preset {
	return Preset{
		Name: "vercel", EventID: "{body.id}", OnMismatch: idem.MismatchReplay, Strategy: idem.Wait, WaitTimeout: time.Second, Respond: only5xx(),
		Facts:  Facts{IDSigned: true},
		verify: asHMAC(Config{Header: "x-vercel-signature", Algorithm: "sha1"}),
		sample: sampleVercel,
		Page: Page{
			Title: "Vercel", Path: "/hooks/vercel", Workflow: `vercel/{body.payload.project.id ?? body.payload.deployment.id ?? "other"}`,
			Verify:   "secret_file: /etc/hooklock/vercel.secret",
			Secret:   "The secret that is shown once when the webhook is made; for the webhook of an integration its client secret.",
			SampleID: "evt_one",
		},
		Sources: []string{"https://vercel.com/docs/webhooks/webhooks-api", "https://trigger.dev/docs/webhooks/providers/vercel (which header, algorithm and secret)"},
		Notes: []string{
			"The event ID is in the signed body. Vercel signs with SHA-1, and no time: a copy within the retention is a duplicate, because the ID is signed.",
			"Log drains and checks of deployments are signed in the same way and have no such ID: there the body is the key.",
		},
	}
}

func sampleVercel(s *sample) error {
	s.body(`{"id":%s,"type":"deployment.succeeded","createdAt":`+millis(s.happened)+`,"region":null,"payload":{"team":{"id":"team_sample"},"project":{"id":"prj_sample"},"deployment":{"id":"dpl_sample"}}}`, s.named("evt_"))
	if !s.unsigned {
		s.add("x-vercel-signature", string(newMAC(sha1.New, s.secret).sign(inHex, s.request.Body)))
	}
	return nil
}
