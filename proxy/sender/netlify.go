package sender

import (
	"hooklock/idem"

	"github.com/golang-jwt/jwt/v5"
)

// Netlify returns the preset of Netlify.
func (known) Netlify() Preset {
	return Preset{
		Name: "netlify", EventID: `{body.id ?? "-"}/{body.state ?? "-"}/{body_sha256}`,
		OnMismatch: idem.MismatchExecute, Retention: day,
		Facts:  Facts{IDSigned: true},
		verify: asJWT(Config{Header: netlifyHeader, Algorithm: "HS256", Issuer: "netlify", BodyHash: "sha256"}),
		Page: Page{
			Title: "Netlify", Workflow: `netlify/{body.site_id ?? "other"}`,
			Secret: "The \"JWS secret token\" of the notification.",
		},
		Sources: []string{"https://docs.netlify.com/deploy/deploy-notifications/#payload-signature"},
		Notes: []string{
			"For HTTP POST request notifications. A deploy has an updated_at, so two changes have different bodies.",
			"The token signs the SHA-256 of the raw body and no time.",
		},
		sample: func(s *sample) {
			s.setBody(`{"id":%s,"site_id":"site_sample","state":"ready","updated_at":"`+rfc3339(s.happened)+`","name":"sample"}`,
				s.id)
			s.addField("X-Netlify-Event", "deploy_created")
			s.addJWT(netlifyHeader, jwt.SigningMethodHS256, "sha256", jwt.MapClaims{"iss": "netlify"})
		},
	}
}

const netlifyHeader = "X-Webhook-Signature"
