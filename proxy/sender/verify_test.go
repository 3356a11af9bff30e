package sender

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/idem/naming"
)

// with returns a copy of d with one field replaced or appended.
func with(d *Delivery, name, value string) *Delivery {
	c := *d
	c.Fields = nil
	done := false
	for _, f := range d.Fields {
		if equalName(f.Name, name) {
			f, done = field(name, value), true
		}
		c.Fields = append(c.Fields, f)
	}
	if !done {
		c.Fields = append(c.Fields, field(name, value))
	}
	return &c
}

// without returns a copy of d that lacks a field.
func without(d *Delivery, name string) *Delivery {
	c := *d
	c.Fields = nil
	for _, f := range d.Fields {
		if !equalName(f.Name, name) {
			c.Fields = append(c.Fields, f)
		}
	}
	return &c
}

// demanded returns the headers of d that v requires: signatures, and signed headers.
func demanded(v Verifier, d *Delivery) []string {
	var names []string
	for _, f := range d.Fields {
		var missing *SignatureError
		if equalName(f.Name, "Content-Type") { // says how a form is read, and is not signed
			continue
		}
		if errors.As(v.Verify(without(d, string(f.Name)), testNow()), &missing) && missing.Reason == Missing {
			names = append(names, string(f.Name))
		}
	}
	return names
}

// signedHeader is a header that the sample of a preset requires.
type signedHeader struct{ preset, name string }

func signedHeaders(t testing.TB) []signedHeader {
	t.Helper()
	var all []signedHeader
	for _, p := range Presets() {
		c, secret := credentials(t, p.Name)
		for _, name := range demanded(mustNew(t, c), mustSample(t, p.Name, secret)) {
			all = append(all, signedHeader{p.Name, name})
		}
	}
	return all
}

func TestNoTruncatedSignatureIsAccepted(t *testing.T) {
	for _, h := range signedHeaders(t) {
		preset, name := h.preset, h.name
		c, secret := credentials(t, preset)
		d, v := mustSample(t, preset, secret), mustNew(t, c)
		whole, _ := d.findHeader(name)
		for n := range bytes.TrimRight(whole, "=") { // a signature without its padding is whole
			if v.Verify(with(d, name, string(whole[:n])), testNow()) == nil {
				t.Fatalf("%s: accepts %d of %d characters", preset, n, len(whole))
			}
		}
		if v.Verify(with(d, name, string(whole)+"A"), testNow()) == nil {
			t.Errorf("%s: accepts a longer signature", preset)
		}
	}
}

func TestAMissingOrRepeatedSignatureIsNamed(t *testing.T) {
	for _, h := range signedHeaders(t) {
		preset, name := h.preset, h.name
		c, secret := credentials(t, preset)
		d, v := mustSample(t, preset, secret), mustNew(t, c)
		if got := reasonOf(t, v.Verify(without(d, name), testNow())); got != Missing {
			t.Errorf("%s: without %s the reason is %s", preset, name, got)
		}
		twice := *d
		value, _ := d.findHeader(name)
		twice.Fields = append(append([]naming.Field{}, d.Fields...),
			naming.Field{Name: []byte(strings.ToUpper(name)), Value: value})
		if got := reasonOf(t, v.Verify(&twice, testNow())); got != Malformed {
			t.Errorf("%s: with %s twice the reason is %s", preset, name, got)
		}
	}
}

func TestErrorsHoldNoSecretAndNoSignature(t *testing.T) {
	for _, h := range signedHeaders(t) {
		preset, name := h.preset, h.name
		c, secret := credentials(t, preset)
		d := mustSample(t, preset, secret)
		right, _ := d.findHeader(name)
		d.Body = append([]byte(nil), d.Body...)
		d.Body[len(d.Body)/2] ^= 1
		d.Target = []byte("/other")
		err := mustNew(t, c).Verify(d, testNow())
		if !Covers(c).Body { // a token
			err = mustNew(t, c).Verify(with(d, name, "wrong"), testNow())
		}
		if err == nil {
			t.Errorf("%s: a changed delivery verifies", preset)
			continue
		}
		if text := err.Error(); strings.Contains(text, string(secret)) || strings.Contains(text, string(right)) {
			t.Errorf("%s: leaks: %s", preset, text)
		}
	}
}

