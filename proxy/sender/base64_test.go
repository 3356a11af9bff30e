package sender

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"hooklock/idem/naming"
)

var base64Spellings = map[string]*base64.Encoding{
	"base64": base64.StdEncoding, "unpadded": base64.RawStdEncoding, "base64url": base64.URLEncoding,
	"base64url, unpadded": base64.RawURLEncoding,
}

func signedBytes(secret, text string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func TestASignatureInBase64IsAcceptedInEachOfItsAlphabets(t *testing.T) {
	v := mustNew(t, Config{Scheme: "hmac", Secrets: [][]byte{[]byte("secret")}, Header: "X-Sig", Encoding: "base64"})
	for n := range byte(64) { // digests with each letter
		body := bytes.Repeat([]byte{n}, int(n))
		digest := signedBytes("secret", string(body))
		for name, encoding := range base64Spellings {
			text := encoding.EncodeToString(digest)
			if err := v.Verify(&Delivery{Body: body, Fields: []naming.Field{field("X-Sig", text)}},
				testNow()); err != nil {
				t.Errorf("%s %s: %v", name, text, err)
			}
			for _, bad := range []string{text[1:], text + "==", text + "AAAA", "AAAA" + text[4:]} {
				if v.Verify(&Delivery{Body: body, Fields: []naming.Field{field("X-Sig", bad)}}, testNow()) == nil {
					t.Errorf("%s: %s is taken for %s", name, bad, text)
				}
			}
		}
	}
}

// Standard Webhooks is not among them: its reference library compares the text.
func TestADigestOfAPresetIsAcceptedInEachAlphabetOfBase64(t *testing.T) {
	presets := map[string]string{"shopify": "X-Shopify-Hmac-Sha256", "woocommerce": "X-WC-Webhook-Signature",
		"line": "X-Line-Signature"}
	for scheme, header := range presets {
		v := mustNew(t, Config{Scheme: scheme, Secrets: [][]byte{[]byte("secret")}})
		for n := range byte(64) {
			body := bytes.Repeat([]byte{n}, int(n))
			for name, e := range base64Spellings {
				text := e.EncodeToString(signedBytes("secret", string(body)))
				d := &Delivery{Body: body, Fields: []naming.Field{field(header, text)}}
				if err := v.Verify(d, testNow()); err != nil {
					t.Errorf("%s, %s %s: %v", scheme, name, text, err)
				}
			}
		}
	}
}

func TestASignatureIsRenewedInTheAlphabetInWhichItCame(t *testing.T) {
	c := Config{
		Scheme: "hmac", Secrets: [][]byte{[]byte("secret")}, From: []string{"header.X-Sig[v1]"}, Encoding: "base64",
		Content: "{header.X-Sig[t]}.{body}", Timestamp: "header.X-Sig[t]",
	}
	renewer, err := NewRenewer(c)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 64 {
		body, later := bytes.Repeat([]byte{'a'}, n), testNow().Add(time.Hour)
		sign := func(at time.Time, e *base64.Encoding) string {
			return e.EncodeToString(signedBytes("secret", string(digitsOf(at, time.Second))+"."+string(body)))
		}
		for name, e := range base64Spellings {
			text := sign(testNow(), e)
			if !slices.Contains([]string{"base64", "base64url, unpadded"}, name) &&
				!bytes.ContainsAny([]byte(text), "+/-_") {
				continue // nothing tells which alphabet it is
			}
			d := &Delivery{Body: body, Fields: []naming.Field{field("X-Sig",
				"t="+string(digitsOf(testNow(), time.Second))+",v1="+text)}}
			renewed, err := renewer.Renew(d, later)
			if want := "t=" + string(digitsOf(later, time.Second)) + ",v1=" + sign(later, e); err != nil ||
				string(renewed.Changes[0].Value) != want {
				t.Errorf("%s %s: %v %v, want %s", name, text, renewed, err, want)
			}
		}
	}
}
