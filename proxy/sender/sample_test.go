package sender

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// testNow returns the time of the samples.
func testNow() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }

func pemOf(t testing.TB, kind string, der []byte, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// testRSA is made once, because that takes most of a second.
var testRSA = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// credentials returns the configuration and the secret of a sample of a preset.
func credentials(t testing.TB, preset string) (Config, []byte) {
	t.Helper()
	p, ok := Lookup(preset)
	if !ok {
		t.Fatalf("no preset %s", preset)
	}
	c := Config{Scheme: p.Scheme, Tolerance: p.Tolerance, PublicURL: "https://hooks.example.com",
		WebhookID: "WEBHOOK-SAMPLE"}
	secret := []byte("a-test-secret")
	switch p.key {
	case keyHex:
		secret = []byte("44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056")
	case keyBase64:
		secret = []byte("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	case keyWhsec:
		secret = []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	case keyECDSA:
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalECPrivateKey(key)
		secret = pemOf(t, "EC PRIVATE KEY", der, err)
		public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		c.PublicKeys = [][]byte{[]byte(base64.StdEncoding.EncodeToString(public))}
		if p.Name != "sendgrid" {
			c.PublicKeys = [][]byte{pemOf(t, "PUBLIC KEY", public, nil)}
		}
	case keyEd25519:
		public, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		secret = pemOf(t, "PRIVATE KEY", der, err)
		der, err = x509.MarshalPKIXPublicKey(public)
		c.PublicKeys = [][]byte{pemOf(t, "PUBLIC KEY", der, err)}
	case keyRSA:
		secret = pemOf(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(testRSA()), nil)
		der, err := x509.MarshalPKIXPublicKey(&testRSA().PublicKey)
		c.PublicKeys = [][]byte{pemOf(t, "PUBLIC KEY", der, err)}
	}
	if c.PublicKeys == nil {
		c.Secrets = [][]byte{secret}
	}
	return c, secret
}

func mustSample(t testing.TB, preset string, secret []byte, options ...SampleOption) *Delivery {
	t.Helper()
	r, err := Sample(preset, secret, testNow(), options...)
	if err != nil {
		t.Fatal(err)
	}
	return r.asDelivery()
}

func mustNew(t testing.TB, c Config) Verifier {
	t.Helper()
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func reasonOf(t testing.TB, err error) Reason {
	t.Helper()
	var se *SignatureError
	if !errors.As(err, &se) {
		t.Fatalf("not a SignatureError: %v", err)
	}
	return se.Reason
}

func TestASampleOfEverySenderVerifiesAndCarriesAnID(t *testing.T) {
	for _, p := range Presets() {
		t.Run(p.Name, func(t *testing.T) {
			c, secret := credentials(t, p.Name)
			d := mustSample(t, p.Name, secret)
			if err := mustNew(t, c).Verify(d, testNow()); err != nil {
				t.Fatal(err)
			}
			if h := p.Handshake(d); h != nil {
				t.Fatalf("taken for the handshake %s", h.Name)
			}
			if p.ExtractID != nil {
				if id := p.ExtractID(d); id.Status != IDFound {
					t.Fatalf("no ID: %+v", id)
				}
				again := p.ExtractID(mustSample(t, p.Name, secret, WithEvent("other")))
				if strings.Join(again.Parts, " ") == strings.Join(p.ExtractID(d).Parts, " ") {
					t.Fatal("another event has the same ID")
				}
			}
		})
	}
}

func TestAnUnsignedSampleIsNotVerified(t *testing.T) {
	for _, p := range Presets() {
		if p.Scheme == "none" {
			continue
		}
		c, secret := credentials(t, p.Name)
		if mustNew(t, c).Verify(mustSample(t, p.Name, secret, Unsigned()), testNow()) == nil {
			t.Errorf("%s: its signature is there", p.Name)
		}
	}
}

func TestASampleUnderAnotherSecretIsAMismatch(t *testing.T) {
	for _, p := range Presets() {
		if p.Scheme == "none" {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			c, secret := credentials(t, p.Name)
			d := mustSample(t, p.Name, secret)
			other, _ := credentials(t, p.Name)
			for _, s := range [][]byte{[]byte("another"), []byte("whsec_AAAA"), []byte("00ff")} {
				c.Secrets = other.Secrets
				if len(c.Secrets) > 0 {
					c.Secrets = [][]byte{s}
				}
				v, err := New(c)
				if err != nil {
					continue // not a secret of this sender
				}
				err = v.Verify(d, testNow())
				if p.key == keyRSA {
					return // the RSA key is shared by the tests
				}
				if len(c.PublicKeys) > 0 {
					c.PublicKeys = other.PublicKeys
					err = mustNew(t, c).Verify(d, testNow())
				}
				if err == nil {
					t.Fatal("verifies under another secret")
				}
			}
		})
	}
}

func TestEitherSecretIsGoodWhileOneIsRolled(t *testing.T) {
	for _, p := range Presets() {
		c, secret := credentials(t, p.Name)
		if len(c.Secrets) == 0 || p.Scheme == "none" {
			continue
		}
		d := mustSample(t, p.Name, secret)
		newer := map[keyKind]string{keySecret: "the newer secret", keyHex: "00112233", keyWhsec: "whsec_AAECAwQF",
			keyBase64: "AAECAwQF"}[p.key]
		c.Secrets = [][]byte{[]byte(newer), secret}
		if err := mustNew(t, c).Verify(d, testNow()); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

// An ID with the sender's prefix is not prefixed again, so that it can be used to find the event.
func TestASampleHasTheRequestedEventID(t *testing.T) {
	for preset, ids := range map[string][2]string{
		"stripe": {"evt_1", "1"}, "paddle": {"evt_1", "1"}, "vercel": {"evt_1", "1"}, "slack": {"Ev_1", "1"},
		"standard-webhooks": {"msg_1", "msg_1"}, "intercom": {"notif_1", "1"}, "mollie": {"event_1", "1"},
		"mollie-classic": {"tr_1", "1"}, "paypal": {"WH-1", "1"}, "workos": {"event_1", "1"}, "meta": {"wamid.1", "1"},
		"github": {"gh_1", "gh_1"},
	} {
		whole, err := Sample(preset, nil, testNow(), WithEvent(ids[0]), Unsigned())
		if err != nil {
			t.Fatal(err)
		}
		short, err := Sample(preset, nil, testNow(), WithEvent(ids[1]), Unsigned())
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprintf("%s %s", whole.Fields, whole.Body); !strings.Contains(text, ids[0]) ||
			text != fmt.Sprintf("%s %s", short.Fields, short.Body) {
			t.Errorf("%s: %s is not called %s", preset, text, ids[0])
		}
	}
}

func TestASampleSaysWhatToGive(t *testing.T) {
	for preset, want := range map[string]string{"stripe": "--secret-file", "sns": "private key", "adyen": "hex",
		"nobody": "give one of"} {
		secret := []byte("not the right kind")
		if preset == "stripe" {
			secret = nil
		}
		if _, err := Sample(preset, secret, testNow()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v should say %q", preset, err, want)
		}
	}
	if _, err := Sample("github", []byte("s"), testNow(), WithEvent("a\nb")); err == nil {
		t.Error("an event ID with a line break should be refused")
	}
}

func TestSamplesFollowTheURL(t *testing.T) {
	for _, preset := range []string{"twilio", "square", "hubspot"} {
		c, secret := credentials(t, preset)
		c.PublicURL = "https://other.example.com:8443/prefix"
		r, err := Sample(preset, secret, testNow(), WithURL("https://other.example.com:8443/prefix/in?a=b"))
		if err != nil {
			t.Fatal(err)
		}
		d := r.asDelivery()
		d.Target = d.Target[len("/prefix"):] // what the ingress leaves
		if err := mustNew(t, c).Verify(d, testNow()); err != nil {
			t.Errorf("%s: %v", preset, err)
		}
	}
}

// TestTheHeadAloneRefusesNothingThatIsSigned also checks that a delivery that the head refuses is
// refused with its body for the same reason.
func TestTheHeadAloneRefusesNothingThatIsSigned(t *testing.T) {
	inBody := map[string]bool{"mailgun": true, "sns": true, "adyen": true, "figma": true, "none": true}
	for _, p := range Presets() {
		c, secret := credentials(t, p.Name)
		v, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		whole := mustSample(t, p.Name, secret)
		head := *whole
		head.Body = nil
		if err := CheckHead(v, &head); err != nil {
			t.Errorf("%s: a signed delivery is refused: %v", p.Name, err)
		}
		found := false
		for i := range whole.Fields {
			d := *whole
			d.Fields = append(append(d.Fields[:0:0], whole.Fields[:i]...), whole.Fields[i+1:]...)
			want := v.Verify(&d, testNow())
			d.Body = nil
			if got := CheckHead(v, &d); got != nil {
				found = true
				if want == nil || got.Error() != want.Error() {
					t.Errorf("%s without %s: the head says %v, and the whole %v", p.Name, whole.Fields[i].Name, got,
						want)
				}
			}
		}
		if found == inBody[p.Scheme] {
			t.Errorf("%s: found in the head: %v", p.Name, found)
		}
	}
}
