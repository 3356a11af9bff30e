package sender

import (
	"time"

	"hooklock/idem"

	"github.com/golang-jwt/jwt/v5"
)

// Plaid is the sender of that name.
func (known) Plaid() Preset {
	return Preset{
		Name: "plaid", NoID: true, IDText: "none: two webhooks can have the same bytes", OnMismatch: idem.MismatchExecute, Strategy: idem.Wait, WaitTimeout: time.Second, Respond: only5xx(),
		Facts:  Facts{SignedTime: TimeInHeader, Changes: "the token of Plaid-Verification"},
		verify: asJWT(Config{Header: plaidHeader, Algorithm: "ES256", BodyHash: plaidHash, Tolerance: minutes5}),
		sample: samplePlaid, key: keyECDSA,
		Page: Page{
			Title: "Plaid", Path: "/hooks/plaid", Workflow: `plaid/{body.item_id ?? body.transfer_id ?? "other"}`,
			Verify: "public_key_file: /etc/hooklock/plaid.jwk",
			Secret: "The `key` of `/webhook_verification_key/get`, as JSON, for the `kid` in the header of a token; several as one JWKS, `{\"keys\": […]}`.",
		},
		Renewal: RenewalImpossible,
		Sources: []string{"https://plaid.com/docs/api/webhooks/webhook-verification/"},
		Notes: []string{
			"Most of Plaid's webhooks say only that something changed for an item, so that each has the same bytes as the one before. As duplicates of the first they would never reach the service: duplicates are not looked for, and each delivery runs, one after the other.",
			"Keys are never fetched: a new key of Plaid's refuses everything with 503 until it is added to the file. Give old and new.",
			"The token signs the SHA-256 of the raw body and when it was made; Plaid documents 5 min for that. Within them, who captured a webhook can send it again.",
		},
	}
}

const (
	plaidHeader = "Plaid-Verification"
	plaidHash   = "request_body_sha256"
)

func samplePlaid(s *sample) error {
	s.body(`{"webhook_type":"TRANSACTIONS","webhook_code":"SYNC_UPDATES_AVAILABLE","item_id":%s,"environment":"sandbox"}`, s.id)
	return s.token(plaidHeader, jwt.SigningMethodES256, plaidHash, jwt.MapClaims{"iat": s.now.Unix()})
}
