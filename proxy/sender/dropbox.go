package sender

import (
	"time"

	"hooklock/idem"
)

// Dropbox is the sender of that name.
func (known) Dropbox() Preset {
	return Preset{
		Name: "dropbox", NoID: true, IDText: "none: two notifications can have the same bytes", OnMismatch: idem.MismatchExecute, Strategy: idem.Wait, WaitTimeout: time.Second, Respond: only5xx(),
		verify: asHMAC(Config{Header: "X-Dropbox-Signature"}),
		sample: sampleDropbox,
		Page: Page{
			Title: "Dropbox", Path: "/hooks/dropbox", Workflow: `dropbox/{body.list_folder.accounts[0] ?? "other"}`,
			Verify: "secret_file: /etc/hooklock/dropbox.secret",
			Secret: "The app secret.",
		},
		Sources: []string{"https://www.dropbox.com/developers/reference/webhooks"},
		Notes: []string{
			"A notification says only whose files changed, so that each change of one account has the same bytes. As duplicates of the first they would never reach the service: duplicates are not looked for, and each delivery runs, one after the other.",
			"The service asks Dropbox what changed since its cursor, so that a notification that comes twice does no harm.",
			"No time is signed: who captured a notification can send it again.",
			"When the webhook is added Dropbox asks for the URL with GET and a challenge: GET passes through to the service, which echoes it.",
		},
	}
}

func sampleDropbox(s *sample) error {
	s.body(`{"list_folder":{"accounts":[%s]},"delta":{"users":[1]}}`, s.named("dbid:"))
	s.signBody("X-Dropbox-Signature", "", inHex)
	return nil
}
