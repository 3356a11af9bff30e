package sender

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hooklock/idem/naming"
)

// renewedFields lists the headers that a renewal may change, by preset. A preset that is missing
// here is never renewed. For presets that use asHMAC they are the headers that differ between two
// attempts of a sample.
func renewedFields() map[string][]string {
	fields := map[string][]string{
		"stripe": {stripeHeader}, "slack": {slackHeader, slackTime}, "zoom": {zoomHeader, zoomTime},
		"hubspot":           {hubspotV3, hubspotTime},
		"standard-webhooks": {"webhook-timestamp", "webhook-signature"},
		"gitlab":            {"webhook-timestamp", "webhook-signature"},
		"paddle":            {"Paddle-Signature"}, "calendly": {"Calendly-Webhook-Signature"},
		"workos": {"WorkOS-Signature"},
		"twitch": {twitchTime, twitchHeader},
		"box":    {"BOX-SIGNATURE-PRIMARY", "BOX-DELIVERY-TIMESTAMP"},
	}
	for _, p := range Presets() {
		if _, told := fields[p.Name]; told || p.Facts.SignedTime != TimeInHeader || p.key >= keyECDSA {
			continue
		}
		first, err := Sample(p.Name, []byte("whsec_AAAA"), testNow(), WithEvent("one"))
		if err != nil {
			panic(err)
		}
		second, err := Sample(p.Name, []byte("whsec_AAAA"), testNow().Add(time.Hour), WithEvent("one"))
		if err != nil {
			panic(err)
		}
		for i, f := range first.Fields {
			if !bytes.Equal(f.Value, second.Fields[i].Value) {
				fields[p.Name] = append(fields[p.Name], string(f.Name))
			}
		}
	}
	return fields
}

// renewing is the configuration of a route whose deliveries can be renewed.
func renewing(t testing.TB, preset string) (Config, []byte) {
	t.Helper()
	c, secret := credentials(t, preset)
	if preset == "gitlab" {
		secret = []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
		c.Secrets = [][]byte{secret}
	}
	return c, secret
}

func mustRenewer(t testing.TB, c Config) *Renewer {
	t.Helper()
	r, err := NewRenewer(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// renewed returns d with the changes of r.
func renewed(d *Delivery, r Renewed) *Delivery {
	c := *d
	c.Fields = slices.Clone(d.Fields)
	for _, change := range r.Changes {
		c.Fields[change.At].Value = change.Value
	}
	return &c
}

// frozen returns a deep copy of d.
func frozen(d *Delivery) *Delivery {
	c := &Delivery{Method: bytes.Clone(d.Method), Target: bytes.Clone(d.Target), Body: bytes.Clone(d.Body)}
	for _, f := range d.Fields {
		c.Fields = append(c.Fields, naming.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)})
	}
	return c
}

func same(a, b *Delivery) bool {
	return bytes.Equal(a.Method, b.Method) && bytes.Equal(a.Target, b.Target) && bytes.Equal(a.Body, b.Body) &&
		slices.EqualFunc(a.Fields, b.Fields, func(a, b naming.Field) bool {
			return bytes.Equal(a.Name, b.Name) && bytes.Equal(a.Value, b.Value)
		})
}

// TestARenewalVerifiesAndChangesNothingButTheNamedHeaders runs for every sender, with further
// headers and other spellings of their names.
func TestARenewalVerifiesAndChangesNothingButTheNamedHeaders(t *testing.T) {
	fields := renewedFields()
	for _, p := range Presets() {
		t.Run(p.Name, func(t *testing.T) {
			c, secret := renewing(t, p.Name)
			renewal, _ := RenewalOf(c)
			if _, changes := fields[p.Name]; changes != (renewal == RenewalPossible) {
				t.Fatalf("the renewal is %d", renewal)
			}
			if renewal == RenewalImpossible {
				if _, err := NewRenewer(c); !errors.Is(err, ErrNotRenewable) {
					t.Fatal(err)
				}
				return
			}
			c.Tolerance = time.Minute
			verifier, renewer, whole := mustNew(t, c), mustRenewer(t, c), mustSample(t, p.Name, secret)
			rapid.Check(t, func(rt *rapid.T) {
				d := frozen(whole)
				dressUp(rt, d)
				at := testNow().Add(time.Duration(rapid.Int64Range(int64(2*time.Minute), int64(1e5*time.Hour)).Draw(rt,
					"later")))
				checkRenewal(rt, fields[p.Name], verifier, renewer, d, at)
			})
		})
	}
}

