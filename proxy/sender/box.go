package sender

import (
	"time"

	"hooklock/idem"
)

// Box returns the preset of Box.
func (known) Box() Preset {
	return Preset{
		Name: "box", EventID: "{body.id}", OnMismatch: idem.MismatchReplay,
		Facts: Facts{
			Timeout: 30 * time.Second, Retries: RetriesAll, SignedTime: TimeInHeader, IDSigned: true,
			RetriesOn: "after every answer but 2xx, up to 10 times: after 5 min, then at growing intervals",
			Changes:   "BOX-DELIVERY-ID, the signatures and their time",
		},
		verify: asHMAC(Config{From: []string{"header.BOX-SIGNATURE-PRIMARY", "header.BOX-SIGNATURE-SECONDARY"},
			Encoding: "base64", Timestamp: "header." + boxTime, Content: "{body}{header." + boxTime + "}",
			Tolerance: 10 * time.Minute}),
		Page: Page{
			Title: "Box", Workflow: `box/{body.source.id ?? "other"}`,
			Secret: "The primary signature key of the app, from the developer console. To accept the secondary " +
				"one too, give both as `secret_files`.",
			SampleID: "one",
		},
		Sources: []string{"https://developer.box.com/guides/webhooks/handle/payload/",
			"https://developer.box.com/guides/webhooks/handle/retries/",
			"https://developer.box.com/guides/webhooks/handle/verify-signatures/", "box-node-sdk 10.12.0"},
		Notes: []string{
			"Box signs with both keys; one match is enough.",
		},
		sample: func(s *sample) {
			s.setBody(`{"type":"webhook_event","id":%s,"created_at":"`+rfc3339(s.happened)+
				`","trigger":"FILE.UPLOADED","webhook":{"id":"53","type":"webhook"},"source":{"id":"1","type":"file"}}`, s.id)
			s.addField("BOX-DELIVERY-ID", "delivery-"+s.unixMillis())
			s.addSigned(boxTime, s.rfc3339())
			s.addSigned("BOX-SIGNATURE-VERSION", "1")
			s.addSigned("BOX-SIGNATURE-ALGORITHM", "HmacSHA256")
			s.addSigned("BOX-SIGNATURE-PRIMARY", s.hmac256(inBase64, string(s.request.Body), s.rfc3339()))
		},
	}
}

const boxTime = "BOX-DELIVERY-TIMESTAMP"
