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
		EventID: "{body.entry[0].changes[0].value.messages[0].id ?? body.entry[0].messaging[0].message.mid ?? body_sha256}", OnMismatch: idem.MismatchExecute,
		Strategy: idem.Wait, WaitTimeout: time.Second,
		Facts: Facts{
			Success: []int{200}, Retries: RetriesAll, RetriesFor: 36 * time.Hour, IDSigned: true,
			RetriesOn: "every answer but 200: at once, and then less and less often over 36 h",
		},
		verify: asHMAC(Config{Header: "X-Hub-Signature-256", Prefix: "sha256="}),
		sample: sampleMeta,
		Page: Page{
			Title: "Meta (WhatsApp, Messenger, Instagram)", Path: "/hooks/meta", Workflow: `meta/{body.entry[0].id ?? "other"}`,
			Verify:   "secret_file: /etc/hooklock/meta.secret",
			Secret:   "The app secret. It is not the verify token.",
			SampleID: "wamid.one",
		},
		Sources: []string{"https://developers.facebook.com/docs/graph-api/webhooks/getting-started", "https://developers.facebook.com/docs/messenger-platform/webhooks"},
		Notes: []string{
			"Meta gives a request no ID: it is named by the first message in it, else by its body. The whole request is one event; a known first message with another body runs, so that what Meta regroups when it sends again runs again.",
			"The handshake is a GET with hub.challenge. GET is none of the route's methods, so it passes through to the service, which answers it.",
			"No time is signed: a copy within the retention is a duplicate, because what names it is signed.",
			"How long Meta waits was not established. WhatsApp is said to go on for longer than 36 h.",
		},
	}
}

func sampleMeta(s *sample) error {
	s.body(`{"object":"whatsapp_business_account","entry":[{"id":"102290129340398","changes":[{"field":"messages","value":{"messaging_product":"whatsapp","messages":[{"from":"15550000001","id":%s,"timestamp":"`+
		strconv.FormatInt(s.happened.Unix(), 10)+`","type":"text","text":{"body":"sample"}}]}}]}]}`, s.named("wamid."))
	s.signBody("X-Hub-Signature-256", "sha256=", inHex)
	return nil
}
