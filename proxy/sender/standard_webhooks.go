package sender

import (
	"time"

	"hooklock/idem"
)

// StandardWebhooks is the sender of that name.
func (known) StandardWebhooks() Preset {
	return Preset{
		Name: "standard-webhooks", Aliases: []string{"clerk", "resend", "svix"}, ExtractID: standardID, IDHeaders: []string{"webhook-id", "svix-id"}, IDText: "webhook-id, or svix-id", OnMismatch: idem.MismatchReject,

		Facts: Facts{
			Patience: 15 * time.Second, Retries: RetriesAll, RetriesFor: 28 * time.Hour, SignedTime: TimeInHeader, IDSigned: true,
			RetriesOn: "seven times over 28 h (hosted Svix)", Changes: "the signature and its time",
		},
		verify: scheme{new: newStandardWebhooks, tolerance: minutes5, aged: true, body: true, headers: []string{"webhook-id", "webhook-timestamp", "svix-id", "svix-timestamp"}},
		sample: sampleStandard, key: keyWhsec,
		Page: Page{
			Title: "Standard Webhooks and Svix (Clerk, Resend)", Path: "/hooks/standard/{endpoint}", Workflow: "standard/{path.endpoint}",
			Verify:   "secret_file: /etc/hooklock/standard.secret",
			Secret:   "The endpoint's secret, `whsec_` included. For version v1a the sender's public key (`whpk_…`) as `public_key_file` instead.",
			SampleID: "msg_one",
		},
		Sources: []string{"standard-webhooks/standard-webhooks spec/standard-webhooks.md", "svix/svix-docs retries.mdx", "svix/svix-webhooks server config.default.toml", "https://resend.com/docs/webhooks/retries-and-replays"},
		Notes: []string{
			"ID, time and body are signed, and the ID stays the same over every attempt and manual resend.",
			"The same message goes to every endpoint with the same ID: give each endpoint its own route.",
			"Clerk and Resend send through Svix, with its own header names. A secret without `whsec_` is tried as base64 and as it is.",
			"The 15 s and the retries are those of hosted Svix, and Resend documents the same retries; another sender may differ. webhook-delivery and Retry-After of the upstream are passed on.",
		},
	}
}

// newStandardWebhooks is the scheme standard-webhooks: headers of the spec, or with Svix's own names.
func newStandardWebhooks(c Config) (Verifier, error) {
	v, err := newStandard(c)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// standardID is the signed ID. It has one source under either name: a template would give the two names two keys, and whoever
// captured a delivery could have it run again by calling its headers by the other name.
func standardID(d *Delivery) EventID {
	id, count := d.header(standardSet(d) + "id")
	if count > 1 {
		return ambiguousID
	}
	return foundID("webhook-id", string(id))
}

func sampleStandard(s *sample) error {
	s.body(`{"type":"contact.created","timestamp":"`+rfc3339(s.happened)+`","data":{"id":%s}}`, "c_"+s.id)
	return s.standard("msg_" + s.id)
}