// dressUp adds lines to the head of d and changes the case of names.
func dressUp(t *rapid.T, d *Delivery) {
	var fields []naming.Field
	for _, f := range d.Fields {
		for range rapid.IntRange(0, 2).Draw(t, "others") {
			name := rapid.SampledFrom([]string{"X-Other", "Stripe-Signatures", RenewedHeader, "webhook",
				"Cookie"}).Draw(t, "name")
			fields = append(fields, field(name, rapid.StringMatching(`[ -~]{0,20}`).Draw(t, "value")))
		}
		if rapid.Bool().Draw(t, "loud") {
			f.Name = bytes.ToUpper(f.Name)
		}
		fields = append(fields, f)
	}
	d.Fields = fields
}

func checkRenewal(t *rapid.T, may []string, verifier Verifier, renewer *Renewer, d *Delivery, at time.Time) {
	before := frozen(d)
	r, err := renewer.Renew(d, at)
	if err != nil {
		t.Fatal(err)
	}
	if !same(before, d) {
		t.Fatal("the delivery itself was changed")
	}
	if len(may) == 0 {
		if len(r.Changes) > 0 || r.Original != "" {
			t.Fatalf("changes %+v", r)
		}
		return
	}
	if r.Original != testNow().Format(time.RFC3339) {
		t.Fatalf("signed at %s", r.Original)
	}
	for _, c := range r.Changes {
		if !slices.ContainsFunc(may, func(name string) bool { return equalName(d.Fields[c.At].Name, name) }) {
			t.Fatalf("changes %s", d.Fields[c.At].Name)
		}
	}
	if len(r.Changes) != len(may) {
		t.Fatalf("%d changes", len(r.Changes))
	}
	var old *SignatureError
	if err := verifier.Verify(d, at); !errors.As(err, &old) || old.Reason != TooOld {
		t.Fatalf("what came: %v", err)
	}
	if err := verifier.Verify(renewed(d, r), at); err != nil {
		t.Fatalf("what is sent: %v", err)
	}
}

func TestEverySenderThatSignsATimeSaysWhatRenewsIt(t *testing.T) {
	for _, s := range schemes() {
		if s.aged && s.renewal == RenewalNeedless {
			t.Errorf("%s: signs a time, and says nothing of its renewal", s.name)
		}
	}
	var possible []string
	for _, p := range Presets() {
		if (p.Renewal == RenewalNeedless) != (p.Facts.SignedTime == TimeUnsigned) ||
			(p.Renewal == RenewalPossible && p.Facts.SignedTime != TimeInHeader) {
			t.Errorf("%s: the renewal %d does not fit its signed time, %d", p.Name, p.Renewal, p.Facts.SignedTime)
		}
		if p.Renewal == RenewalPossible {
			possible = append(possible, p.Name)
		}
	}
	if want := slices.Sorted(maps.Keys(renewedFields())); !slices.Equal(possible, want) {
		t.Errorf("renewable are %v, want %v", possible, want)
	}
}

func TestWhatRenewsFollowsTheConfiguration(t *testing.T) {
	whsec, public := [][]byte{[]byte("whsec_AAECAwQF")}, [][]byte{[]byte("whpk_x")}
	for _, c := range []struct {
		config    Config
		renewal   Renewal
		tolerance time.Duration
	}{
		{Config{Scheme: "stripe"}, RenewalPossible, 5 * time.Minute},
		{Config{Scheme: "svix", Secrets: whsec}, RenewalPossible, 5 * time.Minute},
		{Config{Scheme: "svix", PublicKeys: public}, RenewalImpossible, 5 * time.Minute},
		{Config{Scheme: "svix", Secrets: whsec, PublicKeys: public}, RenewalPossible, 5 * time.Minute},
		{Config{Scheme: "gitlab", Secrets: whsec}, RenewalPossible, 5 * time.Minute},
		{Config{Scheme: "gitlab", Secrets: [][]byte{[]byte("plain")}}, RenewalNeedless, 0},
		{Config{Scheme: "hubspot"}, RenewalPossible, 5 * time.Minute},
		{Config{Scheme: "hubspot", Algorithm: "v2"}, RenewalNeedless, 0},
		{Config{Scheme: "zoom"}, RenewalPossible, 0},
		{Config{Scheme: "linear"}, RenewalImpossible, time.Minute},
		{Config{Scheme: "sns"}, RenewalImpossible, 0},
		{Config{Scheme: "zoom", Tolerance: time.Minute}, RenewalPossible, time.Minute},
		{Config{Scheme: "mailgun", Tolerance: time.Minute}, RenewalImpossible, time.Minute},
		{Config{Scheme: "slack", Tolerance: time.Hour}, RenewalPossible, 5 * time.Minute},
		{Config{Scheme: "github"}, RenewalNeedless, 0},
		{Config{Scheme: "hmac"}, RenewalNeedless, 0},
		{Config{Scheme: "none"}, RenewalNeedless, 0},
	} {
		if renewal, tolerance := RenewalOf(c.config); renewal != c.renewal || tolerance != c.tolerance {
			t.Errorf("%s, algorithm %q, %d secrets: %d, %s", c.config.Scheme, c.config.Algorithm, len(c.config.Secrets),
				renewal, tolerance)
		}
	}
	if _, err := NewRenewer(Config{Scheme: "stripe"}); err == nil || !strings.Contains(err.Error(), "secret_file") {
		t.Errorf("without a secret: %v", err)
	}
	if r, err := (*Renewer)(nil).Renew(&Delivery{}, testNow()); err != nil || len(r.Changes) > 0 {
		t.Errorf("a route that keeps: %v, %v", r, err)
	}
}

