package sender

import (
	"time"

	"hooklock/idem"
)

// Bitbucket returns the preset of Bitbucket.
func (known) Bitbucket() Preset {
	return Preset{
		Name: "bitbucket", EventID: `{header.X-Hook-UUID ?? "-"}/{header.X-Request-UUID ?? header.X-Request-Id}`,
		OnMismatch: idem.MismatchExecute,
		Strategy:   idem.Wait, WaitTimeout: 4 * time.Second, Respond: only5xx(),
		Facts: Facts{
			Timeout: 10 * time.Second, Retries: RetriesSome,
			RetriesOn: "after 5xx only, twice, at once",
		},
		verify: asHMAC(Config{Header: "X-Hub-Signature", Prefix: "sha256="}),
		Page: Page{
			Title:    "Bitbucket Cloud",
			Workflow: `bitbucket/{body.repository.full_name ?? "other"}`,
			Secret:   "The secret of the webhook.",
			SampleID: "{5d9c5e2a-0000-4000-8000-000000000001}/one",
		},
		Sources: []string{"support.atlassian.com/bitbucket-cloud/docs/troubleshoot-webhooks",
			"support.atlassian.com/bitbucket-cloud/docs/event-payloads"},
		Notes: []string{
			"If X-Request-UUID changes on a retry, which is not documented, the event runs again.",
		},
		sample: func(s *sample) {
			s.setBody(`{"push":{"changes":[]},"repository":{"full_name":%s}}`, "team/"+s.id)
			s.addField("X-Event-Key", "repo:push")
			s.addField("X-Hook-UUID", "{5d9c5e2a-0000-4000-8000-000000000001}")
			s.addField("X-Request-UUID", s.id)
			s.signBody("X-Hub-Signature", "sha256=", inHex)
		},
	}
}
