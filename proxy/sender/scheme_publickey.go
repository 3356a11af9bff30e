package sender

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"sync"
	"time"
)

// Schemes with public keys: SendGrid, Discord, PayPal. The keys are the configured ones: addresses of certificates that a
// delivery names are not looked at.

const (
	sendGridHeader = "X-Twilio-Email-Event-Webhook-Signature"
	sendGridTime   = "X-Twilio-Email-Event-Webhook-Timestamp"

	discordHeader = "X-Signature-Ed25519"
	discordTime   = "X-Signature-Timestamp"

	paypalHeader = "PAYPAL-TRANSMISSION-SIG"
	paypalID     = "PAYPAL-TRANSMISSION-ID"
	paypalTime   = "PAYPAL-TRANSMISSION-TIME"
	paypalAlgo   = "PAYPAL-AUTH-ALGO"
)

// sendGrid is ECDSA over SHA-256 of timestamp and raw body (which ends in CRLF).
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

func (v *sendGrid) head(d *Delivery) error { return d.needs(v.scheme, sendGridHeader, sendGridTime) }

// Verify implements Verifier.
func (v *sendGrid) Verify(d *Delivery, now time.Time) error {
	value, err := d.one(v.scheme, sendGridHeader)
	if err != nil {
		return err
	}
	digits, err := d.one(v.scheme, sendGridTime)
	if err != nil {
		return err
	}
	signature, ok := decodeBase64(value)
	if !ok {
		return &SignatureError{v.scheme, Malformed, sendGridHeader, "is no base64"}
	}
	stamp, ok := unixTime(digits, time.Second)
	if !ok {
		return &SignatureError{v.scheme, Malformed, sendGridTime, "is no Unix time"}
	}
	h := sha256.New()
	h.Write(digits)
	h.Write(d.Body)
	sum := h.Sum(nil)
	for _, k := range v.keys {
		if ecdsa.VerifyASN1(k, sum, signature) {
			return v.age.check(v.scheme, sendGridTime, stamp, now)
		}
	}
	return &SignatureError{v.scheme, Mismatch, sendGridHeader, "made with another key, or changed on the way: " + coversTime}
}

// discord is Ed25519 over timestamp and raw body. https://discord.com/developers/docs/interactions/overview
// Discord sends wrong signatures on purpose and removes the URL unless they are answered with 401.
type discord struct {
	scheme string
	keys   []ed25519.PublicKey
	age    age
	memory *scratch
}

func newDiscord(c Config) (Verifier, error) {
	keys, err := publicKeys(c.PublicKeys, hexEd25519, checkEd25519)
	if err != nil {
		return nil, err
	}
	return &discord{c.Scheme, keys, age{tolerance: c.Tolerance}, &scratch{}}, nil
}

func (v *discord) head(d *Delivery) error { return d.needs(v.scheme, discordHeader, discordTime) }

// Verify implements Verifier.
func (v *discord) Verify(d *Delivery, now time.Time) error {
	value, err := d.one(v.scheme, discordHeader)
	if err != nil {
		return err
	}
	digits, err := d.one(v.scheme, discordTime)
	if err != nil {
		return err
	}
	signature := make([]byte, ed25519.SignatureSize)
	if len(value) != hex.EncodedLen(ed25519.SignatureSize) {
		return &SignatureError{v.scheme, Malformed, discordHeader, "has " + strconv.Itoa(len(value)) + " characters where 128 are due"}
	}
	if _, err := hex.Decode(signature, value); err != nil {
		return &SignatureError{v.scheme, Malformed, discordHeader, "is no hex"}
	}
	stamp, ok := unixTime(digits, unitOf(digits))
	if !ok {
		return &SignatureError{v.scheme, Malformed, discordTime, "is no Unix time"}
	}
	parts := [...][]byte{digits, d.Body}
	if !v.memory.verifyEd25519(v.keys, signature, parts[:]) {
		return &SignatureError{v.scheme, Mismatch, discordHeader, "made with another key, or changed on the way: " + coversTime}
	}
	return v.age.check(v.scheme, discordTime, stamp, now)
}

// scratch lends memory for messages that must be in one piece, which is what Ed25519 asks for.
type scratch struct{ pool sync.Pool }

// maxScratch bounds the memory that is kept between deliveries, in bytes for each.
const maxScratch = 1 << 20

func (s *scratch) verifyEd25519(keys []ed25519.PublicKey, signature []byte, parts [][]byte) bool {
	if len(signature) != ed25519.SignatureSize {
		return false
	}
	memory, _ := s.pool.Get().(*[]byte)
	if memory == nil {
		memory = new([]byte)
	}
	message := (*memory)[:0]
	for _, p := range parts {
		message = append(message, p...)
	}
	valid := false
	for _, k := range keys {
		valid = valid || ed25519.Verify(k, message, signature)
	}
	if cap(message) <= maxScratch {
		*memory = message
		s.pool.Put(memory)
	}
	return valid
}

// paypal is RSA over the transmission's ID and time, the configured webhook ID and the CRC-32 of the body.
// https://developer.paypal.com/api/rest/webhooks/rest
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

func (v *paypal) head(d *Delivery) error {
	return d.needs(v.scheme, paypalHeader, paypalID, paypalTime, paypalAlgo)
}

// Verify implements Verifier.
func (v *paypal) Verify(d *Delivery, now time.Time) error {
	var values [4][]byte
	for i, name := range [4]string{paypalHeader, paypalID, paypalTime, paypalAlgo} {
		value, err := d.one(v.scheme, name)
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
		return &SignatureError{v.scheme, Malformed, paypalHeader, "is no base64"}
	}
	stamp, err := time.Parse(time.RFC3339, string(values[2]))
	if err != nil {
		return &SignatureError{v.scheme, Malformed, paypalTime, "is no time in RFC 3339"}
	}
	signed := paypalContent(values[1], values[2], v.webhookID, d.Body)
	if !verifyRSA(v.keys, crypto.SHA256, signed, signature) {
		return &SignatureError{v.scheme, Mismatch, paypalHeader,
			"made with another key, or changed on the way: transmission ID, time and body; look at webhook_id and the configured certificate, too"}
	}
	return v.age.check(v.scheme, paypalTime, stamp, now)
}

func paypalContent(id, stamp []byte, webhookID string, body []byte) []byte {
	return fmt.Appendf(nil, "%s|%s|%s|%d", id, stamp, webhookID, crc32.ChecksumIEEE(body))
}

func verifyRSA(keys []*rsa.PublicKey, algorithm crypto.Hash, message, signature []byte) bool {
	h := algorithm.New()
	h.Write(message)
	sum := h.Sum(nil)
	for _, k := range keys {
		if rsa.VerifyPKCS1v15(k, algorithm, sum, signature) == nil {
			return true
		}
	}
	return false
}
