package naming

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hooklock/idem"
)

func TestWhatDiffersBetweenTwoAttemptsIsNamed(t *testing.T) {
	form := []Field{{[]byte("Content-Type"), []byte("application/x-www-form-urlencoded")}}
	many := func(last string) string {
		var b strings.Builder
		for i := range 300 {
			fmt.Fprintf(&b, `"m%d":1,`, i)
		}
		return "{" + b.String() + `"last":` + last + "}"
	}
	for name, tt := range map[string]struct {
		a, b Message
		want []string
	}{
		"a counter": {Message{Body: []byte(`{"id":1,"delivery_attempts":1}`)},
			Message{Body: []byte(`{"id":1,"delivery_attempts":2}`)}, []string{"body.delivery_attempts"}},
		"a flag, inside": {Message{Body: []byte(`{"events":[{"deliveryContext":{"isRedelivery":false},"x":1}]}`)},
			Message{Body: []byte(`{"events":[{"deliveryContext":{"isRedelivery":true},"x":1}]}`)},
			[]string{"body.events[0].deliveryContext.isRedelivery"}},
		"one more": {Message{Body: []byte(`{"id":1}`)}, Message{Body: []byte(`{"id":1,"retry":true}`)},
			[]string{"body.retry"}},
		"order and spaces": {Message{Body: []byte(`{"id":1,"a":2}`)}, Message{Body: []byte(`{"a": 2, "id":1}`)}, nil},
		"a form": {Message{Fields: form, Body: []byte("id=1&n=1")},
			Message{Fields: form, Body: []byte("id=1&n=2")}, []string{"form.n"}},
		"JSON as a form": {Message{Fields: form, Body: []byte(`{"id":1,"n":1}`)},
			Message{Fields: form, Body: []byte(`{"id":1,"n":2}`)}, []string{"body.n"}},
		"text as a form": {Message{Fields: form, Body: []byte("a secret")},
			Message{Fields: form, Body: []byte("another")}, []string{"the body"}},
		"XML as a form": {Message{Fields: form, Body: []byte(`<a b="1">`)},
			Message{Fields: form, Body: []byte(`<a b="2">`)}, []string{"the body"}},
		"long names": {
			Message{Body: []byte(`{"` + strings.Repeat("a", maxMemberName) + `1":1}`)},
			Message{Body: []byte(`{"` + strings.Repeat("a", maxMemberName) + `2":1}`)},
			[]string{"body." + strings.Repeat("a", maxMemberName-len("body.")) + "…"},
		},
		"the query": {Message{Target: []byte("/h?n=1"), Body: []byte("{}")},
			Message{Target: []byte("/h?n=2"), Body: []byte("{}")}, []string{"the method, host or target"}},
		"no JSON": {Message{Body: []byte("<a>1</a>")}, Message{Body: []byte("<a>2</a>")}, []string{"the body"}},
		"a long body": {Message{Body: bytes.Repeat([]byte("1"), maxMembersBody+1)},
			Message{Body: bytes.Repeat([]byte("2"), maxMembersBody+1)}, []string{"the body"}},
		"many members": {Message{Body: []byte(many("1"))}, Message{Body: []byte(many("2"))},
			[]string{"further members"}},
		"nothing": {Message{Body: []byte(`{"id":1}`)}, Message{Body: []byte(`{"id":1}`)}, nil},
	} {
		if got := idem.Differences(Members(&tt.a), Members(&tt.b)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// FuzzMembers: no body makes it panic or grow, and a delivery does not differ from itself.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}],"a":2}`))
	f.Add([]byte(strings.Repeat("[", 1000)))
	f.Fuzz(func(t *testing.T, body []byte) {
		all := Members(&Message{Body: body})
		if len(all) > maxMembers || len(idem.Differences(all, Members(&Message{Body: body}))) > 0 {
			t.Fatalf("%d members of %q", len(all), body)
		}
		for _, m := range all {
			if len(m.Path) > maxMemberName+len("…") {
				t.Fatalf("%q", m.Path)
			}
		}
	})
}
