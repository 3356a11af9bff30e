package sender

import (
	"cmp"
	"time"

	"hooklock/idem"
)

// Jira returns the preset of Jira.
func (known) Jira() Preset {
	r := only5xx()
	r[idem.DecisionLimited] = 429
	for _, d := range []idem.Decision{idem.DecisionInFlight, idem.DecisionLocked, idem.DecisionWaitTimeout,
		idem.DecisionUnknown} {
		r[d] = 409
	}
	r[idem.DecisionQueueFull] = 429
	r[idem.DecisionExhausted], r[idem.DecisionPaced] = 409, 409
	return Preset{
		Name: "jira", EventID: "{header.X-Atlassian-Webhook-Identifier}", OnMismatch: idem.MismatchExecute, Respond: r,
		Labels: map[string]string{"issue": "{body.issue.key}"},
		Facts: Facts{
			Retries: RetriesSome, RetriesFor: 90 * time.Minute,
			RetriesOn: "after 408, 409, 425, 429 and 5xx, five times, 5 to 15 min apart; any other 4xx loses the event",
		},
		verify: scheme{new: newJira, body: true},
		Page: Page{
			Title: "Jira Cloud", Workflow: `jira/{body.issue.key ?? "other"}`,
			Secret:   "The secret that you gave when you created the webhook.",
			SampleID: "one",
		},
		Sources: []string{"developer.atlassian.com/cloud/jira/platform/webhooks"},
		Notes: []string{
			"The identifier is unique within one tenant: give each site its own route.",
			"Webhooks of OAuth 2.0 and Connect apps carry a JWT instead: [scheme: jwt](other.md#jwt), or `scheme: " +
				"none` and a check in the service.",
			"Jira Data Center was not checked.",
		},
		sample: func(s *sample) {
			s.setBody(`{"timestamp":`+unixMillis(s.happened)+`,"webhookEvent":"jira:issue_updated","issue":{"id":"1","key":%s}}`,
				"SAMPLE-1")
			s.addField("X-Atlassian-Webhook-Identifier", s.id)
			s.signBody("X-Hub-Signature", "sha256=", inHex)
		},
	}
}

// newJira returns the verifier of https://developer.atlassian.com/cloud/jira/platform/webhooks.
// Jira names the algorithm before the digest; the configuration and not the delivery decides which
// one is accepted.
func newJira(c Config) (Verifier, error) {
	algorithm := cmp.Or(c.Algorithm, "sha256")
	return newGenericHMAC(Config{Header: "X-Hub-Signature", Prefix: algorithm + "=", Algorithm: algorithm}.withRoute(c))
}
