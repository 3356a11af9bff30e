package sender

import (
	"bytes"
	"time"

	"hooklock/idem"
)

// Linear returns the preset of Linear.
func (known) Linear() Preset {
	return Preset{
		Name: "linear", EventID: "{header.Linear-Delivery}", OnMismatch: idem.MismatchReplay, Strategy: idem.Wait,
		WaitTimeout: 2 * time.Second,
		Labels:      map[string]string{"object": "{body.data.id}"},
		Order:       "{body.createdAt}",
		Facts: Facts{
			Timeout: 5 * time.Second, Success: []int{200}, Retries: RetriesAll, RetriesFor: 8 * time.Hour,
			SignedTime: TimeInBody,
			RetriesOn:  "three times, after 1 min, 1 h and 6 h", GivesUp: "disabled if it keeps failing to answer",
			Changes: "webhookTimestamp, and with it the signature",
		},
		verify: scheme{new: newLinear, tolerance: time.Minute, aged: true, body: true},
		Page: Page{
			Title: "Linear", Workflow: `linear/{body.data.id ?? "other"}`,
			Secret:   "The signing secret on the webhook's page.",
			SampleID: "one",
		},
		Renewal: RenewalImpossible,
		Sources: []string{"linear.app/developers/webhooks", "linear/linear packages/sdk/src/webhooks/client.ts"},
		Notes: []string{
			"The tolerance of 1 min is that of Linear's library.",
		},
		sample: func(s *sample) {
			s.setBody(`{"action":"create","type":"Issue","createdAt":"`+rfc3339(s.happened)+
				`","data":{"id":%s,"title":"sample"},"webhookTimestamp":`+s.unixMillis()+
				`,"webhookId":"00000000-0000-4000-8000-000000000001"}`, s.id)
			s.addField("Linear-Delivery", s.id)
			s.signBody("Linear-Signature", "", inHex)
		},
	}
}

// newLinear returns the verifier of https://linear.app/developers/webhooks. The timestamp is a
// member of the signed body, in milliseconds.
func newLinear(c Config) (Verifier, error) {
	v, err := newMACVerifier(Config{Header: "Linear-Signature"}.withRoute(c))
	if err != nil || c.Tolerance == 0 {
		return v, err
	}
	signature := v.read
	v.read = func(d *Delivery, cl *claim) error {
		if err := signature(d, cl); err != nil {
			return err
		}
		cl.stampPart = "body.webhookTimestamp"
		stamp, ok := linearTime(d.Body)
		if !ok {
			return &SignatureError{c.Scheme, Missing, cl.stampPart, "is not a timestamp in milliseconds"}
		}
		cl.stamp = stamp
		return nil
	}
	return v, nil
}

// linearTime returns the member webhookTimestamp. It searches the text first, because parsing the
// JSON costs more than the HMAC. Inside a JSON string the quotes would be escaped, so a single
// plain occurrence is the member.
func linearTime(body []byte) (time.Time, bool) {
	name := []byte(`"webhookTimestamp":`)
	if at := bytes.Index(body, name); at > 0 && body[at-1] != '\\' && bytes.Count(body, name) == 1 {
		digits := bytes.TrimLeft(body[at+len(name):], " ")
		end := bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
		return unixTime(digits[:max(end, 0)], time.Millisecond)
	}
	v, err := parseJSON(body)
	if err != nil {
		return time.Time{}, false
	}
	ms := v.GetInt64("webhookTimestamp")
	return time.UnixMilli(ms), ms > 0
}
