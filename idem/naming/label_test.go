package naming

import (
	"strings"
	"testing"
	"unicode/utf8"

	"hooklock/idem"
)

func TestADeliveryHasTheLabelsThatItCarries(t *testing.T) {
	keys, err := NewKeys(KeySpec{Route: "r", Workflow: "w", EventID: "{body.id}", Labels: []LabelSpec{
		{"customer", "{body.customer}"}, {"order", "{body.order_number ?? body.order}"},
		{"shop", "{header.X-Shop}/{body.order}"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("ä", 400)
	for body, want := range map[string]string{
		`{"id":1,"order_number":1042,"customer":"cus_1"}`: `{"customer":"cus_1","order":"1042"}`,
		`{"id":1,"order":"SO-7"}`:                         `{"order":"SO-7","shop":"s1/SO-7"}`,
		`{"id":1}`:                                        `{}`,
		`{"id":1,"customer":["a"],"order":""}`:            `{}`,
		`{"id":1,"customer":"a","customer":"b"}`:          `{}`, // given twice: nobody knows which counts
		`{"id":1,"customer":"a\nb"}`:                      `{"customer":"a%0Ab"}`,
		`{"id":1,"customer":"` + long[:140] + `"}`:        `{"customer":"` + long[:124] + `…"}`,
		`{"id":1,"customer":"` + long + `"}`:              `{"customer":"` + long[:124] + `…"}`,
	} {
		m := Message{Method: []byte("POST"), Body: []byte(body), Fields: []Field{{[]byte("X-Shop"), []byte("s1")}}}
		names, err := keys.Name(&m)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := names.Labels.MarshalJSON()
		if string(text) != want {
			t.Errorf("%.80s\nhas %s, want\n%s", body, text, want)
		}
		for _, l := range names.Labels {
			if len(l.Value) > maxLabel || !utf8.ValidString(l.Value) {
				t.Errorf("%q is %d bytes", l.Value, len(l.Value))
			}
		}
	}
}

// TestLabelsLeaveTheKeyAlone: an event runs once, whether its route gets a label or loses one
// meanwhile.
func TestLabelsLeaveTheKeyAlone(t *testing.T) {
	spec := KeySpec{Route: "r", Workflow: "w/{body.a}", EventID: "{body.id}"}
	var before idem.Key
	for _, labels := range [][]LabelSpec{nil, {{"a", "{body.b}"}}} {
		spec.Labels = labels
		keys, err := NewKeys(spec)
		if err != nil {
			t.Fatal(err)
		}
		names, err := keys.Name(&Message{Method: []byte("POST"), Body: []byte(`{"id":"1","a":"x","b":"y"}`)})
		if err != nil || before != "" && names.Key != before {
			t.Errorf("%v: %s, and without a label %s", err, names.Key, before)
		}
		before = names.Key
	}
	if _, err := NewKeys(KeySpec{Workflow: "w", Labels: make([]LabelSpec, MaxLabels+1)}); err == nil {
		t.Error("five labels are taken")
	}
}
