package sender

import (
	"strconv"
	"time"

	"hooklock/idem"
)

// Meta is WhatsApp, Messenger and Instagram.
func (known) Meta() Preset {
	return Preset{
		Name: "meta", Aliases: []string{"whatsapp", "messenger", "instagram"},
		EventID: "{body.entry[0].changes[0].value.messages[0].id ?? body.entry[0].messaging[0].message.mid ?? " +
			"body_sha256}", OnMismatch: idem.MismatchExecute,
		Strategy: idem.Wait, WaitTimeout: time.Second,
		Facts: Facts{
			Success: []int{200}, Retries: RetriesAll, RetriesFor: 36 * time.Hour, IDSigned: true,
			RetriesOn: "after every answer but 200: at once, then less and less often over 36 h",
		},
		verify: asHMAC(Config{Header: "X-Hub-Signature-256", Prefix: "sha256="}),
		Page: Page{
			Title:    "Meta (WhatsApp, Messenger, Instagram)",
			Workflow: `meta/{body.entry[0].id ?? "other"}`,
			Secret:   "The app secret. It is not the verify token.",
			SampleID: "wamid.one",
		},
		Sources: []string{"https://developers.facebook.com/docs/graph-api/webhooks/getting-started",
			"https://developers.facebook.com/docs/messenger-platform/webhooks"},
		Notes: []string{
			"The first message of a request names all of it, else its body does.",
			"The handshake, a GET with hub.challenge, passes to the service, which answers it.",
			"WhatsApp is said to retry for longer than 36 h.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"object":"whatsapp_business_account","entry":[{"id":"102290129340398","changes":[{"field":"messages","value":{"messaging_product":"whatsapp","messages":[{"from":"15550000001","id":%s,"timestamp":"`+
					strconv.FormatInt(s.happened.Unix(), 10)+`","type":"text","text":{"body":"sample"}}]}}]}]}`,
				s.prefixedID("wamid."))
			s.signBody("X-Hub-Signature-256", "sha256=", inHex)
		},
	}
}
