package naming

import (
	"errors"
	"testing"
)

// A name or value that is encoded in another way than its reader expects is none: two readers of it
// would see two events.
func TestAnEncodedNameIsThatNameAndNoOther(t *testing.T) {
	query := func(q string) Message { return Message{Query: []byte(q)} }
	form := func(b string) Message { return Message{Body: []byte(b), Fields: fields(formType)} }
	body := func(b string) Message { return Message{Body: []byte(b)} }
	for _, c := range []struct {
		template string
		m        Message
		want     string // "" = missing
	}{
		{"{query.id}", query("%69%64=a"), "a"},
		{"{query.id}", query("i%65=a"), ""},
		{"{query.id}", query("i%6=a"), ""},
		{"{query.id}", query("i+=a"), ""},
		{`{query["i d"]}`, query("i+d=a"), "a"},
		{"{query.id}", query("id%00=a"), ""},
		{"{query.id}", query("id=%0z"), ""},
		{"{query.id}", query("id=%z0"), ""},
		{"{query.id}", query("id=a%4"), ""},
		{"{query.id}", query("id=a+b"), "a b"},
		{"{form.id}", form("i%64=a"), "a"},
		{"{form.id}", form("i%65=a"), ""},
		{"{form.id}", body("id=a"), ""},
		{"{path.id}", Message{Vars: []PathVar{{"id", []byte("a+%2b")}}}, "a++"},
		{"{path.id}", Message{Vars: []PathVar{{"id", []byte("a%2")}}}, ""},
		{"{body.id}", body(`{"\u0069d":"a"}`), "a"},
		{"{body.id}", body(`{"\u0069e":"a"}`), ""},
		{"{body.id}", body(`{"i\n":"a"}`), ""},
		{"{body.id}", body(`{"\ud800d":"a"}`), ""},
		{"{body.id}", body(`{"id":"\ud83d\ude00"}`), "😀"},
		{"{body.id}", body(`{"id":"\ud83d"}`), ""},
		{"{body.id}", body(`{"id":"\ud83dude00"}`), ""},
		{"{body.id}", body(`{"id":"\ud83d\nde00"}`), ""},
		{"{header.Idempotency-Key}", Message{Fields: fields(`Idempotency-Key: "a\"b"`)}, `a"b`},
		{"{header.Idempotency-Key}", Message{Fields: fields(`Idempotency-Key: a"`)}, `a"`},
		{"{header.Idempotency-Key}", Message{Fields: fields("Idempotency-Key: \"a\tb\"")}, `"a%09b"`},
		{"{header.Idempotency-Key}", Message{Fields: fields("Idempotency-Key: \"a b~\"")}, "a b~"},
		{"{header.Idempotency-Key}", Message{Fields: fields("Idempotency-Key: \"a\x7f\"")}, `"a%7F"`},
	} {
		n, err := mustKeys(t, KeySpec{Workflow: "w", EventID: c.template, Missing: MissingReject}).Name(&c.m)
		var bad *NameError
		switch {
		case c.want != "" && (err != nil || n.EventID != c.want):
			t.Errorf("%s of %q %q %q: %q, %v; want %q", c.template, c.m.Query, c.m.Body, c.m.Fields, n.EventID, err,
				c.want)
		case c.want == "" && !errors.As(err, &bad):
			t.Errorf("%s of %q %q: %q", c.template, c.m.Query, c.m.Body, n.EventID)
		}
	}
}
