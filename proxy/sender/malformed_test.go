package sender

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"
)

func TestSignaturesThatCannotBeReadAreMalformed(t *testing.T) {
	cases := []struct{ preset, name, value string }{
		{"stripe", stripeHeader, "t=1,t=2,v1=00"},
		{"stripe", stripeHeader, "v1=00"},
		{"stripe", stripeHeader, "t=-5,v1=00"},
		{"github", "X-Hub-Signature-256", "sha1=00"},
		{"jira", "X-Hub-Signature", "sha512=00"},
		{"slack", slackTime, "+1772600767"},
		{"slack", slackTime, "1772600767.5"},
		{"slack", slackTime, "1772 600767"},
		{"slack", slackTime, strings.Repeat("9", 30)},
		{"slack", slackHeader, "v1=00"},
		{"hubspot", hubspotTime, "soon"},
		{"standard-webhooks", "webhook-timestamp", "2026-01-01"},
		{"paypal", paypalAlgo, "MD5withRSA"},
		{"paypal", paypalTime, "1772600767"},
		{"paypal", paypalHeader, "not base64!"},
		{"sendgrid", sendGridHeader, "not base64!"},
		{"sendgrid", sendGridTime, "x"},
		{"discord", discordHeader, strings.Repeat("z", 128)},
		{"discord", discordTime, "x"},
	}
	for _, c := range cases {
		config, secret := credentials(t, c.preset)
		d := with(mustSample(t, c.preset, secret), c.name, c.value)
		if got := reasonOf(t, mustNew(t, config).Verify(d, testNow())); got != Malformed {
			t.Errorf("%s, %s: %q is %s", c.preset, c.name, c.value, got)
		}
	}
}

func TestJSONBodiesWithoutTheirSignatureSayWhatIsMissing(t *testing.T) {
	cases := []struct {
		preset, body string
		want         Reason
	}{
		{"mailgun", `{`, Malformed},
		{"mailgun", `[]`, Missing},
		{"mailgun", `{"event-data":{"id":"1"}}`, Missing},
		{"mailgun", `{"signature":{"timestamp":"1","token":"","signature":"00"}}`, Missing},
		{"adyen", `{"notificationItems":[]}`, Missing},
		{"adyen", `{"notificationItems":[1]}`, Missing},
		{"adyen",
			`{"notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":"x"},"pspReference":{}}}]}`, Malformed},
		{"sns", `{"Type":"Notification"}`, Missing},
		{"sns", `{"SignatureVersion":"3"}`, Malformed},
		{"sns", `{"SignatureVersion":"2","Signature":"AAAA","Type":"Other"}`, Malformed},
		{"sns", `{"SignatureVersion":"2","Signature":"AAAA","Type":"Notification","Message":1}`, Malformed},
		{"sns", `{"SignatureVersion":"2","Signature":""}`, Malformed},
	}
	for _, c := range cases {
		config, _ := credentials(t, c.preset)
		if got := reasonOf(t, mustNew(t, config).Verify(&Delivery{Body: []byte(c.body)}, testNow())); got != c.want {
			t.Errorf("%s %s: %s", c.preset, c.body, got)
		}
	}
}

// The second key in the file is the one that the sender will use next.
func TestAKeyThatCannotBeReadBesideOneThatCanIsAnError(t *testing.T) {
	c, _ := credentials(t, "sns")
	good := string(c.PublicKeys[0])
	cut := strings.Replace(good, "\n", "\n*", 1)
	for name, text := range map[string]string{"behind": good + cut, "before": cut + good,
		"cut off": good + good[:len(good)/2]} {
		c.PublicKeys = [][]byte{[]byte(text)}
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), "1 of 2 PEM blocks could not be read") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.PublicKeys = [][]byte{[]byte("# the old one\n" + good + "\n# the new one\n" + good)}
	mustNew(t, c)
}

func TestAdyenPlatformWebhooksAreSignedAsAWhole(t *testing.T) {
	c, secret := credentials(t, "adyen")
	body := `{"type":"balancePlatform.transfer.created"}`
	key := []byte{}
	for i := 0; i < len(secret); i += 2 {
		var b big.Int
		b.SetString(string(secret[i:i+2]), 16)
		key = append(key, byte(b.Int64()))
	}
	d := &Delivery{Body: []byte(body)}
	d = with(d, adyenHeader, (&sample{}).keyedSHA256(key, inBase64, body))
	v := mustNew(t, c)
	if err := v.Verify(d, testNow()); err != nil {
		t.Fatal(err)
	}
	d.Body = append(d.Body, '\n')
	if got := reasonOf(t, v.Verify(d, testNow())); got != Mismatch {
		t.Fatalf("changed: %s", got)
	}
	item := "psp1::acc:ref:10:EUR:AUTHORISATION:true"
	d = with(&Delivery{Body: []byte(item)}, adyenHeader, (&sample{}).keyedSHA256(key, inBase64, item))
	if got := reasonOf(t, v.Verify(d, testNow())); got != Malformed {
		t.Fatalf("the signed text of an item as a body: %s", got)
	}
}

