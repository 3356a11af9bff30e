package sender

import (
	"time"

	"hooklock/idem"
)

// Razorpay returns the preset of Razorpay.
func (known) Razorpay() Preset {
	return Preset{
		Name: "razorpay", EventID: `{body.account_id ?? "-"}/{header.x-razorpay-event-id}`,
		OnMismatch: idem.MismatchExecute,
		Labels:     map[string]string{"object": "{body.payload.order.entity.id ?? body.payload.payment.entity.id}"},
		Strategy:   idem.Wait, WaitTimeout: 2 * time.Second,
		Facts: Facts{
			Timeout: 5 * time.Second, Retries: RetriesAll, RetriesFor: day,
			RetriesOn: "after every answer but 2xx, at growing intervals for 24 h",
			Limits:    []Limit{{For: 24 * time.Hour}}, GivesUp: "disabled after 24 h of failures",
		},
		verify: asHMAC(Config{Header: razorpayHeader}),
		Page: Page{
			Title:    "Razorpay",
			Workflow: `razorpay/{body.payload.order.entity.id ?? body.payload.payment.entity.id ?? "other"}`,
			Secret:   "The secret that you gave when you created the webhook, not the API's key secret.",
			SampleID: "acc_sample/one",
		},
		Sources: []string{"https://razorpay.com/docs/webhooks/best-practices",
			"https://razorpay.com/docs/webhooks/validate-test", "https://razorpay.com/docs/webhooks/replay-events",
			"razorpay (npm) 2.9.8"},
		Notes: []string{
			"After a change of the secret, older events still come under the old one: give both as `secret_files` " +
				"for a day.",
			"Two webhooks on one URL get the same event: give each its own route.",
		},
		sample: func(s *sample) {
			s.setBody(
				`{"entity":"event","account_id":"acc_sample","event":"payment.captured","contains":["payment"],"payload":{"payment":{"entity":{"id":%s,"entity":"payment","amount":100}}}}`, "pay_"+s.id)
			s.addField("x-razorpay-event-id", s.id)
			s.signBody(razorpayHeader, "", inHex)
		},
	}
}

const razorpayHeader = "X-Razorpay-Signature"
