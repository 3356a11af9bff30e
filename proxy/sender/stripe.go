package sender

import (
	"bytes"
	"strconv"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
)

// Stripe returns the preset of Stripe.
func (known) Stripe() Preset {
	return Preset{
		Name: "stripe", EventID: "{body.id}", OnMismatch: idem.MismatchReplay, Retention: 30 * day,
		Order: "{body.created}", OrderUnit: idem.UnitSeconds,
		Labels: map[string]string{"object": "{body.data.object.id}"},
		Facts: Facts{
			Retries: RetriesAll, RetriesFor: 3 * day, SignedTime: TimeInHeader, IDSigned: true,
			RetriesOn: "after every answer but 2xx, at growing intervals over 3 days",
			Changes:   "the signature and its time",
		},
		verify: scheme{new: newStripe, tolerance: minutes5, aged: true, body: true},
		Page: Page{
			Title: "Stripe", Path: "/hooks/stripe/{account}", Workflow: "stripe/{path.account}",
			Secret: "The endpoint's signing secret, `whsec_` included. After \"Roll secret\" both are valid for a " +
				"while: give both as `secret_files`.",
			SampleID: "evt_one",
		},
		Renewal: RenewalPossible,
		Sources: []string{"docs.stripe.com/webhooks", "stripe/stripe-go webhook/client.go"},
		Notes: []string{
			"The retention covers manual resends, too: 15 days in the Dashboard, 30 with the CLI.",
			"Two events for one change have two IDs: both run.",
			"Endpoints on one URL get the same event ID: give each its own route.",
			"A renewed signature has a v1 for each secret of the route that had made one. v0, which comes with test " +
				"events, is left out.",
		},
		sample: func(s *sample) {
			s.setBody(`{"id":%s,"object":"event","created":`+strconv.FormatInt(s.happened.Unix(), 10)+
				`,"type":"invoice.paid","livemode":false,"data":{"object":{"id":"in_sample","object":"invoice"}}}`,
				s.prefixedID("evt_"))
			s.signRequest(s.secret, signStripe)
		},
	}
}

const stripeHeader = "Stripe-Signature"

// newStripe returns the verifier of https://docs.stripe.com/webhooks. The whole text of the secret,
// whsec_ included, is the key. While a secret is rolled the header has a v1 for each. As in
// Stripe's library, a timestamp in the future is valid.
func newStripe(c Config) (Verifier, error) {
	v, err := sha256MACs(c)
	if err != nil {
		return nil, err
	}
	v.part, v.covers, v.age.pastOnly, v.sign = stripeHeader, coversTime, true, signStripe
	dot := []byte(".")
	v.read = func(d *Delivery, cl *claim) error {
		value, err := d.requireOne(c.Scheme, stripeHeader)
		if err != nil {
			return err
		}
		t, err := stripeFields(c.Scheme, value, cl)
		if err != nil {
			return err
		}
		cl.parts = append(cl.parts, t, dot, d.Body)
		return cl.setTime(c.Scheme, stripeHeader+" t", t, time.Second)
	}
	return v, nil
}

// stripeFields parses "t=1767225600,v1=…,v1=…" and skips unknown schemes, as Stripe requires.
func stripeFields(scheme string, value []byte, cl *claim) (t []byte, err error) {
	for item := range bytes.SplitSeq(value, []byte(",")) {
		name, content, _ := bytes.Cut(bytes.TrimSpace(item), []byte("="))
		switch string(name) {
		case "t":
			if t != nil {
				return nil, &SignatureError{scheme, Malformed, stripeHeader, "has two timestamps"}
			}
			t = content
		case "v1":
			cl.signatures = append(cl.signatures, content)
		}
	}
	if len(t) == 0 {
		return nil, &SignatureError{scheme, Malformed, stripeHeader, "has no timestamp t"}
	}
	if len(cl.signatures) == 0 {
		return nil, &SignatureError{scheme, Missing, stripeHeader, "has no v1 signature"}
	}
	return t, nil
}

// signStripe implements signer. It leaves out v0, which Stripe sends for test events and whose key
// is unknown.
func signStripe(d *Delivery, keys []*mac, at time.Time) ([]naming.Field, error) {
	t := digitsOf(at, time.Second)
	value := append([]byte("t="), t...)
	for _, m := range keys {
		value = append(append(value, ",v1="...), m.signParts(inHex, t, []byte("."), d.Body)...)
	}
	return []naming.Field{{Name: []byte(stripeHeader), Value: value}}, nil
}