func TestSignedTimesAreComparedWithTheGivenClock(t *testing.T) {
	for _, p := range Presets() {
		if p.Facts.SignedTime == TimeUnsigned || p.Name == "sns" { // the time of SNS is that of the message
			continue
		}
		preset := p.Name
		c, secret := credentials(t, preset)
		c.Tolerance = time.Minute
		if preset == "gitlab" {
			secret = []byte("whsec_AAECAwQF")
			c.Secrets = [][]byte{secret}
		}
		d := mustSample(t, preset, secret)
		v := mustNew(t, c)
		for _, step := range []struct {
			later time.Duration
			want  Reason
		}{{time.Minute, ""}, {time.Minute + time.Second, TooOld}, {-time.Minute, ""}, {-time.Minute - time.Second,
			TooNew}} {
			if preset == "stripe" && step.want == TooNew {
				step.want = "" // as Stripe's library
			}
			err := v.Verify(d, testNow().Add(step.later))
			switch {
			case err != nil && reasonOf(t, err) != step.want:
				t.Errorf("%s, %v later: %v", preset, step.later, err)
			case err == nil && step.want != "":
				t.Errorf("%s, %v later: should be %s", preset, step.later, step.want)
			}
		}
		c.Tolerance = 0
		if err := mustNew(t, c).Verify(d, testNow().Add(10*365*24*time.Hour)); err != nil {
			t.Errorf("%s: tolerance 0 still checks the age: %v", preset, err)
		}
		if !Covers(c).Time {
			t.Errorf("%s: should say that it signs a time", preset)
		}
	}
}

func TestAWrongSignatureIsNeverCalledTooOld(t *testing.T) {
	c, secret := credentials(t, "slack")
	d := mustSample(t, "slack", secret)
	d.Body = append(d.Body, ' ')
	if got := reasonOf(t, mustNew(t, c).Verify(d, testNow().Add(time.Hour))); got != Mismatch {
		t.Fatalf("reason is %s", got)
	}
}

func TestNewSaysWhatToGive(t *testing.T) {
	secret := [][]byte{[]byte("s")}
	cases := []struct {
		c    Config
		want string
	}{
		{Config{Scheme: "stripe"}, "give secret_file or scheme: none"},
		{Config{Scheme: "stripe", Secrets: [][]byte{[]byte("s"), []byte("")}}, "secret 2 is empty"},
		{Config{Scheme: "slack", Secrets: [][]byte{[]byte(" \n")}}, "empty"},
		{Config{Scheme: "standard-webhooks"}, "give secret_file or scheme: none"},
		{Config{Scheme: "svix", Secrets: [][]byte{[]byte("whsec_")}}, "empty"},
		{Config{Scheme: "svix", Secrets: [][]byte{[]byte("whsec_%%%")}}, "base64"},
		{Config{Scheme: "gitlab"}, "give secret_file or scheme: none"},
		{Config{Scheme: "gitlab", Secrets: [][]byte{[]byte("whsec_")}}, "empty"},
		{Config{Scheme: "adyen", Secrets: secret}, "hex"},
		{Config{Scheme: "adyen"}, "give secret_file or scheme: none"},
		{Config{Scheme: "sns"}, "give public_key_file or scheme: none"},
		{Config{Scheme: "sns", PublicKeys: [][]byte{[]byte("https://sns.us-east-1.amazonaws.com/x.pem")}}, "PEM"},
		{Config{Scheme: "discord", PublicKeys: [][]byte{[]byte("abcd")}}, "64 hex digits"},
		{Config{Scheme: "discord", PublicKeys: [][]byte{nil}}, "give public_key_file"},
		{Config{Scheme: "sendgrid", PublicKeys: [][]byte{[]byte("-----BEGIN NOTHING")}},
			"1 of 1 PEM blocks could not be read"},
		{Config{Scheme: "paypal", PublicKeys: [][]byte{[]byte("x")}}, "webhook_id"},
		{Config{Scheme: "twilio", Secrets: secret}, "give public_url"},
		{Config{Scheme: "square", Secrets: secret, PublicURL: "hooks.example.com"}, "origin"},
		{Config{Scheme: "hubspot", Secrets: secret, PublicURL: "https://a/?b=c"}, "query"},
		{Config{Scheme: "hubspot", Secrets: secret, PublicURL: "https://user@a"}, "origin alone"},
		{Config{Scheme: "hubspot", Secrets: secret, PublicURL: "https://a", Algorithm: "v4"}, "v3"},
		{Config{Scheme: "github", Secrets: secret, Algorithm: "md5"}, "sha256"},
		{Config{Scheme: "hmac", Secrets: secret}, "give header"},
		{Config{Scheme: "hmac", Secrets: secret, Header: "X", Content: "{url}"}, "give public_url"},
		{Config{Scheme: "hmac", Secrets: secret, Header: "X", Content: "{bdy}"}, "unknown"},
		{Config{Scheme: "hmac", Secrets: secret, Header: "X", Content: "constant"}, "has no source"},
		{Config{Scheme: "hmac", Secrets: secret, Header: "X", Encoding: "base32"}, "hex or base64"},
		{Config{Scheme: "hmac", Secrets: secret, Header: "X", Algorithm: "md5"}, "sha512"},
		{Config{Scheme: "token", Header: "X"}, "give secret_file or scheme: none"},
		{Config{Scheme: "strip"}, "unknown"},
		{Config{Scheme: "stripe", Secrets: secret, Tolerance: -1}, "negative"},
	}
	for _, c := range cases {
		if _, err := New(c.c); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v should say %q", c.c, err, c.want)
		}
	}
}