func TestOnlyASecretThatMadeTheSignatureRenewsIt(t *testing.T) {
	for preset := range renewedFields() {
		c, secret := renewing(t, preset)
		d := mustSample(t, preset, secret)
		other := []byte("whsec_AAECAwQF")
		later := testNow().Add(time.Hour)

		c.Secrets = [][]byte{other, secret}
		r, err := mustRenewer(t, c).Renew(d, later)
		if err != nil {
			t.Fatalf("%s: %v", preset, err)
		}
		c.Secrets = [][]byte{other}
		if mustNew(t, c).Verify(renewed(d, r), later) == nil {
			t.Errorf("%s: the route's first secret signed, and it had not made the signature", preset)
		}
		if r, err := mustRenewer(t, c).Renew(d, later); err == nil || reasonOf(t, err) != Mismatch ||
			len(r.Changes) > 0 {
			t.Errorf("%s: under a secret that did not sign it: %+v, %v", preset, r, err)
		}
		c.Secrets = [][]byte{secret}
		changed := *d
		changed.Body = append(bytes.Clone(d.Body), ' ')
		if _, err := mustRenewer(t, c).Renew(&changed, later); err == nil || reasonOf(t, err) != Mismatch {
			t.Errorf("%s: with another body: %v", preset, err)
		}
		name := renewedFields()[preset][0]
		if _, err := mustRenewer(t, c).Renew(without(d, name), later); err == nil || reasonOf(t, err) != Missing {
			t.Errorf("%s: without %s: %v", preset, name, err)
		}
	}
}

// valueUnder returns the header of the sample "one" under a secret.
func valueUnder(t *testing.T, preset, header string, secret []byte) string {
	t.Helper()
	value, count := mustSample(t, preset, secret, WithEvent("one")).findHeader(header)
	if count != 1 {
		t.Fatalf("no %s", header)
	}
	return string(value)
}

// While a secret is rolled, the sender signs with both, and the service may still have the older
// one.
func TestEachSignatureOfTheRoutesSecretsIsMadeAgain(t *testing.T) {
	older, newer, foreign := []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), []byte("whsec_AAECAwQF"),
		[]byte("whsec_////")
	later := testNow().Add(time.Hour)
	for _, preset := range []string{"stripe", "standard-webhooks"} {
		header := renewedFields()[preset][len(renewedFields()[preset])-1]
		d := mustSample(t, preset, older, WithEvent("one"))
		var list []string
		between, first, version := ",", "", ",v1="
		if preset == "standard-webhooks" {
			between, version = " ", " v1,"
		}
		for i, secret := range [][]byte{older, foreign, newer, older} {
			value := valueUnder(t, preset, header, secret)
			if preset == "stripe" {
				stamp, signature, _ := strings.Cut(value, between)
				if i == 0 {
					first = stamp + between
				}
				value = signature
			}
			list = append(list, value)
		}
		odd := "v0=" + strings.Repeat("0", 64)
		if preset == "standard-webhooks" {
			odd = "v1a," + strings.Repeat("A", 86) + "=="
		}
		d = with(d, header, first+strings.Join(append(list, odd), between))

		c, _ := credentials(t, preset)
		for _, route := range [][][]byte{{newer, older}, {older, newer}, {newer}, {older}} {
			c.Secrets = route
			r, err := mustRenewer(t, c).Renew(d, later)
			if err != nil {
				t.Fatal(err)
			}
			sent := renewed(d, r)
			value, _ := sent.findHeader(header)
			if n := strings.Count(between+string(value), version); n != len(route) {
				t.Errorf("%s: %d signatures for %d secrets: %s", preset, n, len(route), value)
			}
			if strings.Contains(string(value), odd) {
				t.Errorf("%s: a signature of the old time was left: %s", preset, value)
			}
			for _, secret := range [][]byte{older, newer, foreign} {
				c.Secrets = [][]byte{secret}
				has := slices.ContainsFunc(route, func(s []byte) bool { return bytes.Equal(s, secret) })
				if err := mustNew(t, c).Verify(sent, later); (err == nil) != has {
					t.Errorf("%s: a service with %s: %v", preset, secret, err)
				}
			}
			if len(route) == 2 {
				c.Secrets = [][]byte{newer, older}
				again, _ := mustRenewer(t, c).Renew(d, later)
				if !bytes.Equal(again.Changes[len(again.Changes)-1].Value, r.Changes[len(r.Changes)-1].Value) {
					t.Errorf("%s: the order is not that of the sender's signatures", preset)
				}
			}
		}
	}
}

