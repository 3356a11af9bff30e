package sender

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"hooklock/idem/naming"
)

// fuzzVerifiers returns a verifier of every scheme, with keys that the fuzzer cannot know.
func fuzzVerifiers(f *testing.F) []Verifier {
	var all []Verifier
	for _, p := range Presets() {
		if p.Scheme == "none" {
			continue
		}
		c, _ := credentials(f, p.Name)
		c.Tolerance = time.Minute
		if len(c.Secrets) > 0 && p.key == keySecret {
			c.Secrets = [][]byte{[]byte("nobody guesses 5f1c0d")}
		}
		if p.key == keyHex || p.key == keyWhsec || p.key == keyBase64 {
			c.Secrets = [][]byte{[]byte("5f1c0d5f1c0d5f1c0d5f1c0d5f1c0d5f1c0d5f1c")}
		}
		all = append(all, mustNew(f, c))
		if p.Scheme == "hubspot" {
			c.Algorithm = "v2"
			all = append(all, mustNew(f, c))
		}
	}
	c := Config{Scheme: "hmac", Secrets: [][]byte{[]byte("nobody guesses 5f1c0d")}, Header: "X-Hub-Signature-256",
		Content: "{method}{url}{body}", PublicURL: "https://a"}
	all = append(all, mustNew(f, c))
	c.Scheme = "token"
	return append(all, mustNew(f, c))
}

// FuzzVerify checks that no delivery makes a verifier panic and that no unsigned one is accepted.
// Handshakes and IDs of presets get the same input.
func FuzzVerify(f *testing.F) {
	verifiers, presets := fuzzVerifiers(f), Presets()
	names := []string{"X-Hub-Signature", "Content-Type", "svix-id", "svix-timestamp", "svix-signature", paypalAlgo,
		"HmacSignature", "X-Gitlab-Token", "Linear-Signature",
		hubspotLegacy, "ce-id", "ce-source", "aeg-event-type", "x-amz-sns-rawdelivery", "x-amz-sns-message-id",
		"x-amz-sns-subscription-arn"}
	for _, h := range signedHeaders(f) {
		names = append(names, h.name)
	}
	for _, v := range readVectors(f) {
		_, d, _ := v.testCase(f)
		var lines []byte
		for _, field := range d.Fields {
			lines = append(append(append(append(lines, field.Name...), ':'), field.Value...), '\n')
		}
		f.Add(string(d.Method), string(d.Target), lines, d.Body)
	}
	for _, p := range presets {
		if p.key == keyRSA { // the tests share that key, so that its samples are signed for them
			continue
		}
		_, secret := credentials(f, p.Name)
		d := mustSample(f, p.Name, secret)
		f.Add(string(d.Method), string(d.Target), []byte{}, d.Body)
	}
	f.Fuzz(func(t *testing.T, method, target string, lines, body []byte) {
		d := &Delivery{Method: []byte(method), Target: []byte(target), Body: body}
		for line := range bytes.SplitSeq(lines, []byte("\n")) {
			name, value, found := bytes.Cut(line, []byte(":"))
			if !found && len(line) > 0 { // a line without a name belongs to one of the known ones
				name, value = []byte(names[int(line[0])%len(names)]), line[1:]
			}
			d.Fields = append(d.Fields, naming.Field{Name: name, Value: value})
		}
		before := bytes.Clone(body)
		for i, v := range verifiers {
			if v.Verify(d, time.Unix(1767225600, 0)) == nil {
				t.Fatalf("verifier %d accepts what nobody signed", i)
			}
		}
		for i := range presets {
			presets[i].Handshake(d)
			if presets[i].ExtractID != nil {
				if id := presets[i].ExtractID(d); (id.Status == IDFound) != (len(id.Parts) > 0) {
					t.Fatalf("%s: %+v", presets[i].Name, id)
				}
			}
		}
		if !bytes.Equal(before, body) {
			t.Fatal("the body was changed")
		}
	})
}

// FuzzNew checks that no configuration makes New panic, that New rejects an empty secret, and that
// no empty signature is valid.
func FuzzNew(f *testing.F) {
	f.Add("stripe", []byte(""), []byte(""), "https://a.example.com", "{body}")
	f.Add("hmac", []byte("s"), []byte("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"),
		"http://[::1]:80/p/", "{header.X}{{")
	f.Add("svix", []byte("whsec_"), []byte("whpk_AAAA"), "https://%41", "{url")
	f.Fuzz(func(t *testing.T, scheme string, secret, key []byte, publicURL, content string) {
		c := Config{Scheme: scheme, Secrets: [][]byte{secret}, PublicKeys: [][]byte{key}, PublicURL: publicURL,
			Content: content, Header: "X", WebhookID: "w"}
		v, err := New(c)
		if err != nil || scheme == "none" {
			return
		}
		if len(bytes.TrimSpace(secret)) == 0 && len(bytes.TrimSpace(key)) == 0 {
			t.Fatalf("%s accepts an empty secret", scheme)
		}
		if v.Verify(&Delivery{Method: []byte("POST"), Target: []byte("/"), Body: []byte("{}")},
			time.Unix(0, 0)) == nil {
			t.Fatalf("%s accepts an unsigned delivery", scheme)
		}
	})
}

