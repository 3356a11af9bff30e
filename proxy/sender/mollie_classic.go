package sender

import (
	"net/url"
	"time"

	"hooklock/idem"
)

// MollieClassic is Mollie's webhookUrl of a payment.
func (known) MollieClassic() Preset {
	return Preset{
		Name: "mollie-classic", Scheme: "none", NoID: true,
		IDText:     "none; every change of a payment has the same bytes, so Hooklock looks for no duplicates",
		OnMismatch: idem.MismatchExecute, Strategy: idem.Wait, WaitTimeout: time.Second,
		Facts: Facts{
			Success: []int{200}, Retries: RetriesAll, RetriesOn: "after every answer but 200, \"for a few hours\"",
			Changes: "nothing; all calls for one payment are equal", States: true,
		},
		Page: Page{
			Title: "Mollie, classic webhooks", Workflow: `mollie/{form.id ?? "other"}`,
		},
		Sources: []string{"https://docs.mollie.com/overview/webhooks", "https://docs.mollie.com/guides/webhooks"},
		Notes: []string{
			"The calls for one payment run one after the other.",
			"Nothing is signed, by intent: the service asks Mollie for the status, so a forged call changes nothing.",
			"Next-gen webhooks are signed and have an ID: [mollie](mollie.md).",
		},
		sample: func(s *sample) {
			s.request.Body = []byte(url.Values{"id": {s.prefixedID("tr_")}}.Encode())
			s.setType("application/x-www-form-urlencoded")
		},
	}
}
