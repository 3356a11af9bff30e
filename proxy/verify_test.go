package proxy

import (
	"testing"
	"time"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy/sender"
)

func TestASignatureIsInspectedBeforeAHandshakePasses(t *testing.T) {
	verification := func(preset string, c sender.Config) *Verification {
		p, ok := sender.Lookup(preset)
		if !ok {
			t.Fatal(preset)
		}
		if c.Scheme == "" {
			return &Verification{Preset: p}
		}
		v, err := sender.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return &Verification{Scheme: c.Scheme, Verifier: v, Preset: p}
	}
	token := sender.Config{Scheme: "token", Header: "X-Token", Secrets: [][]byte{[]byte("right")}}
	field := func(name, value string) naming.Field { return naming.Field{Name: []byte(name), Value: []byte(value)} }
	validation, options := field("aeg-event-type", "SubscriptionValidation"), field("WebHook-Request-Origin", "a")
	const validate = `[{"eventType":"Microsoft.EventGrid.SubscriptionValidationEvent"}]`
	for _, c := range []struct {
		name         string
		verification *Verification
		method       string
		body         string
		fields       []naming.Field
		broken       bool
		handshake    string
		unsigned     bool
	}{
		{"nothing asked", &Verification{}, "POST", "", nil, false, "", false},
		{"an unsigned handshake where nothing is asked", verification("eventgrid", sender.Config{}), "POST", validate,
			[]naming.Field{validation}, false, "SubscriptionValidation", true},
		{"the same without the token that the route asks for", verification("eventgrid", token), "POST", validate,
			[]naming.Field{validation}, true, "SubscriptionValidation", false},
		{"the same with it", verification("eventgrid", token), "POST", validate,
			[]naming.Field{validation, field("x-token", "right")}, false, "SubscriptionValidation", false},
		{"the same as GET, where GET is a delivery", verification("eventgrid", token), "GET", validate,
			[]naming.Field{validation}, true, "SubscriptionValidation", false},
		{"OPTIONS cannot carry one", verification("cloudevents", token), "OPTIONS", "", []naming.Field{options}, false,
			"OPTIONS", true},
		{"a signed handshake without its signature",
			verification("slack", sender.Config{Scheme: "slack", Secrets: token.Secrets}), "POST",
			`{"type":"url_verification"}`, nil, true, "url_verification", false},
		{"an event without its signature",
			verification("slack", sender.Config{Scheme: "slack", Secrets: token.Secrets}), "POST",
			`{"type":"event_callback"}`, nil, true, "", false},
		{"a harmless method is no way around the signature of an event", verification("cloudevents", token), "OPTIONS",
			"", nil, true, "", false},
	} {
		got := c.verification.inspectDelivery(&sender.Delivery{Method: []byte(c.method), Target: []byte("/"),
			Body: []byte(c.body), Fields: c.fields}, time.Now())
		name := ""
		if got.handshake != nil {
			name = got.handshake.Name
		}
		if (got.broken != nil) != c.broken || name != c.handshake || got.unsigned != c.unsigned {
			t.Errorf("%s: broken %v, handshake %q, unsigned %v", c.name, got.broken, name, got.unsigned)
		}
	}
}

func TestRetryAfterIsInTheUnitThatTheSenderReads(t *testing.T) {
	for unit, want := range map[time.Duration]string{0: "7", time.Second: "7", time.Millisecond: "7000"} {
		if got := inUnit(7, unit); got != want {
			t.Errorf("%v: %s", unit, got)
		}
	}
}

func TestWhatPassesAVerifiedRouteByIsNoDeliveryOfIt(t *testing.T) {
	for _, c := range []struct {
		takes   []string
		method  string
		refused bool
	}{
		{[]string{"POST"}, "GET", false},
		{[]string{"POST"}, "HEAD", false},
		{[]string{"POST"}, "OPTIONS", false},
		{[]string{"POST"}, "DELETE", true},
		{[]string{"POST"}, "post", true},
		{[]string{"GET", "POST"}, "HEAD", true}, // the service would do what it does for GET
		{[]string{"GET", "POST"}, "OPTIONS", false},
	} {
		pattern, err := ParsePattern("/x")
		if err != nil {
			t.Fatal(err)
		}
		table := &Table{Routes: []*Route{{Pattern: pattern, Methods: c.takes, Policy: idem.Policy{Verified: true}}}}
		if _, _, bad := table.findRoute(&question{method: []byte(c.method), path: []byte("/x"),
			bare: true}); (bad != nil) != c.refused {
			t.Errorf("%s where %v are deliveries: %v", c.method, c.takes, bad)
		}
	}
}