func TestEverySchemeRefusesAnEmptySecret(t *testing.T) {
	for _, name := range Schemes() {
		if name == "none" {
			continue
		}
		for _, secrets := range [][][]byte{nil, {}, {nil}, {{}}, {[]byte("\n")}} {
			c := Config{Scheme: name, Secrets: secrets, PublicKeys: secrets, PublicURL: "https://a", WebhookID: "w",
				Header: "X"}
			if _, err := New(c); err == nil {
				t.Errorf("%s accepts %q", name, secrets)
			}
		}
	}
}

func TestGitHubReadsTheLegacyHeaderOnlyWhenAsked(t *testing.T) {
	for _, v := range readVectors(t) {
		if v.ID != "syn-github-json" {
			continue
		}
		c, d, now := v.testCase(t)
		legacy := without(d, "X-Hub-Signature-256")
		if got := reasonOf(t, mustNew(t, c).Verify(legacy, now)); got != Missing {
			t.Errorf("not asked: %s", got)
		}
		c.Algorithm = "sha1"
		if err := mustNew(t, c).Verify(legacy, now); err != nil {
			t.Errorf("asked: %v", err)
		}
	}
}

func TestGitLabJudgesASignedDeliveryByItsSignature(t *testing.T) {
	signing, plain := []byte("whsec_AAECAwQF"), []byte("plain-token")
	signed, token := mustSample(t, "gitlab", signing), mustSample(t, "gitlab", plain)
	both := mustNew(t, Config{Scheme: "gitlab", Secrets: [][]byte{signing, plain}})
	onlySigning := mustNew(t, Config{Scheme: "gitlab", Secrets: [][]byte{signing}})
	for name, d := range map[string]*Delivery{"signed": signed, "with a token": token} {
		if err := both.Verify(d, testNow()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if onlySigning.Verify(token, testNow()) == nil {
		t.Error("a plain token passes where only a signing token is configured")
	}
	wrong := with(with(signed, "webhook-signature", "v1,AAAA"), "X-Gitlab-Token", string(plain))
	if both.Verify(wrong, testNow()) == nil {
		t.Error("a token excuses a wrong signature")
	}
	renamed := *signed
	renamed.Fields = slices.Clone(signed.Fields)
	for i, f := range renamed.Fields {
		renamed.Fields[i].Name = bytes.Replace(f.Name, []byte("webhook-"), []byte("svix-"), 1)
	}
	if onlySigning.Verify(with(&renamed, "Idempotency-Key", "fresh"), testNow()) == nil {
		t.Error("a signed delivery under Svix's names passes: the ID would be the Idempotency-Key, which is not signed")
	}
}

func TestStandardWebhooksHeadersAreNotMixed(t *testing.T) {
	c, secret := credentials(t, "standard-webhooks")
	d := mustSample(t, "standard-webhooks", secret)
	svix := *d
	svix.Fields = nil
	for _, f := range d.Fields {
		name := strings.Replace(string(f.Name), "webhook-", "svix-", 1)
		svix.Fields = append(svix.Fields, naming.Field{Name: []byte(name), Value: f.Value})
	}
	v := mustNew(t, c)
	if err := v.Verify(&svix, testNow()); err != nil {
		t.Errorf("svix headers: %v", err)
	}
	if v.Verify(with(&svix, "webhook-id", "fresh"), testNow()) == nil {
		t.Error("an unsigned webhook-id beside a signed svix-id passes: it would be taken for the ID")
	}
	branded, unbranded := standardID(&svix), standardID(d)
	if branded.Status != IDFound || branded.Source != unbranded.Source || branded.Parts[0] != unbranded.Parts[0] {
		t.Errorf("under the other names a captured delivery has another ID: %v, %v", unbranded, branded)
	}
	signature, _ := d.findHeader("webhook-signature")
	if err := v.Verify(with(d, "webhook-signature", "v1,AAAA v2,x "+string(signature)), testNow()); err != nil {
		t.Errorf("one of several signatures: %v", err)
	}
}

func TestStandardWebhooksV1aVerifies(t *testing.T) {
	seed := bytes.Repeat([]byte{7}, 32)
	private := []byte("whsk_" + base64Of(seed))
	key, err := privateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	public := "whpk_" + base64Of(publicBytes(key))
	d := mustSample(t, "standard-webhooks", private)
	v := mustNew(t, Config{Scheme: "standard-webhooks", PublicKeys: [][]byte{[]byte(public)}})
	if err := v.Verify(d, testNow()); err != nil {
		t.Fatal(err)
	}
	signature, _ := d.findHeader("webhook-signature")
	if got := reasonOf(t, v.Verify(with(d, "webhook-signature", strings.Repeat("v1a,AAAA ", 9)+string(signature)),
		testNow())); got != Malformed {
		t.Errorf("nine slow signatures: %s", got)
	}
	if got := reasonOf(t, v.Verify(with(d, "webhook-signature", "v1,AAAA"), testNow())); got != Missing {
		t.Errorf("no v1a signature: %s", got)
	}
	d.Body[0] ^= 1
	if got := reasonOf(t, v.Verify(d, testNow())); got != Mismatch {
		t.Errorf("changed body: %s", got)
	}
}

func TestTwilioAcceptsTheURLWithAndWithoutItsPort(t *testing.T) {
	secret := []byte("12345")
	for _, signed := range []string{"https://h.example.com", "https://h.example.com:443",
		"https://h.example.com:8443"} {
		d := mustSample(t, "twilio", secret, WithURL(signed+"/in?x=1"))
		for _, configured := range []string{"https://h.example.com", "https://h.example.com:443",
			"https://h.example.com:8443"} {
			c := Config{Scheme: "twilio", Secrets: [][]byte{secret}, PublicURL: configured}
			// A foreign port in the signature is only right where it is configured.
			want := signed == configured || strings.TrimSuffix(signed, ":443") == "https://h.example.com" &&
				!strings.HasSuffix(configured, ":8443") || signed == "https://h.example.com"
			if got := mustNew(t, c).Verify(d, testNow()) == nil; got != want {
				t.Errorf("signed %s, configured %s: %v", signed, configured, got)
			}
		}
	}
}

func TestTwilioRefusesABodyThatNothingSigns(t *testing.T) {
	v := mustNew(t, Config{Scheme: "twilio", Secrets: [][]byte{[]byte("12345")}, PublicURL: "https://mycompany.com"})
	for _, vec := range readVectors(t) {
		if vec.ID != "twilio-json-bodySHA256" {
			continue
		}
		_, d, now := vec.testCase(t)
		if err := v.Verify(with(d, "Content-Type", "application/json"), now); err != nil {
			t.Fatal(err)
		}
		empty := with(d, "Content-Type", "application/x-www-form-urlencoded")
		empty.Body = nil
		if got := reasonOf(t, v.Verify(empty, now)); got != Mismatch {
			t.Errorf("the signed URL with an empty form: %s", got)
		}
	}
	get := &Delivery{Method: []byte("GET"), Target: []byte("/a?b=c")}
	m := newMAC(sha1New, []byte("12345"))
	get = with(get, twilioHeader, string(m.signParts(inBase64, []byte("https://mycompany.com/a?b=c"))))
	if err := v.Verify(get, testNow()); err != nil {
		t.Errorf("a GET: %v", err)
	}
	get.Body = []byte("smuggled")
	if got := reasonOf(t, v.Verify(get, testNow())); got != Missing {
		t.Errorf("a body under the signature of a GET: %s", got)
	}
}

func TestHubSpotOldVersionsAreReadOnlyWhenAsked(t *testing.T) {
	secret, body := "client-secret", `[{"eventId":1}]`
	sum := sha256.Sum256([]byte(secret + body))
	d := &Delivery{Method: []byte("POST"), Target: []byte("/x"), Body: []byte(body), Fields: []naming.Field{
		field(hubspotLegacy, hex.EncodeToString(sum[:])), field("X-HubSpot-Signature-Version", "v1")}}
	c := Config{Scheme: "hubspot", Secrets: [][]byte{[]byte(secret)}, PublicURL: "https://a.example.com"}
	if err := mustNew(t, c).Verify(d, testNow()); reasonOf(t, err) != Missing ||
		!strings.Contains(err.Error(), "algorithm") {
		t.Errorf("not asked: %v", err)
	}
	c.Algorithm = "v1"
	if err := mustNew(t, c).Verify(d, testNow()); err != nil {
		t.Errorf("asked: %v", err)
	}
	c.Algorithm = "v2"
	if got := reasonOf(t, mustNew(t, c).Verify(d, testNow())); got != Malformed {
		t.Errorf("another version: %s", got)
	}
}

func TestBodiesWithTwoMeaningsAreRefused(t *testing.T) {
	for preset, twist := range map[string]func([]byte) []byte{
		"sns":     replaceOnce(`"Message":"sample"`, `"Message":"sample","meſſage":"evil"`),
		"mailgun": replaceOnce(`{"signature":{`, `{"Signature":{},"signature":{`),
		"adyen":   replaceOnce(`"success":"true"`, `"success":"true","Success":"false"`),
	} {
		c, secret := credentials(t, preset)
		d := mustSample(t, preset, secret)
		d.Body = twist(d.Body)
		if got := reasonOf(t, mustNew(t, c).Verify(d, testNow())); got != Malformed {
			t.Errorf("%s: %s", preset, got)
		}
	}
}

func replaceOnce(from, to string) func([]byte) []byte {
	return func(b []byte) []byte {
		if !bytes.Contains(b, []byte(from)) {
			panic(fmt.Sprintf("%s is not in %s", from, b))
		}
		return bytes.Replace(b, []byte(from), []byte(to), 1)
	}
}

func TestAdyenChecksEveryItemAndEveryField(t *testing.T) {
	c, secret := credentials(t, "adyen")
	v := mustNew(t, c)
	for _, change := range [][2]string{{"SampleCOM", "OtherCOM"}, {"order-1", "order-2"}, {"1000", "9000"},
		{"EUR", "USD"}, {"AUTHORISATION", "REFUND"}, {`"success":"true"`, `"success":"false"`},
		{"sample-", "simple-"}} {
		d := mustSample(t, "adyen", secret)
		d.Body = replaceOnce(change[0], change[1])(d.Body)
		if got := reasonOf(t, v.Verify(d, testNow())); got != Mismatch {
			t.Errorf("%v: %s", change, got)
		}
	}
	d := mustSample(t, "adyen", secret)
	d.Body = replaceOnce(`"notificationItems":[`,
		`"notificationItems":[{"NotificationRequestItem":{"additionalData":{},"pspReference":"forged"}},`)(d.Body)
	if got := reasonOf(t, v.Verify(d, testNow())); got != Missing {
		t.Errorf("an unsigned item beside a signed one: %s", got)
	}
}

func TestSNSRefusesRawDeliveryAndOldSignaturesWhenAsked(t *testing.T) {
	c, secret := credentials(t, "sns")
	d := mustSample(t, "sns", secret)
	if got := reasonOf(t, mustNew(t, c).Verify(with(d, "x-amz-sns-rawdelivery", "true"), testNow())); got != Missing {
		t.Errorf("a signed envelope that calls itself raw: %s", got)
	}
	for _, vec := range readVectors(t) {
		if vec.ID == "syn-sns-notification-v1" {
			c, d, now := vec.testCase(t)
			c.Algorithm = "sha256"
			if got := reasonOf(t, mustNew(t, c).Verify(d, now)); got != Malformed {
				t.Errorf("SHA-1 although sha256 is asked for: %s", got)
			}
		}
	}
}

func TestGenericHMACSignsWhatItsContentSays(t *testing.T) {
	sign := func(content string) string {
		h := hmac.New(sha256.New, []byte("s3cret"))
		h.Write([]byte(content))
		return hex.EncodeToString(h.Sum(nil))
	}
	c := Config{Scheme: "hmac", Secrets: [][]byte{[]byte("s3cret")}, Header: "X-Sig", Prefix: "sha256=",
		Content: "{method}:{header.X-Time}:{url}:{body}", PublicURL: "https://a.example.com"}
	d := &Delivery{Method: []byte("PUT"), Target: []byte("/x?y"), Body: []byte("hello"),
		Fields: []naming.Field{field("X-Time", "12"),
			field("x-sig", "sha256="+sign("PUT:12:https://a.example.com/x?y:hello"))}}
	v := mustNew(t, c)
	if err := v.Verify(d, testNow()); err != nil {
		t.Fatal(err)
	}
	signature, _ := d.findHeader("X-Sig")
	if err := v.Verify(with(d, "X-Sig", "sha256="+strings.ToUpper(string(signature[7:]))), testNow()); err != nil {
		t.Errorf("upper case: %v", err)
	}
	if got := reasonOf(t, v.Verify(with(d, "X-Sig", string(signature[7:])), testNow())); got != Malformed {
		t.Errorf("without its prefix: %s", got)
	}
	if got := reasonOf(t, v.Verify(without(d, "X-Time"), testNow())); got != Missing {
		t.Errorf("without a signed header: %s", got)
	}
	if got := reasonOf(t, v.Verify(with(d, "X-Time", "13"), testNow())); got != Mismatch {
		t.Errorf("another signed header: %s", got)
	}
	cov := Covers(c)
	if !cov.Body || !cov.URL || !cov.Method || len(cov.Headers) != 1 || cov.Headers[0] != "X-Time" {
		t.Errorf("covers %+v", cov)
	}
}

func TestATokenIsComparedWhole(t *testing.T) {
	v := mustNew(t, Config{Scheme: "token", Secrets: [][]byte{[]byte("abc"), []byte("def")}, Header: "Authorization",
		Prefix: "Bearer "})
	for value, want := range map[string]Reason{"Bearer abc": "", "Bearer def": "", "Bearer ab": Mismatch,
		"Bearer abcd": Mismatch, "abc": Malformed, "Bearer ": Mismatch} {
		err := v.Verify(with(&Delivery{}, "authorization", value), testNow())
		if err == nil && want != "" || err != nil && reasonOf(t, err) != want {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestSchemeNoneAcceptsEverything(t *testing.T) {
	if err := mustNew(t, Config{Scheme: "none"}).Verify(&Delivery{}, testNow()); err != nil {
		t.Fatal(err)
	}
}

func TestASignatureErrorIsFoundThroughWrapping(t *testing.T) {
	var se *SignatureError
	if !errors.As(fmt.Errorf("verify: %w", &SignatureError{Scheme: "x", Reason: TooOld}), &se) || se.Reason != TooOld {
		t.Fatal("not found")
	}
}

func TestASigningSecretWithoutItsPaddingIsTheSameSecret(t *testing.T) {
	for _, secret := range []string{"whsec_AAECAw==", "whsec_AAECAw", "AAECAw=", "whsec_-_8="} {
		if _, err := New(Config{Scheme: "standard-webhooks", Secrets: [][]byte{[]byte(secret)}}); err != nil {
			t.Errorf("%s: %v", secret, err)
		}
	}
	d := mustSample(t, "standard-webhooks", []byte("whsec_AAECAw=="))
	if err := mustNew(t, Config{Scheme: "standard-webhooks", Secrets: [][]byte{[]byte("whsec_AAECAw")}}).Verify(d,
		testNow()); err != nil {
		t.Error(err)
	}
}
