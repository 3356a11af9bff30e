package sender

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/valyala/fastjson"
)

// Schemes that sign single members of a JSON body: Adyen and Mailgun here, SNS in its own file. What is signed is what was
// parsed, so a body that two JSON parsers could read differently is refused: else the signature would be checked on one
// reading and the upstream would act on the other.

// parseStrict parses JSON that has one meaning as far as objects with signed members go. fastjson lets some through that
// is no JSON; the standard library's check comes first.
func parseStrict(scheme string, body []byte) (*fastjson.Value, error) {
	if !json.Valid(body) {
		return nil, &SignatureError{scheme, Malformed, "body", "is no JSON"}
	}
	v, err := fastjson.ParseBytes(body)
	if err != nil {
		return nil, &SignatureError{scheme, Malformed, "body", "nests too deep"}
	}
	return v, nil
}

// signedObject returns the object at keys, whose members' names must differ by more than their case: Go's encoding/json,
// for one, takes "message" for Message.
func signedObject(scheme, part string, v *fastjson.Value, keys ...string) (*fastjson.Value, error) {
	at := v.Get(keys...)
	if at == nil || at.Type() != fastjson.TypeObject {
		return nil, &SignatureError{scheme, Missing, part, "no such object in the body"}
	}
	seen, twice := map[string]bool{}, false
	at.GetObject().Visit(func(name []byte, _ *fastjson.Value) {
		folded := foldCase(name)
		twice = twice || seen[folded]
		seen[folded] = true
	})
	if twice {
		return nil, &SignatureError{scheme, Malformed, part, "has a member twice"}
	}
	return at, nil
}

// foldCase maps names that differ only by the case of letters, as Unicode folds it, to one text: of each letter the
// spelling with the smallest code.
func foldCase(name []byte) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, string(name))
}

// halfCharacter reports whether valid JSON escapes one half of a surrogate pair without the other. Parsers differ there: one keeps
// the escape as it is written, the next puts U+FFFD, so that one signature would fit two texts.
func halfCharacter(body []byte) bool {
	for i := 0; i+1 < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		first, ok := escaped(body[i:])
		switch second, pair := escaped(body[min(i+6, len(body)):]); {
		case !ok:
			i++ // the character after the backslash, which may be another backslash
		case !utf16.IsSurrogate(first):
			i += 5
		case !pair || utf16.DecodeRune(first, second) == unicode.ReplacementChar:
			return true
		default:
			i += 11
		}
	}
	return false
}

// escaped reads the \uXXXX that text begins with.
func escaped(text []byte) (r rune, ok bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}

// text is a member as the sender wrote it into the signed text: strings unescaped, numbers and booleans as they stand,
// absent and null as nothing. ok is false for objects and arrays.
func text(v *fastjson.Value, name string) (value []byte, ok bool) {
	m := v.Get(name)
	if m == nil {
		return nil, true
	}
	switch m.Type() {
	case fastjson.TypeString:
		return m.GetStringBytes(), true
	case fastjson.TypeNull:
		return nil, true
	case fastjson.TypeObject, fastjson.TypeArray:
		return nil, false
	}
	return m.MarshalTo(nil), true
}

// newMailgun: https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks. The signature covers a timestamp and a
// token, not the event: one captured signature fits any event.
func newMailgun(c Config) (Verifier, error) {
	v, err := sha256MACs(c)
	if err != nil {
		return nil, err
	}
	v.part = "body.signature.signature"
	v.covers = "signature.timestamp and signature.token"
	v.read = func(d *Delivery, cl *claim) error {
		body, err := parseStrict(c.Scheme, d.Body)
		if err != nil {
			return err
		}
		if _, err := signedObject(c.Scheme, "body", body); err != nil {
			return err
		}
		signed, err := signedObject(c.Scheme, "body.signature", body, "signature")
		if err != nil {
			return err
		}
		stamp, _ := text(signed, "timestamp")
		nonce, _ := text(signed, "token")
		signature := signed.GetStringBytes("signature")
		if len(stamp) == 0 || len(nonce) == 0 || len(signature) == 0 {
			return &SignatureError{c.Scheme, Missing, "body.signature", "timestamp, token or signature is not there"}
		}
		cl.signatures = append(cl.signatures, signature)
		cl.parts = append(cl.parts, stamp, nonce)
		return cl.setTime(c.Scheme, "body.signature.timestamp", stamp, time.Second)
	}
	return v, nil
}

// adyen checks every item of a standard notification by its own signature, or, where the header HmacSignature says so
// (platform and management webhooks), the raw body. https://docs.adyen.com/development-resources/webhooks
type adyen struct {
	scheme string
	macs   []*mac
	body   *macVerifier
	colon  []byte
}

const adyenHeader = "HmacSignature"

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
	all, err := keyedSHA256(c)
	if err != nil {
		return nil, err
	}
	body := &macVerifier{scheme: c.Scheme, macs: all.macs, encoding: inBase64, digest: all.digest, part: adyenHeader, covers: coversBody}
	body.read = func(d *Delivery, cl *claim) error {
		signature, err := d.one(c.Scheme, adyenHeader)
		if err != nil {
			return err
		}
		// The signed text of an item looks like "psp:ref:…" and is under the same key: sent as a body, it must not pass for one.
		if !bytes.HasPrefix(bytes.TrimLeft(d.Body, " \t\r\n"), []byte("{")) {
			return &SignatureError{c.Scheme, Malformed, "body", "is no JSON object"}
		}
		cl.signatures, cl.parts = append(cl.signatures, signature), append(cl.parts, d.Body)
		return nil
	}
	return &adyen{c.Scheme, all.macs, body, []byte(":")}, nil
}

// Verify implements Verifier.
func (v *adyen) Verify(d *Delivery, now time.Time) error {
	if d.has(adyenHeader) {
		return v.body.Verify(d, now)
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
		if err := v.item(part, item); err != nil {
			return err
		}
	}
	return nil
}

func (v *adyen) item(part string, item *fastjson.Value) error {
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
		value, ok := text(from, f.name)
		if !ok {
			return &SignatureError{v.scheme, Malformed, part + "." + f.name, "is an object or array"}
		}
		if len(parts) > 0 {
			parts = append(parts, v.colon)
		}
		parts = append(parts, value)
	}
	for _, m := range v.macs {
		if m.matches(inBase64, parts, [][]byte{signature}) {
			return nil
		}
	}
	return &SignatureError{v.scheme, Mismatch, part + ".additionalData.hmacSignature",
		"made with another key, or changed on the way: references, account, amount, eventCode or success"}
}

// adyenField is one of the eight signed members, in the order in which they are signed.
type adyenField struct {
	name   string
	amount bool // a member of amount
}

func adyenFields() [8]adyenField {
	return [8]adyenField{{"pspReference", false}, {"originalReference", false}, {"merchantAccountCode", false}, {"merchantReference", false},
		{"value", true}, {"currency", true}, {"eventCode", false}, {"success", false}}
}
