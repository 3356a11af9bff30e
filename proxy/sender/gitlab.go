package sender

import (
	"slices"
	"time"

	"hooklock/idem"
)

// GitLab returns the preset of GitLab.
func (known) GitLab() Preset {
	return Preset{
		Name: "gitlab", EventID: "{header.webhook-id ?? header.Idempotency-Key}", OnMismatch: idem.MismatchReplay,
		WaitTimeout: 4 * time.Second,
		Facts: Facts{
			Timeout: 10 * time.Second, Largest: 25 << 20, Retries: RetriesNever, SignedTime: TimeInHeader,
			Limits:  []Limit{{InRow: 4}, {InRow: 40}},
			GivesUp: "disabled for a while after 4 failures in a row, for good after 40",
		},
		verify: scheme{new: newGitLab, tolerance: minutes5, covers: gitLabCovers},
		Page: Page{
			Title: "GitLab", Workflow: `gitlab/{body.project_id ?? body.project.id ?? "other"}`,
			Secret:   "The signing token of the webhook (`whsec_…`), or its older secret token.",
			SampleID: "one",
		},
		Renewal: RenewalPossible,
		Sources: []string{"docs.gitlab.com/user/project/integrations/webhooks",
			"gitlabhq/gitlabhq app/services/web_hook_service.rb",
			"gitlab.com/gitlab-org/gitlab/-/merge_requests/38687"},
		Notes: []string{
			"A secret that begins with `whsec_` is a signing token. Any other is compared with X-Gitlab-Token and " +
				"signs nothing.",
			"The two IDs are equal. webhook-id is signed if a signing token is set; Idempotency-Key never is.",
			"Before GitLab 17.4 there is no ID: the body is the key. X-Gitlab-Webhook-UUID and X-Gitlab-Event-UUID " +
				"do not name deliveries.",
			"GitLab.com waits 10 s; a self-managed GitLab may differ.",
		},
		sample: func(s *sample) {
			s.setBody(`{"object_kind":"push","project_id":1,"checkout_sha":%s}`, s.id)
			s.addField("X-Gitlab-Event", "Push Hook")
			s.addField("Idempotency-Key", s.id)
			switch {
			case s.unsigned:
				return
			case isSigningSecret(s.secret):
				s.signStandard(s.id)
			}
			s.addField("X-Gitlab-Token", string(s.secret))
		},
	}
}

// gitLab verifies Standard Webhooks if a signing token is configured, and X-Gitlab-Token otherwise.
// With both, it verifies a delivery that has a signature only by that.
type gitLab struct {
	token  Verifier // nil if no plain token is configured
	signed Verifier // nil if no signing token is configured
}

func newGitLab(c Config) (Verifier, error) {
	if err := checkSecrets(c.Secrets); err != nil {
		return nil, err
	}
	var v gitLab
	plain, signing := c, c
	plain.Secrets, signing.Secrets, signing.PublicKeys = nil, nil, nil
	plain.Header, plain.Prefix = "X-Gitlab-Token", ""
	for _, s := range c.Secrets {
		if isSigningSecret(s) {
			signing.Secrets = append(signing.Secrets, s)
		} else {
			plain.Secrets = append(plain.Secrets, s)
		}
	}
	if len(signing.Secrets) > 0 {
		signed, err := newStandard(signing)
		if err != nil {
			return nil, err
		}
		signed.unbranded = true
		v.signed = signed
	}
	if len(plain.Secrets) > 0 {
		token, err := newToken(plain)
		if err != nil {
			return nil, err
		}
		v.token = token
	}
	return &v, nil
}

func (v *gitLab) checkHead(d *Delivery) error { return CheckHead(v.verifierFor(d), d) }

// Verify implements Verifier.
func (v *gitLab) Verify(d *Delivery, now time.Time) error { return v.verifierFor(d).Verify(d, now) }

// renewSignature implements renewer. A plain token signs no time.
func (v *gitLab) renewSignature(d *Delivery, at time.Time) (Renewed, error) {
	if r, ok := v.verifierFor(d).(renewer); ok {
		return r.renewSignature(d, at)
	}
	return Renewed{}, nil
}

// verifierFor returns the Verifier for d.
func (v *gitLab) verifierFor(d *Delivery) Verifier {
	if v.signed != nil && (v.token == nil || d.hasHeader("webhook-signature")) {
		return v.signed
	}
	return v.token
}

// gitLabCovers returns the Coverage of c. A plain token covers nothing.
func gitLabCovers(c Config) Coverage {
	if !slices.ContainsFunc(c.Secrets, isSigningSecret) {
		return Coverage{}
	}
	return Coverage{Body: true, Time: true, Headers: []string{"webhook-id", "webhook-timestamp"}}
}
