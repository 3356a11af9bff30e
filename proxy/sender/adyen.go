package sender

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hooklock/idem"

	"github.com/valyala/fastjson"
)

// Adyen returns the preset of Adyen.
func (known) Adyen() Preset {
	return Preset{
		Name: "adyen", ExtractID: adyenID, IDText: "merchantAccountCode, eventCode, pspReference and success of " +
			"every item", OnMismatch: idem.MismatchReplay, Retention: 31 * day,
		Strategy: idem.Wait, WaitTimeout: 4 * time.Second,
		Facts: Facts{
			Timeout: 10 * time.Second, Retries: RetriesAll, RetriesFor: 30 * day, IDSigned: true,
			RetriesOn: "three times at once, then after 2, 5, 10, 15, 30 min and so on, for up to 30 days",
			GivesUp:   "one failure puts the whole endpoint into the retry queue, with all later notifications",
			Changes:   "eventDate",
		},
		verify: scheme{new: newAdyen},
		key:    keyHex,
		Page: Page{
			Title:    "Adyen",
			Workflow: `adyen/{body.notificationItems[0].NotificationRequestItem.merchantAccountCode ?? "other"}`,
			Secret:   "The HMAC key of the webhook, in hex, as the Customer Area shows it.",
			SampleID: "SampleCOM/AUTHORISATION/one/true",
		},
		Sources: []string{"docs.adyen.com/development-resources/webhooks/handle-webhook-events",
			"docs.adyen.com/development-resources/webhooks/troubleshoot",
			"Adyen/adyen-go-api-library src/hmacvalidator"},
		Notes: []string{
			"The signature covers eight fields of each item and nothing else of the body.",
			"Adyen asks to use the notification with the latest eventDate; Hooklock answers with the first that " +
				"succeeded.",
			"Platform webhooks (header HmacSignature) are signed as a whole and have no such ID: the body is the key.",
			"A form with one item (method HTTP POST) works like JSON. SOAP does not work.",
		},
		sample: func(s *sample) {
			key, err := hex.DecodeString(string(s.secret))
			if err != nil || len(key) == 0 {
				s.keepError(errors.New("give the HMAC key in hex"))
			}
			signature := s.keyedSHA256(key, inBase64,
				strings.Join([]string{s.id, "", "SampleCOM", "order-1", "1000", "EUR", "AUTHORISATION", "true"}, ":"))
			s.setBody(
				`{"live":"false","notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":%s},"amount":{"currency":"EUR","value":1000},"eventCode":"AUTHORISATION",`+
					`"eventDate":"`+s.rfc3339()+
					`","merchantAccountCode":"SampleCOM","merchantReference":"order-1","pspReference":%s,"success":"true"}}]}`,
				signature, s.id)
		},
	}
}

const adyenHeader = "HmacSignature"

// adyen verifies the signature of every item of a standard notification or, if there is a header
// HmacSignature (platform and management webhooks), the signature of the raw body.
// https://docs.adyen.com/development-resources/webhooks
type adyen struct {
	scheme string
	macs   []*mac
	body   *macVerifier
	colon  []byte
}

func newAdyen(c Config) (Verifier, error) {
	if err := checkSecrets(c.Secrets); err != nil {
		return nil, err
	}
	keys := make([][]byte, len(c.Secrets))
	for i, s := range c.Secrets {
		key, err := hex.DecodeString(string(s))
		if err != nil {
			return nil, fmt.Errorf("secret %d: give the HMAC key in hex, as the Customer Area shows it", i+1)
		}
		keys[i] = key
	}
	c.Secrets = keys
	all, err := newKeyedVerifier(c, sha256.New)
	if err != nil {
		return nil, err
	}
	body := &macVerifier{scheme: c.Scheme, macs: all.macs, encoding: inBase64, digest: all.digest, part: adyenHeader,
		covers: coversBody}
	body.read = func(d *Delivery, cl *claim) error {
		signature, err := d.requireOne(c.Scheme, adyenHeader)
		if err != nil {
			return err
		}
		// The signed text of an item ("psp:ref:…") has the same key. It must not be accepted as a
		// body.
		if !bytes.HasPrefix(bytes.TrimLeft(d.Body, " \t\r\n"), []byte("{")) {
			return &SignatureError{c.Scheme, Malformed, "body", "is not a JSON object"}
		}
		cl.signatures, cl.parts = append(cl.signatures, signature), append(cl.parts, d.Body)
		return nil
	}
	return &adyen{c.Scheme, all.macs, body, []byte(":")}, nil
}

