package sender

import (
	"hooklock/idem"

	"github.com/golang-jwt/jwt/v5"
)

// Plaid returns the preset of Plaid.
func (known) Plaid() Preset {
	return Preset{
		Name: "plaid", NoID: true, IDText: "none; two webhooks can have the same bytes, so Hooklock looks for no " +
			"duplicates", OnMismatch: idem.MismatchExecute,
		Facts:  Facts{SignedTime: TimeInHeader, Changes: "the token of Plaid-Verification"},
		verify: asJWT(Config{Header: plaidHeader, Algorithm: "ES256", BodyHash: plaidHash, Tolerance: minutes5}),
		key:    keyECDSA,
		Page: Page{
			Title: "Plaid", Workflow: `plaid/{body.item_id ?? body.transfer_id ?? "other"}`,
			Verify: "public_key_file: /etc/hooklock/plaid.jwk",
			Secret: "The `key` of `/webhook_verification_key/get`, as JSON, for the `kid` in the header of a token; " +
				"several as one JWKS, `{\"keys\": […]}`.",
		},
		Renewal: RenewalImpossible,
		Sources: []string{"https://plaid.com/docs/api/webhooks/webhook-verification/"},
		Notes: []string{
			"Most webhooks say only that something changed for an item. Each delivery runs, one after the other.",
			"A new key of Plaid's refuses everything with 503 until you add it to the file. " +
				"Keep the old one beside it.",
			"Whoever captured a webhook can send it again within 5 min, the age that Plaid documents.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"webhook_type":"TRANSACTIONS","webhook_code":"SYNC_UPDATES_AVAILABLE","item_id":%s,"environment":"sandbox"}`,
				s.id)
			s.addJWT(plaidHeader, jwt.SigningMethodES256, plaidHash, jwt.MapClaims{"iat": s.now.Unix()})
		},
	}
}

const (
	plaidHeader = "Plaid-Verification"
	plaidHash   = "request_body_sha256"
)
