package renewal

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slack-go/slack"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stripe/stripe-go/v84/webhook"
	svix "github.com/svix/svix-webhooks/go"

	"hooklock/proxy/sender"
	"hooklock/test/testkit"
)

const (
	older   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newer   = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
	foreign = "whsec_Zm9yZWlnbmZvcmVpZ25mb3JlaWduZm9y"
)

// verify is what a service asks its sender's library of a delivery that came: nil where it accepts
// it.
type verify func(secret string, r *http.Request, body []byte) error

// library is one of them, for a preset.
type library struct {
	name, preset string
	verify       verify
	prefix       string // what the names of the headers begin with instead of webhook-
	ageless      bool   // it looks at no time, whatever the sender's pages ask for
	several      bool   // the sender signs with both secrets while one is rolled
}

func goLibraries() []library {
	return []library{
		{name: "stripe-go", preset: "stripe", verify: byStripe, several: true},
		{name: "slack-go", preset: "slack", verify: bySlack},
		{name: "standard-webhooks", preset: "standard-webhooks", verify: byStandardWebhooks, several: true},
		{name: "standard-webhooks with the headers of GitLab", preset: "gitlab", verify: byStandardWebhooks},
		{name: "svix", preset: "standard-webhooks", verify: bySvix, several: true},
		{name: "svix with its own headers", preset: "standard-webhooks", verify: bySvix, prefix: "svix-",
			several: true},
	}
}

func byStripe(secret string, r *http.Request, body []byte) error {
	return webhook.ValidatePayload(body, r.Header.Get("Stripe-Signature"), secret)
}

func bySlack(secret string, r *http.Request, body []byte) error {
	v, err := slack.NewSecretsVerifier(r.Header, secret)
	if err != nil {
		return err
	}
	if _, err := v.Write(body); err != nil {
		return err
	}
	return v.Ensure()
}

func byStandardWebhooks(secret string, r *http.Request, body []byte) error {
	v, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return err
	}
	return v.Verify(body, r.Header)
}

func bySvix(secret string, r *http.Request, body []byte) error {
	v, err := svix.NewWebhook(secret)
	if err != nil {
		return err
	}
	return v.Verify(body, r.Header)
}

// sample is a delivery that the sender made at a time, with the signatures of all secrets.
func (l *library) sample(t *testing.T, at time.Time, secrets ...string) *sender.Delivery {
	t.Helper()
	var d *sender.Delivery
	for _, secret := range secrets {
		r, err := sender.Sample(l.preset, []byte(secret), at, sender.WithEvent("one"))
		if err != nil {
			t.Fatal(err)
		}
		if d == nil {
			d = &sender.Delivery{Method: []byte(r.Method), Target: []byte(r.Target), Fields: r.Fields, Body: r.Body}
			continue
		}
		for i, f := range r.Fields {
			switch string(f.Name) {
			case "Stripe-Signature":
				_, signature, _ := strings.Cut(string(f.Value), ",")
				d.Fields[i].Value = append(append(d.Fields[i].Value, ','), signature...)
			case "webhook-signature":
				d.Fields[i].Value = append(append(d.Fields[i].Value, ' '), f.Value...)
			}
		}
	}
	for i, f := range d.Fields {
		if rest, ok := strings.CutPrefix(string(f.Name), "webhook-"); ok && l.prefix != "" {
			d.Fields[i].Name = []byte(l.prefix + rest)
		}
	}
	return d
}

// renew is d as a route with these secrets sends it on now.
func (l *library) renew(t *testing.T, d *sender.Delivery, secrets ...string) *sender.Delivery {
	t.Helper()
	c := sender.Config{Scheme: l.preset, PublicURL: "https://hooks.example.com"}
	for _, secret := range secrets {
		c.Secrets = append(c.Secrets, []byte(secret))
	}
	renewer, err := sender.NewRenewer(c)
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := renewer.Renew(d, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	sent := *d
	sent.Fields = slices.Clone(d.Fields)
	for _, change := range renewed.Changes {
		sent.Fields[change.At].Value = change.Value
	}
	return &sent
}

// service verifies what comes to it, and answers 200 or 401 with the library's reason.
func service(t *testing.T, verify verify, secret string) (addr string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = verify(secret, r, body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func deliver(t *testing.T, addr string, d *sender.Delivery) *testkit.Answer {
	t.Helper()
	var lines []string
	for _, f := range d.Fields {
		lines = append(lines, fmt.Sprintf("%s: %s", f.Name, f.Value))
	}
	return testkit.Exchange(t, addr, testkit.RequestWith(string(d.Method), string(d.Target), string(d.Body), lines...))
}

func (l *library) check(t *testing.T) {
	const hour = time.Hour
	addr := service(t, l.verify, older)
	expect := func(what string, d *sender.Delivery, want int) {
		t.Helper()
		if a := deliver(t, addr, d); a.Status != want {
			t.Errorf("%s: %d %s", what, a.Status, a.Body)
		}
	}
	refused := 401
	if l.ageless {
		refused = 200
	}
	expect("fresh, as it came", l.sample(t, time.Now(), older), 200)
	came := l.sample(t, time.Now().Add(-hour), older)
	expect("an hour old, as it came", came, refused)
	expect("an hour old, renewed", l.renew(t, came, older), 200)
	expect("renewed by a route that has a newer secret, too", l.renew(t, came, newer, older), 200)
	strange := l.sample(t, time.Now().Add(-hour), foreign)
	expect("renewed with another secret than the service's", l.renew(t, strange, foreign), 401)
	if l.several {
		rolled := l.sample(t, time.Now().Add(-hour), newer, foreign, older)
		expect("signed with several, an hour old", rolled, refused)
		expect("signed with several, the route has both", l.renew(t, rolled, newer, older), 200)
		expect("signed with several, the route has the service's", l.renew(t, rolled, older), 200)
		expect("signed with several, the route has only another one", l.renew(t, rolled, newer), 401)
	}
}

func TestTheLibrariesOfSendersAcceptWhatIsRenewed(t *testing.T) {
	for _, l := range goLibraries() {
		t.Run(l.name, l.check)
	}
}
