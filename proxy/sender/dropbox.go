package sender

import "hooklock/idem"

// Dropbox returns the preset of Dropbox.
func (known) Dropbox() Preset {
	return Preset{
		Name: "dropbox", NoID: true, IDText: "none; two notifications can have the same bytes, so Hooklock looks " +
			"for no duplicates", OnMismatch: idem.MismatchExecute,
		verify: asHMAC(Config{Header: "X-Dropbox-Signature"}),
		Page: Page{
			Title: "Dropbox", Workflow: `dropbox/{body.list_folder.accounts[0] ?? "other"}`,
			Secret: "The app secret.",
		},
		Sources: []string{"https://www.dropbox.com/developers/reference/webhooks"},
		Notes: []string{
			"A notification says only whose files changed. Each delivery runs, one after the other.",
			"The service asks Dropbox what changed since its cursor, so a repeated notification does no harm.",
			"Setup: Dropbox sends GET with a challenge, which passes to the service; the service echoes it.",
		},
		sample: func(s *sample) {
			s.setBody(`{"list_folder":{"accounts":[%s]},"delta":{"users":[1]}}`, s.prefixedID("dbid:"))
			s.signBody("X-Dropbox-Signature", "", inHex)
		},
	}
}
