package sender

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"hooklock/idem/naming"
)

func ruled(t testing.TB, r HandshakeRule, c Config) *RuledHandshake {
	t.Helper()
	h, err := NewHandshake(r, c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// known handshakes of senders, as rules.
func metaRule() HandshakeRule {
	return HandshakeRule{
		Method: "GET", When: []string{"query.hub.mode=subscribe", "query.hub.challenge"}, Unsigned: true,
		TokenAt: "query.hub.verify_token", Token: []byte("chosen"),
		Answer: "{query.hub.challenge}",
	}
}

func zoomRule() HandshakeRule {
	return HandshakeRule{
		When: []string{"body.event=endpoint.url_validation"}, ContentType: "application/json",
		Answer: `{{"plainToken":"{body.payload.plainToken}","encryptedToken":"{hmac.body.payload.plainToken}"}}`,
	}
}

func TestAQueryParameterIsEchoed(t *testing.T) {
	h := ruled(t, metaRule(), Config{Scheme: "hmac", Secrets: [][]byte{[]byte("app")}})
	d := &Delivery{Method: []byte("GET"),
		Target: []byte("/hooks/meta?hub.mode=subscribe&hub.challenge=115%2B8&hub.verify_token=chosen")}
	if !h.Matches(d) || h.Signed || h.Method != "GET" {
		t.Fatalf("%+v", h)
	}
	a, err := h.Answer(d)
	if err != nil || string(a.Body) != "115+8" || a.ContentType != "text/plain; charset=utf-8" {
		t.Fatalf("%+v %v", a, err)
	}
	d.Target = []byte("/hooks/meta?hub.mode=subscribe&hub.challenge=1158&hub.verify_token=guessed")
	if _, err := h.Answer(d); reasonOf(t, err) != Mismatch || strings.Contains(err.Error(), "guessed") {
		t.Errorf("with another token: %v", err)
	}
	d.Target = []byte("/hooks/meta?hub.mode=subscribe&hub.challenge=1158")
	if _, err := h.Answer(d); reasonOf(t, err) != Missing {
		t.Errorf("without a token: %v", err)
	}
	for _, target := range []string{"/", "/?hub.mode=subscribe", "/?hub.mode=x&hub.challenge=1",
		"/?hub.mode=subscribe&hub.challenge=1&hub.challenge=2"} {
		if d.Target = []byte(target); h.Matches(d) {
			t.Errorf("%s is taken for a handshake", target)
		}
	}
}

func TestAHeaderIsEchoed(t *testing.T) {
	h := ruled(t, HandshakeRule{When: []string{"header.X-Hook-Secret"}, Unsigned: true,
		Header: "X-Hook-Secret: {header.X-Hook-Secret}"}, Config{Scheme: "hmac"})
	d := &Delivery{Fields: []naming.Field{field("x-hook-secret", "b537")}}
	if !h.Matches(d) || h.Matches(&Delivery{}) {
		t.Fatal("is not recognised by its header")
	}
	a, err := h.Answer(d)
	if err != nil || len(a.Body) > 0 || a.ContentType != "" || len(a.Header) != 1 ||
		string(a.Header[0].Name) != "X-Hook-Secret" || string(a.Header[0].Value) != "b537" {
		t.Fatalf("%+v %v", a, err)
	}
	h = ruled(t, HandshakeRule{When: []string{"query.x"}, Unsigned: true, Header: "X-Echo: {query.x}"},
		Config{Scheme: "hmac"})
	if _, err := h.Answer(&Delivery{Target: []byte("/?x=a%0d%0aSet-Cookie:b")}); reasonOf(t, err) != Malformed {
		t.Errorf("a line break in a header: %v", err)
	}
}

func TestABodyMemberIsAnswered(t *testing.T) {
	h := ruled(t, HandshakeRule{When: []string{"body.type=url_verification"}, Answer: "{body.challenge}"},
		Config{Scheme: "slack"})
	d := &Delivery{Body: []byte(`{"type":"url_verification","challenge":"3eZ<b>"}`)}
	a, err := h.Answer(d)
	if !h.Matches(d) || !h.Signed || err != nil || string(a.Body) != "3eZ<b>" {
		t.Fatalf("%+v %v", a, err)
	}
	if h.Matches(&Delivery{Body: []byte(`{"type":"event_callback","text":"url_verification"}`)}) {
		t.Error("an event is taken for a handshake")
	}
	if _, err := h.Answer(&Delivery{Body: []byte(`{"type":"url_verification"}`)}); reasonOf(t, err) != Missing {
		t.Errorf("without a challenge: %v", err)
	}
	if _, err := h.Answer(&Delivery{Body: []byte(`{"challenge":"` + strings.Repeat("x", maxEcho+1) + `"}`)}); reasonOf(
		t, err) != Malformed {
		t.Errorf("a long challenge: %v", err)
	}
}

func TestTheDigestOfAMemberIsAnswered(t *testing.T) {
	h := ruled(t, zoomRule(), Config{Scheme: "zoom", Secrets: [][]byte{[]byte("token"), []byte("older")}})
	d := &Delivery{Body: []byte(`{"event":"endpoint.url_validation","payload":{"plainToken":"q\"x"}}`)}
	a, err := h.Answer(d)
	if err != nil || a.ContentType != "application/json" {
		t.Fatalf("%+v %v", a, err)
	}
	var got struct{ PlainToken, EncryptedToken string }
	if err := json.Unmarshal(a.Body, &got); err != nil || got.PlainToken != `q"x` ||
		got.EncryptedToken != signedHex("token", `q"x`) {
		t.Fatalf("%s %v", a.Body, err)
	}
}

func TestABadHandshakeIsRefused(t *testing.T) {
	hmac := Config{Scheme: "hmac", Header: "X", Secrets: [][]byte{[]byte("s")}}
	for _, tt := range []struct {
		r    HandshakeRule
		c    Config
		want string
	}{
		{HandshakeRule{Answer: "x"}, hmac, "give when"},
		{HandshakeRule{When: []string{"headr.X"}, Answer: "x"}, hmac, "did you mean"},
		{HandshakeRule{When: []string{"query.x="}, Answer: "x"}, hmac, "an empty value is a missing one"},
		{HandshakeRule{When: []string{"body.x"}, Method: "GET", Answer: "x"}, hmac, "is recognised by its head"},
		{HandshakeRule{When: []string{"query.x"}, Unsigned: true}, hmac, "an unsigned handshake is not passed on"},
		{HandshakeRule{When: []string{"header.X-Kind=test"}}, hmac, "could run again as a handshake"},
		{HandshakeRule{When: []string{"query.x"}, Answer: "{url}"}, hmac, "{url} is for signatures"},
		{HandshakeRule{When: []string{"query.x"}, Answer: "{query.x"}, hmac, "a { without its }"},
		{HandshakeRule{When: []string{"query.x"}, Header: "no colon"}, hmac, "write it as"},
		{HandshakeRule{When: []string{"query.x"}, TokenAt: "query.t", Answer: "x"}, hmac, "give token_file"},
		{HandshakeRule{When: []string{"query.x"}, Token: []byte("t"), Answer: "x"}, hmac, "give token:"},
		{HandshakeRule{When: []string{"body.x"}, TokenAt: "body.t"}, hmac, "give token_file"},
		{HandshakeRule{When: []string{"body.x"}, Token: []byte("t")}, hmac, "give token:"},
		{HandshakeRule{When: []string{"query.x"}, Answer: "{hmac.query.x}"}, Config{Scheme: "none"},
			"give secret_file"},
		{HandshakeRule{When: []string{"query.crc_token"}, Method: "GET", Unsigned: true,
			Answer: "{hmac.query.crc_token}"}, hmac, "the signature of an event"},
		{HandshakeRule{When: []string{"query.x"}, Answer: "{hmac.header.Y}"}, hmac, "the signature of an event"},
		{HandshakeRule{When: []string{"query.x"}, Unsigned: true, Header: "X: {hmac.query.x}"}, hmac,
			"the signature of an event"},
	} {
		if _, err := NewHandshake(tt.r, tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v; want %q", tt.r, err, tt.want)
		}
	}
	if h, err := NewHandshake(HandshakeRule{}, hmac); h != nil || err != nil {
		t.Errorf("no rule: %v %v", h, err)
	}
	ruled(t, HandshakeRule{When: []string{"body.type=ping"}}, hmac) // its body is signed: the upstream may answer
}

// FuzzHandshake checks that no delivery makes a rule panic, that an answer of type JSON is JSON,
// and that its header has no line breaks.
func FuzzHandshake(f *testing.F) {
	c := Config{Scheme: "hmac", Secrets: [][]byte{[]byte("s")}}
	rules := []*RuledHandshake{
		ruled(f, zoomRule(), c),
		ruled(f, HandshakeRule{When: []string{"query.x"}, Unsigned: true, Header: "X-Echo: {query.x}",
			Answer: "{form.y.z}{target}"}, c),
	}
	f.Add("/?x=1", "application/x-www-form-urlencoded", []byte("y=%7B%22z%22%3A1%7D"))
	f.Add("/", "application/json",
		[]byte(`{"event":"endpoint.url_validation","payload":{"plainToken":"\u0000\ud800"}}`))
	f.Fuzz(func(t *testing.T, target, kind string, body []byte) {
		d := &Delivery{Method: []byte("POST"), Target: []byte(target), Body: body,
			Fields: []naming.Field{field("Content-Type", kind)}}
		for i, h := range rules {
			if !h.Matches(d) {
				continue
			}
			a, err := h.Answer(d)
			if err != nil {
				reasonOf(t, err)
				continue
			}
			if i == 0 && !json.Valid(a.Body) {
				t.Fatalf("%q is no JSON", a.Body)
			}
			for _, line := range a.Header {
				if strings.ContainsAny(string(line.Value), "\r\n\x00") {
					t.Fatalf("%q in a header", line.Value)
				}
			}
		}
	})
}

// FuzzPieces checks that no text makes the parser panic, and that accepted text has a value or an
// error for each delivery.
func FuzzPieces(f *testing.F) {
	f.Add("{body}")
	f.Add("v0:{header.X[t]}:{{{query.a}}}{url}{target}{xml.a.b}")
	f.Fuzz(func(t *testing.T, content string) {
		v, err := New(Config{Scheme: "hmac", Secrets: [][]byte{[]byte("nobody guesses 5f1c0d")}, Header: "X-Sig",
			Content: content, PublicURL: "https://a.example.com"})
		if err != nil {
			return
		}
		d := &Delivery{Method: []byte("POST"), Target: []byte("/?a=1"), Body: []byte("{}"),
			Fields: []naming.Field{field("X-Sig", strings.Repeat("a", 64))}}
		if v.Verify(d, testNow()) == nil {
			t.Fatal("accepts what nobody signed")
		}
	})
}

// TestAHandshakeIsRecognisedHoweverItsValueIsSpelled covers escapes: a form has a plus for a space
// and %2F for a slash, PHP writes \/ in JSON, others write ë as \u00eb.
func TestAHandshakeIsRecognisedHoweverItsValueIsSpelled(t *testing.T) {
	form, xml := field("Content-Type", "application/x-www-form-urlencoded"), field("Content-Type", "text/xml")
	sum := sha256.Sum256([]byte("ping"))
	for when, d := range map[string]*Delivery{
		"form.kind=set up":    {Fields: []naming.Field{form}, Body: []byte("kind=set+up&id=1")},
		"form.kind=a/b":       {Fields: []naming.Field{form}, Body: []byte("id=1&kind=a%2Fb")},
		"body.type=app/check": {Body: []byte(`{"type":"app\/check"}`)},
		"body.type=Zoë":       {Body: []byte(`{"type":"Zo\u00eb"}`)},
		"body.type=a<b":       {Body: []byte(`{"type":"a\u003cb"}`)},
		"xml.Check.Kind=a&b": {Fields: []naming.Field{xml},
			Body: []byte("<Check><Kind>a&amp;b</Kind></Check>")},
		"body_sha256=" + hex.EncodeToString(sum[:]): {Body: []byte("ping")},
	} {
		h := ruled(t, HandshakeRule{When: []string{when}, Answer: "x"},
			Config{Scheme: "hmac", Header: "X", Secrets: [][]byte{[]byte("s")}})
		if !h.Matches(d) {
			t.Errorf("%s: %s is not taken for it", when, d.Body)
		}
		if h.Matches(&Delivery{Fields: d.Fields, Body: []byte(`{"type":"event"}`)}) {
			t.Errorf("%s: an event is taken for it", when)
		}
	}
}

func TestAnAnswerThatABrowserRunsIsRefused(t *testing.T) {
	for _, contentType := range []string{"text/html", "Text/HTML; charset=utf-8", "application/xhtml+xml",
		"image/svg+xml", "text/javascript", "text/xml", "application/xml", "application/atom+xml", "text/xsl",
		"multipart/x-mixed-replace"} {
		r := &HandshakeRule{When: []string{"query.challenge"}, Answer: "{query.challenge}", ContentType: contentType,
			Unsigned: true}
		if _, err := r.answerMaker(&Config{}, nil); err == nil || !strings.Contains(err.Error(), "content_type") {
			t.Errorf("%s: %v", contentType, err)
		}
	}
}
