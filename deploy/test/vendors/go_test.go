package vendors

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-github/v75/github"
	"github.com/mailgun/mailgun-go/v4"
	"github.com/sendgrid/sendgrid-go/helpers/eventwebhook"
	"github.com/slack-go/slack"
	"github.com/stripe/stripe-go/v82/webhook"
	svix "github.com/svix/svix-webhooks/go"
	"github.com/twilio/twilio-go/client"

	"hooklock/proxy/sender"
)

const secret = "a-test-secret"

// credentials are what a sample is signed with, and what its receiver is told.
type credentials struct {
	signer, receiver string
}

// delivery is a sample as a receiver gets it.
type delivery struct {
	url    string
	header http.Header
	body   []byte
}

func sampleOf(t *testing.T, preset, signer string) *delivery {
	t.Helper()
	const public = "https://hooks.example.com/hooks?a=1"
	r, err := sender.Sample(preset, []byte(signer), time.Now(), sender.WithURL(public), sender.WithEvent("one"))
	if err != nil {
		t.Fatal(err)
	}
	d := &delivery{public, http.Header{}, r.Body}
	for _, f := range r.Fields {
		d.header.Add(string(f.Name), string(f.Value))
	}
	return d
}

func (d *delivery) request(t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, d.url, bytes.NewReader(d.body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = d.header
	return r
}

// receivers are the vendors' libraries in Go: each says what it makes of a delivery.
func receivers(t *testing.T) map[string]func(d *delivery, secret string) error {
	return map[string]func(d *delivery, secret string) error{
		"stripe": func(d *delivery, secret string) error {
			_, err := webhook.ConstructEventWithOptions(d.body, d.header.Get("Stripe-Signature"), secret,
				webhook.ConstructEventOptions{IgnoreAPIVersionMismatch: true})
			return err
		},
		"github": func(d *delivery, secret string) error {
			_, err := github.ValidatePayload(d.request(t), []byte(secret))
			return err
		},
		"slack": func(d *delivery, secret string) error {
			v, err := slack.NewSecretsVerifier(d.header, secret)
			if err != nil {
				return err
			}
			_, _ = v.Write(d.body)
			return v.Ensure()
		},
		"twilio": func(d *delivery, secret string) error {
			form, err := url.ParseQuery(string(d.body))
			if err != nil {
				return err
			}
			params := map[string]string{}
			for name := range form {
				params[name] = form.Get(name)
			}
			validator := client.NewRequestValidator(secret)
			return accepted(validator.Validate(d.url, params, d.header.Get("X-Twilio-Signature")))
		},
		"mailgun": func(d *delivery, secret string) error {
			var p struct {
				Signature mailgun.Signature `json:"signature"`
			}
			if err := json.Unmarshal(d.body, &p); err != nil {
				return err
			}
			mg := mailgun.NewMailgun("example.com", "key")
			mg.SetWebhookSigningKey(secret)
			ok, err := mg.VerifyWebhookSignature(p.Signature)
			return errors.Join(err, accepted(ok))
		},
		"sendgrid": func(d *delivery, key string) error {
			public, err := eventwebhook.ConvertPublicKeyBase64ToECDSA(key)
			if err != nil {
				return err
			}
			ok, err := eventwebhook.VerifySignature(public, d.body,
				d.header.Get("X-Twilio-Email-Event-Webhook-Signature"),
				d.header.Get("X-Twilio-Email-Event-Webhook-Timestamp"))
			return errors.Join(err, accepted(ok))
		},
		"standard-webhooks": func(d *delivery, secret string) error {
			wh, err := svix.NewWebhook(secret)
			if err != nil {
				return err
			}
			return wh.Verify(d.body, d.header)
		},
	}
}

func accepted(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("not accepted")
}

// secretsOf makes what a preset's samples are signed with, and what their receiver needs.
func secretsOf(t *testing.T, preset string) credentials {
	t.Helper()
	switch preset {
	case "standard-webhooks":
		const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		return credentials{key, key}
	case "adyen":
		const key = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
		return credentials{key, key}
	case "sendgrid":
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return credentials{privatePEM(t, key), base64.StdEncoding.EncodeToString(spki(t, key))}
	case "discord":
		public, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return credentials{privatePEM(t, key), hex.EncodeToString(public)}
	case "sns":
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		return credentials{privatePEM(t, key), certificate(t, key)}
	}
	return credentials{secret, secret}
}

func privatePEM(t *testing.T, key crypto.Signer) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func spki(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func certificate(t *testing.T, key crypto.Signer) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sns.amazonaws.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// tampered is d with one byte changed of what is signed.
func (d *delivery) tampered(preset string) *delivery {
	c := *d
	c.body = bytes.Clone(d.body)
	switch preset {
	case "mailgun": // its time and token alone are signed
		c.body = bytes.Replace(c.body, []byte(`"token":"a`), []byte(`"token":"b`), 1)
	case "sns":
		c.body = bytes.Replace(c.body, []byte(`"Message":"sample"`), []byte(`"Message":"sampl3"`), 1)
	case "adyen":
		c.body = bytes.Replace(c.body, []byte("order-1"), []byte("order-2"), 1)
	default:
		at := bytes.Index(c.body, []byte("one"))
		c.body[max(at, bytes.IndexByte(c.body, '1'))] ^= 2
	}
	return &c
}

func TestVendorsTakeTheSamplesOfTheirDeliveries(t *testing.T) {
	for preset, receive := range receivers(t) {
		t.Run(preset, func(t *testing.T) {
			keys := secretsOf(t, preset)
			d := sampleOf(t, preset, keys.signer)
			if err := receive(d, keys.receiver); err != nil {
				t.Errorf("%v\n%s", err, d.body)
			}
			other := d.tampered(preset)
			if bytes.Equal(other.body, d.body) {
				t.Fatalf("nothing was changed in %s", d.body)
			}
			if receive(other, keys.receiver) == nil {
				t.Errorf("takes a delivery that was changed: %s", other.body)
			}
		})
	}
}

// An unpadded secret is the same one to Svix's library and to us.
func TestVendorsTakeUnpaddedSecrets(t *testing.T) {
	d := sampleOf(t, "standard-webhooks", "whsec_AAECAw==")
	for _, key := range []string{"whsec_AAECAw==", "whsec_AAECAw"} {
		wh, err := svix.NewWebhook(key)
		if err != nil {
			t.Logf("svix does not take %s: %v", strings.TrimPrefix(key, "whsec_"), err)
			continue
		}
		if err := wh.Verify(d.body, d.header); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestTheCloudEventsSDKReadsTheSample(t *testing.T) {
	d := sampleOf(t, "cloudevents", "")
	event, err := cloudevents.NewEventFromHTTPRequest(d.request(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := event.Validate(); err != nil || event.ID() != "one" {
		t.Errorf("%v: %v", event, err)
	}
}