func TestAnUnsignedHandshakeIsNotCalledSigned(t *testing.T) {
	c := sender.Config{Scheme: "hmac", Header: "X-Sig", Secrets: [][]byte{[]byte("s")}}
	verifier, err := sender.New(c)
	if err != nil {
		t.Fatal(err)
	}
	rule := sender.HandshakeRule{When: []string{"query.challenge"}, Method: "GET", Unsigned: true,
		TokenAt: "query.token", Token: []byte("t"), Answer: "{query.challenge}"}
	handshake, err := sender.NewHandshake(rule, c)
	if err != nil {
		t.Fatal(err)
	}
	pattern, err := ParsePattern("/x")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := naming.NewKeys(naming.KeySpec{Route: "a", Workflow: "w", EventID: "{header.X}",
		Missing: naming.MissingPayload})
	if err != nil {
		t.Fatal(err)
	}
	diagnosed := false
	route := &Route{Name: "a", Pattern: pattern, Methods: []string{"POST"}, Keys: keys,
		Policy: idem.Policy{Verified: true}, Verify: Verification{
			Scheme: "hmac", Verifier: verifier, Handshake: handshake,
			Diagnose: func(*sender.Delivery, time.Time) []string {
				diagnosed = true
				return nil
			},
		}}
	rules := &Rules{Table: Table{Routes: []*Route{route}}, Limits: Limits{RequestBody: 100}}
	for _, tt := range []struct {
		method, target, signature, handshake string
		refused                              bool
	}{
		{"GET", "/x?challenge=1&token=t", "", "query.challenge", false},
		{"GET", "/x?challenge=1&token=u", "mismatch: query.token: is not the configured token", "query.challenge",
			true},
		{"GET", "/x", "", "", false}, // passes by
		{"POST", "/x?challenge=1&token=t", "missing: X-Sig: the delivery has no such header", "", true},
	} {
		diagnosed = false
		x := rules.Explain(&Sample{Method: tt.method, Target: tt.target}, 4096, time.Now())
		if x.Signature != tt.signature || x.Handshake != tt.handshake || (x.Refusals != nil) != tt.refused ||
			diagnosed != (tt.method == "POST") {
			t.Errorf("%s %s: %+v, diagnosed %v", tt.method, tt.target, x, diagnosed)
		}
	}
}

// TestATokenIsNeededAlsoWhereTheServiceAnswersTheHandshake: one that the service answers has to
// bring it, too.
func TestATokenIsNeededAlsoWhereTheServiceAnswersTheHandshake(t *testing.T) {
	for _, answer := range []string{"", "{query.challenge}"} {
		c := sender.Config{Scheme: "none"}
		rule := sender.HandshakeRule{When: []string{"query.challenge"}, Method: "GET", TokenAt: "query.token",
			Token: []byte("t"), Answer: answer}
		handshake, err := sender.NewHandshake(rule, c)
		if err != nil {
			t.Fatal(err)
		}
		v := &Verification{Scheme: "none", Handshake: handshake}
		for target, reason := range map[string]sender.Reason{"/?challenge=1&token=t": "",
			"/?challenge=1&token=u": sender.Mismatch, "/?challenge=1": sender.Missing} {
			got := v.inspectDelivery(&sender.Delivery{Method: []byte("GET"), Target: []byte(target)}, time.Now())
			if got.handshake == nil || (got.broken != nil) != (reason != "") ||
				got.broken != nil && got.broken.Reason != reason {
				t.Errorf("%s, answered with %q: %+v", target, answer, got.broken)
			}
		}
	}
}