// certificateOf returns an expired certificate of a key.
func certificateOf(t *testing.T, key *rsa.PrivateKey) []byte {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sns.amazonaws.com"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return pemOf(t, "CERTIFICATE", der, err)
}

func TestCertificatesArePinnedAndSeveralMayStandInOneFile(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	both := append(certificateOf(t, other), certificateOf(t, testRSA())...)
	for _, preset := range []string{"sns", "paypal"} {
		c, secret := credentials(t, preset)
		d := mustSample(t, preset, secret)
		c.PublicKeys = [][]byte{both}
		if err := mustNew(t, c).Verify(d, testNow()); err != nil {
			t.Errorf("%s: %v", preset, err)
		}
		c.PublicKeys = [][]byte{certificateOf(t, other)}
		if got := reasonOf(t, mustNew(t, c).Verify(d, testNow())); got != Mismatch {
			t.Errorf("%s with another certificate: %s", preset, got)
		}
	}
}

func TestWeakAndForeignKeysAreRefused(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0")
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&short.PublicKey)
	weak := pemOf(t, "PUBLIC KEY", der, err)
	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err = x509.MarshalPKIXPublicKey(&curve.PublicKey)
	p384 := pemOf(t, "PUBLIC KEY", der, err)
	private := pemOf(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(testRSA()), nil)
	for _, c := range []struct {
		scheme string
		key    []byte
		want   string
	}{
		{"sns", weak, "1024 bits"}, {"sendgrid", p384, "P-256"},
		{"sns", p384, "is a *ecdsa.PublicKey, not a *rsa.PublicKey"}, {"sns", private, "give a PUBLIC KEY"},
		{"discord", weak, "ed25519"}, {"sendgrid", []byte("AAAA"), "public key 1"},
	} {
		if _, err := New(Config{Scheme: c.scheme, PublicKeys: [][]byte{c.key}}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v should say %q", c.scheme, err, c.want)
		}
	}
}

func TestLinearFindsItsTimestampWhateverTheBodyQuotes(t *testing.T) {
	want := time.UnixMilli(1772600767000)
	for _, body := range []string{
		`{"webhookTimestamp":1772600767000}`,
		`{"webhookTimestamp": 1772600767000,"a":1}`,
		`{"webhookTimestamp" : 1772600767000}`,
		`{"title":"says \"webhookTimestamp\":5","webhookTimestamp":1772600767000}`,
		`{"data":{"webhookTimestamp":5},"webhookTimestamp":1772600767000}`,
	} {
		if got, ok := linearTime([]byte(body)); !ok || !got.Equal(want) {
			t.Errorf("%s: %v, %v", body, got, ok)
		}
	}
	for _, body := range []string{``, `{}`, `{"webhookTimestamp":"x"}`, `{"webhookTimestamp":`,
		`{"webhookTimestamp":-1}`} {
		if got, ok := linearTime([]byte(body)); ok {
			t.Errorf("%s: %v", body, got)
		}
	}
}

func TestASignatureHasOneSpelling(t *testing.T) {
	for preset, change := range map[string][2]string{
		"sns": {`"Signature":"`, `"Signature":"\n`}, // a line break in JSON, which a plain base64 decoder skips
	} {
		config, secret := credentials(t, preset)
		d := mustSample(t, preset, secret)
		d.Body = bytes.Replace(d.Body, []byte(change[0]), []byte(change[1]), 1)
		if got := reasonOf(t, mustNew(t, config).Verify(d, testNow())); got != Malformed {
			t.Errorf("%s: %s", preset, got)
		}
	}
}

func TestHalfASurrogatePairIsRecognised(t *testing.T) {
	for body, want := range map[string]bool{
		`{"a":"x"}`: false, `"\u0041\n\\"`: false, `"\ud83d\ude00"`: false, `"\\ud800"`: false,
		`"\\\\ud800\u0041"`: false, `"😀"`: false,
		`"\ud800"`: true, `"\udc00"`: true, `"\ud83dx"`: true, `"\ud83d\u0041"`: true, `"\\\ud800"`: true,
		`"\ud83d\ude00\ud83d"`: true, `"\`: false, `"\u`: false,
	} {
		if got := halfCharacter([]byte(body)); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

func TestSNSRefusesATextThatParsersReadDifferently(t *testing.T) {
	c, secret := credentials(t, "sns")
	v := mustNew(t, c)
	d := mustSample(t, "sns", secret)
	if err := v.Verify(d, testNow()); err != nil {
		t.Fatal(err)
	}
	changed := *d
	changed.Body = []byte(`{"Type":"Notification","Message":"\ud800","SignatureVersion":"2"}`)
	var refused *SignatureError
	if err := v.Verify(&changed, testNow()); !errors.As(err, &refused) || refused.Part != "body" {
		t.Fatalf("half a character: %v", err)
	}
}