// Verify implements Verifier.
func (v *adyen) Verify(d *Delivery, now time.Time) error {
	if d.hasHeader(adyenHeader) {
		return v.body.Verify(d, now)
	}
	if isForm(d) {
		return v.verifyForm(d)
	}
	body, err := parseStrict(v.scheme, d.Body)
	if err != nil {
		return err
	}
	if _, err := signedObject(v.scheme, "body", body); err != nil {
		return err
	}
	items := body.GetArray("notificationItems")
	if len(items) == 0 {
		return &SignatureError{v.scheme, Missing, "body.notificationItems", "neither items nor a header " + adyenHeader}
	}
	for i, item := range items {
		part := fmt.Sprintf("body.notificationItems[%d].NotificationRequestItem", i)
		if err := v.verifyItem(part, item); err != nil {
			return err
		}
	}
	return nil
}

func (v *adyen) verifyItem(part string, item *fastjson.Value) error {
	if _, err := signedObject(v.scheme, part, item); err != nil {
		return err
	}
	n, err := signedObject(v.scheme, part, item, "NotificationRequestItem")
	if err != nil {
		return err
	}
	extra, err := signedObject(v.scheme, part+".additionalData", n, "additionalData")
	if err != nil {
		return err
	}
	amount := fastjson.MustParse("{}")
	if n.Exists("amount") {
		if amount, err = signedObject(v.scheme, part+".amount", n, "amount"); err != nil {
			return err
		}
	}
	signature := extra.GetStringBytes("hmacSignature")
	if len(signature) == 0 {
		return &SignatureError{v.scheme, Missing, part + ".additionalData.hmacSignature", "the item is not signed"}
	}
	var parts [][]byte
	for _, f := range adyenFields() {
		from := n
		if f.amount {
			from = amount
		}
		value, ok := memberText(from, f.name)
		if !ok {
			return &SignatureError{v.scheme, Malformed, part + "." + f.name, "is an object or array"}
		}
		if len(parts) > 0 {
			parts = append(parts, v.colon)
		}
		parts = append(parts, value)
	}
	return v.matchSignature(part+"."+adyenSignature, parts, signature)
}

// adyenSignature is the path of the signature of an item in JSON, and its name in a form.
const adyenSignature = "additionalData.hmacSignature"

func (v *adyen) matchSignature(part string, parts [][]byte, signature []byte) error {
	if slices.ContainsFunc(v.macs, func(m *mac) bool { return m.matchesAny(inBase64, parts, [][]byte{signature}) }) {
		return nil
	}
	return &SignatureError{v.scheme, Mismatch, part,
		"made with another key, or changed on the way: references, account, amount, eventCode or success"}
}

// verifyForm verifies a standard notification of the method "HTTP POST": a form with one item.
func (v *adyen) verifyForm(d *Delivery) error {
	names := []string{adyenSignature}
	for _, f := range adyenFields() {
		names = append(names, f.name)
	}
	fields, once, form := formFields(d, names...)
	switch {
	case !form:
		return &SignatureError{v.scheme, Malformed, "form", "the body is not a form, or can be read in two ways"}
	case !once:
		return &SignatureError{v.scheme, Malformed, "form", "a signed field is given more than once"}
	case fields[adyenSignature] == "":
		return &SignatureError{v.scheme, Missing, "form." + adyenSignature, "the notification is not signed"}
	}
	var parts [][]byte
	for i, name := range names[1:] {
		if i > 0 {
			parts = append(parts, v.colon)
		}
		parts = append(parts, []byte(fields[name]))
	}
	return v.matchSignature("form."+adyenSignature, parts, []byte(fields[adyenSignature]))
}

// adyenField is one of the eight signed members, in the order in which they are signed.
type adyenField struct {
	name   string
	amount bool // a member of amount
}

func adyenFields() [8]adyenField {
	return [8]adyenField{{"pspReference", false}, {"originalReference", false}, {"merchantAccountCode", false},
		{"merchantReference", false},
		{"value", true}, {"currency", true}, {"eventCode", false}, {"success", false}}
}

// adyenID returns the ID of a notification. Duplicates have the same eventCode and pspReference;
// success distinguishes a failed attempt from a later successful one.
func adyenID(d *Delivery) EventID {
	names := []string{"merchantAccountCode", "eventCode", "pspReference", "success"}
	if isForm(d) {
		fields, once, form := formFields(d, names...)
		switch {
		case !form:
			return missingID
		case !once:
			return ambiguousID
		}
		return foundID("adyen", fields[names[0]], fields[names[1]], fields[names[2]], fields[names[3]])
	}
	v, err := parseJSON(d.Body)
	if err != nil {
		return missingID
	}
	if n := countMember(v, "notificationItems"); n != 1 {
		return onceOrAmbiguous(n)
	}
	var items []*fastjson.Value
	for _, item := range v.GetArray("notificationItems") {
		if countMember(item, "NotificationRequestItem") > 1 {
			return ambiguousID
		}
		items = append(items, item.Get("NotificationRequestItem"))
	}
	return eachMembers("adyen", items, names...)
}
