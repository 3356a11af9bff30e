package sender

import (
	"time"

	"hooklock/idem"
)

// WorkOS returns the preset of WorkOS.
func (known) WorkOS() Preset {
	return Preset{
		Name: "workos", EventID: "{body.id}", OnMismatch: idem.MismatchReplay,
		Labels: map[string]string{"object": "{body.data.id}"},
		Facts: Facts{
			Retries: RetriesAll, RetriesFor: 3 * day, SignedTime: TimeInHeader, IDSigned: true,
			RetriesOn: "up to 12 times over 3 days; outside of production for some minutes only",
		},
		verify: asHMAC(Config{From: []string{"header.WorkOS-Signature[v1]"}, Timestamp: "header.WorkOS-Signature[t]",
			Content: "{header.WorkOS-Signature[t]}.{body}", Tolerance: 3 * time.Minute}),
		Page: Page{
			Title: "WorkOS", Workflow: `workos/{body.data.id ?? "other"}`,
			Secret:   "The secret of the webhook endpoint, from the dashboard.",
			SampleID: "event_one",
		},
		Sources: []string{"https://workos.com/docs/events/data-syncing/webhooks", "https://workos.com/docs/webhooks",
			"@workos-inc/node 8.13.0"},
		Notes: []string{
			"Events may come out of order.",
			"The tolerance of 3 min is that of WorkOS's library.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"id":%s,"event":"dsync.user.created","data":{"id":"directory_user_sample","object":"directory_user"},"created_at":"`+rfc3339(s.happened)+`"}`, s.prefixedID("event_"))
			s.addSigned("WorkOS-Signature", "t="+s.unixMillis()+", v1="+
				s.hmac256(inHex, s.unixMillis(), ".", string(s.request.Body)))
		},
	}
}
