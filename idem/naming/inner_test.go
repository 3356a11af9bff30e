package naming

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

// SNS sends the JSON of its publisher as a string, and RFC 8935 a token as the whole body.
func TestJSONInAStringAndTheClaimsOfATokenCanBeNamed(t *testing.T) {
	quoted := func(text string) string {
		b, _ := json.Marshal(text)
		return string(b)
	}
	token := func(claims string) string {
		e := base64.RawURLEncoding
		return e.EncodeToString([]byte(`{"typ":"secevent+jwt","alg":"RS256"}`)) + "." +
			e.EncodeToString([]byte(claims)) + "." + e.EncodeToString([]byte("signature"))
	}
	for _, c := range []struct {
		body, source, want string
		r                  Reading
	}{
		{`{"Message":` + quoted(`{"order":{"id":7},"é\"":"x\ny"}`) + `}`, "body.Message.order.id", "7", ReadFound},
		{`{"Message":` + quoted(`{"order":{"id":7},"é\"":"x\ny"}`) + `}`, `body.Message["é\""]`, "x\ny", ReadFound},
		{`{"Message":` + quoted(` [1,{"id":"a"}] `) + `,"z":1}`, "body.Message[1].id", "a", ReadFound},
		{`{"Message":` + quoted(`{"id":1}`) + `,"z":2}`, "body.z", "2", ReadFound},
		{`{"Message":` + quoted(`{"id":1}`) + `}`, "body.Message", `{"id":1}`, ReadFound},
		{`{"Message":` + quoted(`{"id":1,"id":2}`) + `}`, "body.Message.id", "", ReadAmbiguous},
		{`{"Message":` + quoted(`{"id":1}`) + `,"Message":` + quoted(`{"id":2}`) + `}`, "body.Message.id", "",
			ReadAmbiguous},
		{`{"Message":` + quoted(`{"id":1}x`) + `}`, "body.Message.id", "", ReadMissing},
		{`{"Message":"plain text"}`, "body.Message.id", "", ReadMissing},
		// one level
		{`{"Message":` + quoted(`{"a":`+quoted(`{"id":1}`)+`}`) + `}`, "body.Message.a.id", "", ReadMissing},
		{`{"Message":"\ud800{}"}`, "body.Message.id", "", ReadMissing},
		{token(`{"jti":"4d35","events":{"x":{"subject":"s\"1"}}}`), "body.jti", "4d35", ReadFound},
		{token(`{"jti":"4d35","events":{"x":{"subject":"s\"1"}}}`) + "\r\n", "body.events.x.subject", `s"1`, ReadFound},
		{token(`{"jti":"4d35"`), "body.jti", "", ReadMissing},
		{token(`{"jti":"4d35"}`) + ".more", "body.jti", "", ReadMissing},
		{strings.Replace(token(`{"jti":"4d35"}`), ".", ".=", 1), "body.jti", "", ReadMissing},
		{`{"Message":"[` + strings.Repeat("0,", maxInner/2) + `0]"}`, "body.Message[0]", "", ReadTooLong},
		// it would be decoded
		{token(`{"jti":"4d35","more":"` + strings.Repeat("x", maxInner) + `"}`), "body.jti", "", ReadMissing},
	} {
		if got, r := lookedUp(t, c.source, &Message{Body: []byte(c.body)}); got != c.want || r != c.r {
			t.Errorf("%s of %.80s: %q %v, want %q %v", c.source, c.body, got, r, c.want, c.r)
		}
	}
	long := strings.Repeat("é", MaxValue)
	m := &Message{Body: []byte(`{"Message":` + quoted(`{"id":`+quoted(long)+`}`) + `}`)}
	keys := mustKeys(t, KeySpec{Route: "r", Workflow: "w", EventID: "{body.Message.id}", Missing: MissingReject})
	if _, err := keys.Name(m); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a long one as a name: %v", err)
	}
}