func TestSvixNamesStay(t *testing.T) {
	c, secret := renewing(t, "svix")
	d := mustSample(t, "svix", secret)
	for i, f := range d.Fields {
		d.Fields[i].Name = bytes.Replace(f.Name, []byte("webhook-"), []byte("Svix-"), 1)
	}
	later := testNow().Add(time.Hour)
	r, err := mustRenewer(t, c).Renew(d, later)
	if err != nil {
		t.Fatal(err)
	}
	if err := mustNew(t, c).Verify(renewed(d, r), later); err != nil || !renewed(d, r).hasHeader("svix-signature") {
		t.Fatal(err)
	}
}

func TestASignatureThatOnlyAPublicKeyFitsIsNotRenewed(t *testing.T) {
	secret, private := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsk_"+base64Of(bytes.Repeat([]byte{7}, 32))
	key, err := privateKey([]byte(private))
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Scheme: "standard-webhooks", Secrets: [][]byte{[]byte(secret)},
		PublicKeys: [][]byte{[]byte("whpk_" + base64Of(publicBytes(key)))}}
	later := testNow().Add(time.Hour)
	asymmetric := mustSample(t, c.Scheme, []byte(private))
	if _, err := mustRenewer(t, c).Renew(asymmetric, later); !errors.Is(err, ErrNotRenewable) {
		t.Error(err)
	}
	asymmetric.Body = append(asymmetric.Body, ' ')
	if _, err := mustRenewer(t, c).Renew(asymmetric, later); err == nil || reasonOf(t, err) != Mismatch {
		t.Error(err)
	}
}

func TestTheTimeKeepsItsUnit(t *testing.T) {
	at := testNow().Add(90*time.Minute + 123*time.Millisecond)
	for _, millis := range []bool{false, true} {
		c, secret := renewing(t, "zoom")
		s := &sample{secret: secret, now: testNow().Add(7 * time.Millisecond), request: Request{Body: []byte("{}")}}
		stamp, want, original := s.unixSeconds(), at.Truncate(time.Second), testNow()
		if millis {
			stamp, want, original = s.unixMillis(), at, s.now
		}
		s.addField(zoomTime, stamp)
		s.addField(zoomHeader, "v0="+s.hmac256(inHex, "v0:", stamp, ":{}"))
		d := s.request.asDelivery()
		r, err := mustRenewer(t, c).Renew(d, at)
		if err != nil {
			t.Fatal(err)
		}
		digits, _ := renewed(d, r).findHeader(zoomTime)
		if got, ok := unixTime(digits, unitOf(digits)); !ok || !got.Equal(want) || len(digits) != len(stamp) {
			t.Errorf("%s became %s", stamp, digits)
		}
		if r.Original != original.Format(time.RFC3339Nano) {
			t.Errorf("signed at %s", r.Original)
		}
	}
}

func TestGitLabWithBothSecretsIsRenewedByItsSignatureAlone(t *testing.T) {
	c, signing := renewing(t, "gitlab")
	plain := []byte("plain")
	c.Secrets = [][]byte{plain, signing}
	later := testNow().Add(time.Hour)
	for _, secret := range c.Secrets {
		r, err := mustRenewer(t, c).Renew(mustSample(t, "gitlab", secret), later)
		if err != nil || (len(r.Changes) > 0) != isSigningSecret(secret) {
			t.Errorf("%s: %+v, %v", secret, r, err)
		}
	}
}
