package sender

import (
	"crypto/sha1"

	"hooklock/idem"
)

// Trello returns the preset of Trello.
func (known) Trello() Preset {
	return Preset{
		Name: "trello", EventID: `{body.webhook.id ?? body.model.id ?? "-"}/{body.action.id}`,
		OnMismatch: idem.MismatchReplay,
		Facts:      Facts{IDSigned: true},
		verify: asHMAC(Config{Header: "X-Trello-Webhook", Algorithm: "sha1", Encoding: "base64",
			Content: "{body}{url}"}),
		Page: Page{
			Title: "Trello", Workflow: `trello/{body.model.id ?? "other"}`,
			Secret: "The secret of the application, from the page of its API key. `public_url` is the origin of " +
				"the callbackURL.",
			SampleID: "board_sample/one",
		},
		Sources: []string{"https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/"},
		Notes: []string{
			"Trello signs the body and then the callbackURL letter for letter, with SHA-1: `public_url` and the " +
				"received target must make it.",
			"One action fires every webhook that watches what it touches; the ID contains the webhook, or what it " +
				"watches.",
			"Setup: Trello sends HEAD and wants 200; HEAD passes to the service.",
		},
		sample: func(s *sample) {
			s.setBody(`{"action":{"id":%s,"type":"updateCard","date":"`+rfc3339(s.happened)+
				`","data":{"card":{"id":"card_sample"}}},"model":{"id":"board_sample","name":"sample"}}`, s.id)
			s.addSigned("X-Trello-Webhook",
				string(newMAC(sha1.New, s.secret).signParts(inBase64, s.request.Body, []byte(s.url))))
		},
	}
}
