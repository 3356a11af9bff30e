package sender

import (
	"crypto"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"hooklock/idem"
)

// PayPal returns the preset of PayPal.
func (known) PayPal() Preset {
	return Preset{
		Name: "paypal", EventID: "{body.id}", OnMismatch: idem.MismatchReplay,
		Labels: map[string]string{"object": "{body.resource.id}"},
		Facts: Facts{
			Retries: RetriesAll, RetriesFor: 3 * day, SignedTime: TimeInHeader, IDSigned: true,
			RetriesOn: "25 times over 3 days",
		},
		verify: scheme{new: newPayPal, aged: true, body: true, headers: []string{paypalID, paypalTime}},
		key:    keyRSA,
		Page: Page{
			Title: "PayPal", Workflow: `paypal/{body.resource.id ?? "other"}`,
			Verify: "public_key_file: /etc/hooklock/paypal.pem, webhook_id: 5GP028458E2496506",
			Secret: "The certificate that PAYPAL-CERT-URL names: fetch it once, from PayPal, and check it. " +
				"`webhook_id` is in the developer dashboard.",
			SampleID: "WH-one",
		},
		Renewal: RenewalImpossible,
		Sources: []string{"developer.paypal.com/api/rest/webhooks", "developer.paypal.com/api/rest/webhooks/rest"},
		Notes: []string{
			"The address in PAYPAL-CERT-URL is never followed: add a new certificate by hand, beside the old one.",
			"The signature covers a CRC-32 of the body: whoever captured a delivery can make another body with the " +
				"same CRC-32.",
			"Deliveries of PayPal's simulator cannot be verified.",
		},
		sample: func(s *sample) {
			s.setBody(`{"id":%s,"event_version":"1.0","create_time":"`+s.rfc3339()+
				`","resource_type":"capture","event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"id":"CAP-SAMPLE"}}`,
				s.prefixedID("WH-"))
			signature := signWith[*rsa.PrivateKey](s, crypto.SHA256,
				paypalContent([]byte(s.id), []byte(s.rfc3339()), s.webhookID, s.request.Body))
			s.addSigned(paypalID, s.id)
			s.addSigned(paypalTime, s.rfc3339())
			s.addSigned(paypalAlgo, "SHA256withRSA")
			s.addSigned(paypalHeader, base64.StdEncoding.EncodeToString(signature))
		},
	}
}

const (
	paypalHeader = "PAYPAL-TRANSMISSION-SIG"
	paypalID     = "PAYPAL-TRANSMISSION-ID"
	paypalTime   = "PAYPAL-TRANSMISSION-TIME"
	paypalAlgo   = "PAYPAL-AUTH-ALGO"
)

// paypal verifies RSA over the transmission's ID and time, the configured webhook ID and the CRC-32
// of the body. https://developer.paypal.com/api/rest/webhooks/rest
type paypal struct {
	scheme    string
	webhookID string
	keys      []*rsa.PublicKey
	age       age
}

func newPayPal(c Config) (Verifier, error) {
	if c.WebhookID == "" {
		return nil, errors.New("give webhook_id: PayPal signs the ID of the webhook, which is not in the delivery")
	}
	keys, err := publicKeys(c.PublicKeys, onlyPEM, checkRSA)
	if err != nil {
		return nil, err
	}
	return &paypal{c.Scheme, c.WebhookID, keys, age{tolerance: c.Tolerance}}, nil
}

func (v *paypal) checkHead(d *Delivery) error {
	return d.requireHeaders(v.scheme, paypalHeader, paypalID, paypalTime, paypalAlgo)
}

// Verify implements Verifier.
func (v *paypal) Verify(d *Delivery, now time.Time) error {
	var values [4][]byte
	for i, name := range [4]string{paypalHeader, paypalID, paypalTime, paypalAlgo} {
		value, err := d.requireOne(v.scheme, name)
		if err != nil {
			return err
		}
		values[i] = value
	}
	if !equalName(values[3], "SHA256withRSA") {
		return &SignatureError{v.scheme, Malformed, paypalAlgo, "is not SHA256withRSA"}
	}
	signature, ok := decodeBase64(values[0])
	if !ok {
		return &SignatureError{v.scheme, Malformed, paypalHeader, "is not base64"}
	}
	stamp, err := time.Parse(time.RFC3339, string(values[2]))
	if err != nil {
		return &SignatureError{v.scheme, Malformed, paypalTime, "is not a time in RFC 3339"}
	}
	signed := paypalContent(values[1], values[2], v.webhookID, d.Body)
	if !verifyRSA(v.keys, crypto.SHA256, signed, signature) {
		return &SignatureError{v.scheme, Mismatch, paypalHeader,
			"made with another key, or changed on the way: transmission ID, time and body; check webhook_id and the " +
				"configured certificate, too"}
	}
	return v.age.checkAge(v.scheme, paypalTime, stamp, now)
}

func paypalContent(id, stamp []byte, webhookID string, body []byte) []byte {
	return fmt.Appendf(nil, "%s|%s|%s|%d", id, stamp, webhookID, crc32.ChecksumIEEE(body))
}
