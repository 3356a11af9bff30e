package sender

import (
	"time"

	"hooklock/idem"
)

// StandardWebhooks returns the preset of senders that sign as Standard Webhooks, such as Svix.
func (known) StandardWebhooks() Preset {
	return Preset{
		Name: "standard-webhooks", Aliases: []string{"svix"}, ExtractID: standardID,
		IDHeaders: []string{"webhook-id", "svix-id"}, IDText: "webhook-id, or svix-id", OnMismatch: idem.MismatchReject,
		Order: "{body.timestamp}",

		Facts: Facts{
			Timeout: 15 * time.Second, Retries: RetriesAll, RetriesFor: 28 * time.Hour, SignedTime: TimeInHeader,
			IDSigned:  true,
			RetriesOn: "seven times over 28 h (hosted Svix)", Changes: "the signature and its time",
		},
		verify: scheme{new: newStandardWebhooks, tolerance: minutes5, aged: true, body: true,
			headers: []string{"webhook-id", "webhook-timestamp", "svix-id", "svix-timestamp"}},
		key: keyWhsec,
		Page: Page{
			Title: "Standard Webhooks and Svix", Path: "/hooks/standard/{endpoint}",
			Workflow: "standard/{path.endpoint}",
			Verify:   "secret_file: /etc/hooklock/standard.secret",
			Secret: "The endpoint's secret, `whsec_` included. For version v1a, the sender's public key " +
				"(`whpk_…`) as `public_key_file`.",
			SampleID: "msg_one",
		},
		Renewal: RenewalPossible,
		Sources: []string{"standard-webhooks/standard-webhooks spec/standard-webhooks.md",
			"https://docs.svix.com/retries", "svix/svix-webhooks server config.default.toml"},
		Notes: []string{
			"Every endpoint gets a message under the same ID: give each its own route. The ID stays the same over " +
				"attempts and manual resends.",
			"Supabase Auth gives each attempt another ID: with it, set `event_id: \"{body_sha256}\"`, or a retry " +
				"runs again.",
			"A secret without `whsec_` is tried as base64 and as it is.",
			"The 15 s and the retries are those of hosted Svix; another sender may differ. The upstream's " +
				"webhook-delivery and Retry-After pass through.",
			"A renewed signature has a v1 for each secret of the route that had made one. A v1a is left out; alone " +
				"it cannot be renewed.",
		},
		sample: func(s *sample) {
			s.setBody(`{"type":"contact.created","timestamp":"`+rfc3339(s.happened)+`","data":{"id":%s}}`, "c_"+s.id)
			s.signStandard(s.prefixedID("msg_"))
		},
	}
}

// standardBy returns the preset of a sender that signs as Standard Webhooks and has these facts.
func standardBy(name string, facts Facts) Preset {
	p := known{}.StandardWebhooks()
	p.Name, p.Aliases, p.Scheme, p.Tolerance, p.verify = name, nil, p.Name, p.verify.tolerance, scheme{}
	p.OnMismatch, p.Facts = idem.MismatchReplay, facts
	p.Order = "" // not established
	p.Facts.SignedTime, p.Facts.IDSigned, p.Facts.Changes = TimeInHeader, true, "the signature and its time"
	return p
}

// svixFacts returns the facts of senders that send through Svix.
func svixFacts() Facts {
	return Facts{
		Timeout: 15 * time.Second, Retries: RetriesAll, RetriesFor: 28 * time.Hour,
		RetriesOn: "after every answer but 2xx, seven times over 28 h",
		Limits:    []Limit{{For: 120 * time.Hour}},
		GivesUp:   "disabled after 5 days in which every delivery failed",
	}
}

// newStandardWebhooks returns the verifier of the scheme standard-webhooks: with the headers of the
// spec or with Svix's names.
func newStandardWebhooks(c Config) (Verifier, error) {
	return newStandard(c)
}

// standardID returns the signed ID. Its source is the same for both header names: with a template,
// an attacker who captured a delivery could run it again by renaming its headers.
func standardID(d *Delivery) EventID {
	id, count := d.findHeader(standardSet(d) + "id")
	if count > 1 {
		return ambiguousID
	}
	return foundID("webhook-id", string(id))
}
