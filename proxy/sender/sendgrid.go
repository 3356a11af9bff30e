package sender

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"hooklock/idem"
)

// SendGrid returns the preset of SendGrid.
func (known) SendGrid() Preset {
	return Preset{
		Name: "sendgrid", ExtractID: sendGridID, IDText: "the set of sg_event_id of all elements",
		OnMismatch: idem.MismatchReplay,
		Facts: Facts{
			Retries: RetriesAll, RetriesFor: day, SignedTime: TimeInHeader, IDSigned: true,
			RetriesOn: "at growing intervals over 24 h",
		},
		verify: scheme{new: newSendGrid, aged: true, body: true, headers: []string{sendGridTime}},
		key:    keyECDSA,
		Page: Page{
			Title: "Twilio SendGrid", Workflow: "sendgrid",
			Verify:   "public_key_file: /etc/hooklock/sendgrid.pub",
			Secret:   "The verification key of the signed event webhook, as its settings show it.",
			SampleID: "one",
		},
		Renewal: RenewalImpossible,
		Sources: []string{"twilio.com/docs/sendgrid/for-developers/tracking-events/event",
			"sendgrid/sendgrid-go helpers/eventwebhook"},
		Notes: []string{
			"If one element has no sg_event_id, the body is the key.",
			"SendGrid says that sg_event_id is unique, and not that it stays the same on a retry.",
			"\"Test Your Integration\" sends fixed IDs: the second click gets the first answer.",
		},
		sample: func(s *sample) {
			s.setBody(`[{"email":"sample@example.com","event":"delivered","sg_event_id":%s,"timestamp":`+s.unixSeconds()+"}]\r\n",
				s.id)
			signature := signWith[*ecdsa.PrivateKey](s, crypto.SHA256,
				append([]byte(s.unixSeconds()), s.request.Body...))
			s.addSigned(sendGridHeader, base64.StdEncoding.EncodeToString(signature))
			s.addSigned(sendGridTime, s.unixSeconds())
		},
	}
}

const (
	sendGridHeader = "X-Twilio-Email-Event-Webhook-Signature"
	sendGridTime   = "X-Twilio-Email-Event-Webhook-Timestamp"
)

// sendGrid verifies ECDSA over SHA-256 of timestamp and raw body (which ends in CRLF).
// https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features
type sendGrid struct {
	scheme string
	keys   []*ecdsa.PublicKey
	age    age
}

func newSendGrid(c Config) (Verifier, error) {
	keys, err := publicKeys(c.PublicKeys, base64SPKI, checkP256)
	if err != nil {
		return nil, err
	}
	return &sendGrid{c.Scheme, keys, age{tolerance: c.Tolerance}}, nil
}

func (v *sendGrid) checkHead(d *Delivery) error {
	return d.requireHeaders(v.scheme, sendGridHeader, sendGridTime)
}

// Verify implements Verifier.
func (v *sendGrid) Verify(d *Delivery, now time.Time) error {
	value, err := d.requireOne(v.scheme, sendGridHeader)
	if err != nil {
		return err
	}
	digits, err := d.requireOne(v.scheme, sendGridTime)
	if err != nil {
		return err
	}
	signature, ok := decodeBase64(value)
	if !ok {
		return &SignatureError{v.scheme, Malformed, sendGridHeader, "is not base64"}
	}
	stamp, ok := unixTime(digits, time.Second)
	if !ok {
		return &SignatureError{v.scheme, Malformed, sendGridTime, "is not a Unix time"}
	}
	h := sha256.New()
	h.Write(digits)
	h.Write(d.Body)
	sum := h.Sum(nil)
	for _, k := range v.keys {
		if ecdsa.VerifyASN1(k, sum, signature) {
			return v.age.checkAge(v.scheme, sendGridTime, stamp, now)
		}
	}
	return &SignatureError{v.scheme, Mismatch, sendGridHeader, "made with another key, or changed on the way: " +
		coversTime}
}

// sendGridID returns the sorted IDs of all elements, because a batch may be in any order.
func sendGridID(d *Delivery) EventID {
	all, status := batchMembers(d.Body, "sg_event_id")
	if status != IDFound {
		return EventID{Status: status}
	}
	slices.SortFunc(all, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return batchID("sg_event_id", all)
}
