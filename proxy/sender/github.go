package sender

import (
	"fmt"
	"time"

	"hooklock/idem"
)

// GitHub is the sender of that name.
func (known) GitHub() Preset {
	r := only5xx()
	delete(r, idem.DecisionUnverified) // nothing brings these two back, so that they may say in GitHub's list what is wrong
	delete(r, idem.DecisionRejected)
	return Preset{
		Name: "github", EventID: `{header.X-GitHub-Hook-ID ?? "-"}/{header.X-GitHub-Delivery}`, OnMismatch: idem.MismatchReplay,
		Strategy: idem.Wait, WaitTimeout: 4 * time.Second,
		Respond: r,
		Facts: Facts{
			Patience: 10 * time.Second, Largest: 25 << 20, Retries: RetriesNever,
		},
		verify: scheme{new: newGitHub, body: true},
		sample: sampleGitHub,
		Page: Page{
			Title: "GitHub", Path: "/hooks/github", Workflow: `github/{body.repository.full_name ?? "other"}`,
			Verify:   "secret_file: /etc/hooklock/github.secret",
			Secret:   "The secret that you typed into the webhook's settings. Only X-Hub-Signature-256 is read, unless `algorithm: sha1` is given. Set the content type to application/json, so that the workflow can be read from the body.",
			SampleID: "1001/one",
		},
		Sources: []string{"docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks", "docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries",
			"docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries", "docs.github.com/en/webhooks/webhook-events-and-payloads"},
		Notes: []string{
			"GitHub never retries: a delivery waits its turn, and a copy gets the first one's answer. What is refused nevertheless can only be redelivered by hand.",
			"X-GitHub-Delivery names the event for all hooks; the hook's ID keeps two hooks on one URL apart. Where that header is missing, the delivery's ID alone counts.",
			"A manual redelivery keeps its ID and gets the first answer if that succeeded: `hooklock executions forget` lets the event run again.",
			"The headers are not signed, nor is a time: who captured a delivery can send it again under another ID.",
			"`ping` is an ordinary delivery. GitHub Enterprise Server waits 30 s.",
		},
	}
}

// newGitHub: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries. SHA-1 is the legacy header,
// and only read when the configuration asks for it.
func newGitHub(c Config) (Verifier, error) {
	switch c.Algorithm {
	case "", "sha256":
		return verifier(newBodyMAC(c, "sha256", "sha256=", inHex, "X-Hub-Signature-256"))
	case "sha1":
		return verifier(newBodyMAC(c, "sha1", "sha1=", inHex, "X-Hub-Signature"))
	}
	return nil, fmt.Errorf("algorithm %q: give sha256, or sha1 for the legacy header", c.Algorithm)
}

func sampleGitHub(s *sample) error {
	s.body(`{"action":"opened","issue":{"number":1,"title":%s},"repository":{"id":1,"full_name":"octo/sample"},"sender":{"login":"octo","id":1}}`, s.id)
	s.add("X-GitHub-Event", "issues")
	s.add("X-GitHub-Delivery", s.id)
	s.add("X-GitHub-Hook-ID", "1001")
	s.signBody("X-Hub-Signature-256", "sha256=", inHex)
	return nil
}
