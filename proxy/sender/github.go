package sender

import (
	"fmt"
	"time"

	"hooklock/idem"
)

// GitHub returns the preset of GitHub.
func (known) GitHub() Preset {
	r := only5xx()
	// GitHub never retries, so these two may show the reason in GitHub's list of deliveries
	delete(r, idem.DecisionUnverified)
	delete(r, idem.DecisionRejected)
	return Preset{
		Name: "github", EventID: `{header.X-GitHub-Hook-ID ?? "-"}/{header.X-GitHub-Delivery}`,
		OnMismatch:  idem.MismatchReplay,
		WaitTimeout: 4 * time.Second,
		Respond:     r,
		Labels: map[string]string{"issue": "{body.repository.full_name}#{body.issue.number ?? " +
			"body.pull_request.number}"},
		Facts: Facts{
			Timeout: 10 * time.Second, Largest: 25 << 20, Retries: RetriesNever,
		},
		verify: scheme{new: newGitHub, body: true},
		Page: Page{
			Title: "GitHub", Workflow: `github/{body.repository.full_name ?? "other"}`,
			Secret: "The secret from the webhook's settings. Set the content type to application/json: `workflow` " +
				"reads the body.",
			SampleID: "1001/one",
		},
		Sources: []string{"docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks",
			"docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries",
			"docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries",
			"docs.github.com/en/webhooks/webhook-events-and-payloads"},
		Notes: []string{
			"Only X-Hub-Signature-256 is read, unless you set `algorithm: sha1`.",
			"The hook's ID keeps two hooks on one URL apart. Without its header the delivery's ID alone counts.",
			"Only a manual redelivery brings a refused event back. It keeps its ID: if the first delivery " +
				"succeeded, it gets that answer.",
			"`ping` is an ordinary delivery. GitHub Enterprise Server waits 30 s.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"action":"opened","issue":{"number":1,"title":%s},"repository":{"id":1,"full_name":"octo/sample"},"sender":{"login":"octo","id":1}}`, s.id)
			s.addField("X-GitHub-Event", "issues")
			s.addField("X-GitHub-Delivery", s.id)
			s.addField("X-GitHub-Hook-ID", "1001")
			s.signBody("X-Hub-Signature-256", "sha256=", inHex)
		},
	}
}

// newGitHub returns the verifier of
// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries. It reads the
// legacy header with SHA-1 only if the configuration says so.
func newGitHub(c Config) (Verifier, error) {
	switch c.Algorithm {
	case "", "sha256":
		return newGenericHMAC(Config{Header: "X-Hub-Signature-256", Prefix: "sha256="}.withRoute(c))
	case "sha1":
		return newGenericHMAC(Config{Header: "X-Hub-Signature", Prefix: "sha1=", Algorithm: "sha1"}.withRoute(c))
	}
	return nil, fmt.Errorf("algorithm %q: give sha256, or sha1 for the legacy header", c.Algorithm)
}