// FuzzTruncatedSignature checks that no truncated signature is accepted.
func FuzzTruncatedSignature(f *testing.F) {
	type signed struct {
		name     string
		verifier Verifier
		delivery *Delivery
	}
	var all []signed
	for _, h := range signedHeaders(f) {
		c, secret := credentials(f, h.preset)
		all = append(all, signed{h.name, mustNew(f, c), mustSample(f, h.preset, secret)})
	}
	f.Add(uint8(0), uint16(0), uint16(20))
	f.Fuzz(func(t *testing.T, which uint8, from, to uint16) {
		s := all[int(which)%len(all)]
		value, _ := s.delivery.findHeader(s.name)
		a, b := int(from)%(len(value)+1), int(to)%(len(value)+1)
		if a > b {
			a, b = b, a
		}
		if a == b || (a == 0 && b == len(value)) {
			return
		}
		cut := string(value[:a]) + string(value[b:])
		if s.verifier.Verify(with(s.delivery, s.name, cut), testNow()) == nil {
			t.Fatalf("%s: accepts %q", s.name, cut)
		}
	})
}

// FuzzRenew checks that Renew renews exactly the deliveries that verify, whatever their age, and
// never panics. It replaces a piece of a signed head and adds lines.
func FuzzRenew(f *testing.F) {
	type route struct {
		renewer  *Renewer
		verifier Verifier
		signed   *Delivery
	}
	var routes []route
	presets := slices.Sorted(maps.Keys(renewedFields()))
	for _, preset := range presets {
		c, secret := renewing(f, preset)
		c.Tolerance = 0
		routes = append(routes, route{mustRenewer(f, c), mustNew(f, c), mustSample(f, preset, secret)})
	}
	add := func(preset string, at uint8, value []byte, lines string, unix int64) {
		f.Add(uint8(slices.Index(presets, preset)), at, value, []byte(lines), unix)
	}
	valueOf := func(preset, header string) []byte {
		value, _ := routes[slices.Index(presets, preset)].signed.findHeader(header)
		return bytes.Clone(value)
	}
	stripe, standard := valueOf("stripe", stripeHeader), valueOf("standard-webhooks", "webhook-signature")
	add("stripe", 1, stripe, "stripe-signature:t=1", 0)
	add("stripe", 1, append([]byte("v1=,v1,t,"), stripe...), RenewedHeader+":x", 1<<40)
	add("stripe", 1, append(stripe, ",v0=00,v1=,v1"...), "", -1)
	add("standard-webhooks", 3, append([]byte("v1a,AAAA v1,AAAA "), standard...), "svix-signature:v1,", 1767225600)
	add("gitlab", 2, []byte("one"), "svix-id:a\nX-Gitlab-Token:b", 1)
	add("slack", 2, []byte("v0="), "X-Slack-Request-Timestamp:1", 1)
	add("hubspot", 0, []byte("text/plain"), "X-HubSpot-Signature:00", 1)
	add("zoom", 0, nil, ":", 1)
	add("paddle", 1, append([]byte(`ts="1",xts=1;h1=1 ;`), valueOf("paddle", "Paddle-Signature")...), "", 1)
	add("twitch", 1, []byte("one"), "Content-Type:a", 1)
	f.Fuzz(func(t *testing.T, which, at uint8, value, lines []byte, unix int64) {
		r := routes[int(which)%len(routes)]
		d := frozen(r.signed)
		d.Fields[int(at)%len(d.Fields)].Value = value
		for line := range bytes.SplitSeq(lines, []byte("\n")) {
			if name, value, found := bytes.Cut(line, []byte(":")); found {
				d.Fields = append(d.Fields, naming.Field{Name: name, Value: value})
			}
		}
		before, now := frozen(d), time.Unix(unix&(1<<36-1), 0)
		made, err := r.renewer.Renew(d, now)
		if !same(before, d) {
			t.Fatal("the delivery itself was changed")
		}
		if valid := r.verifier.Verify(d, now); (valid == nil) != (err == nil || errors.Is(err, ErrNotRenewable)) {
			t.Fatalf("verified: %v; renewed: %v", valid, err)
		}
		if err != nil {
			return
		}
		if err := r.verifier.Verify(renewed(d, made), now); err != nil {
			t.Fatalf("what is sent: %v", err)
		}
	})
}
