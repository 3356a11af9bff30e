package naming

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestReadsAMemberOfAJSONBody is the table of what a body says of a path.
func TestReadsAMemberOfAJSONBody(t *testing.T) {
	long := strings.Repeat("x", MaxValue)
	for _, tt := range []struct {
		sentence, template, body string
		want, code               string
	}{
		{"a text", "{body.id}", `{"id":"evt_1"}`, "evt_1", ""},
		{"a text with escapes", "{body.id}", `{"id":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00."}`, "\"\\/%08%0C%0A%0D%09é😀.",
			""},
		{"a number keeps its digits", "{body.id}", `{"id":-1.50e+07}`, "-1.50e+07", ""},
		{"a number too big for any type", "{body.id}", `{"id":123456789012345678901234567890}`,
			"123456789012345678901234567890", ""},
		{"zero is a value", "{body.id}", `{"id":0}`, "0", ""},
		{"true is a value", "{body.id}", `{"id":true}`, "true", ""},
		{"false is a value", "{body.id}", `{"id":false}`, "false", ""},
		{"null is missing", "{body.id}", `{"id":null}`, "", CodeEventIDMissing},
		{"an empty text is missing", "{body.id}", `{"id":""}`, "", CodeEventIDMissing},
		{"an object is missing", "{body.id}", `{"id":{"a":1}}`, "", CodeEventIDMissing},
		{"an array is missing", "{body.id}", `{"id":["a"]}`, "", CodeEventIDMissing},
		{"an absent member", "{body.id}", `{"ID":1,"i":2,"idx":3}`, "", CodeEventIDMissing},
		{"a deep member", "{body.a.b[1].c}", ` { "a" : { "b" : [ 0 , { "c" : "x" } ] } } `, "x", ""},
		{"an element too far", "{body.a[2]}", `{"a":[0,1]}`, "", CodeEventIDMissing},
		{"an index into an object", "{body.a[0]}", `{"a":{"0":1}}`, "", CodeEventIDMissing},
		{"a member of an array", `{body.a.b}`, `{"a":[{"b":1}]}`, "", CodeEventIDMissing},
		{"a member of a text", `{body.a.b}`, `{"a":"b"}`, "", CodeEventIDMissing},
		{"an array as the whole body", "{body[0].id}", `[{"id":"x"},{"id":"y"}]`, "x", ""},
		{"a quoted member", `{body["a.b"]["c\"]"]}`, `{"a.b":{"c\"]":"x"},"a":{"b":"y"}}`, "x", ""},
		{"a member whose name is no ASCII", "{body.größe}", `{"gr\u00f6\u00dfe":1}`, "1", ""},
		{"a member with an escaped name", "{body.id}", `{"\u0069d":"x"}`, "x", ""},
		{"two paths of one body", "{body.a}-{body.b}", `{"b":2,"a":1}`, "1-2", ""},
		{"a path and a longer one", "{body.a ?? body.a.b}", `{"a":{"b":7}}`, "7", ""},
		{"bytes that are no UTF-8 are a value of their own", "{body.id}", "{\"id\":\"\xe9\"}", "%E9", ""},

		{"a member twice", "{body.id}", `{"id":1,"id":2}`, "", CodeEventIDAmbiguous},
		{"a member twice, equal", "{body.id}", `{"id":1,"id":1}`, "", CodeEventIDAmbiguous},
		{"a member twice, first null", "{body.id}", `{"id":null,"id":1}`, "", CodeEventIDAmbiguous},
		{"a member twice, second null", "{body.id}", `{"id":1,"id":null}`, "", CodeEventIDAmbiguous},
		{"a member thrice", "{body.id}", `{"id":1,"id":2,"id":3}`, "", CodeEventIDAmbiguous},
		{"a member twice, once escaped", "{body.id}", `{"id":1,"\u0069\u0064":2}`, "", CodeEventIDAmbiguous},
		{"a member twice, first escaped", "{body.id}", `{"\u0069d":1,"id":2}`, "", CodeEventIDAmbiguous},
		{"a member on the way twice", "{body.a.b}", `{"a":{"b":1},"a":{"c":1}}`, "", CodeEventIDAmbiguous},
		{"a member on the way twice, first empty", "{body.a.b}", `{"a":{},"a":{"b":1}}`, "", CodeEventIDAmbiguous},
		{"a member below twice", "{body.a.b}", `{"a":{"b":1,"b":1}}`, "", CodeEventIDAmbiguous},
		{"a member above an element twice", "{body.a[0]}", `{"a":[1],"a":[1]}`, "", CodeEventIDAmbiguous},
		{"another member twice", "{body.a.b}", `{"a":{"b":1},"c":1,"c":2,"d":{"b":1,"b":1}}`, "1", ""},
		{"the name twice in other objects", "{body[1].id}", `[{"id":1,"id":1},{"id":2},{"id":3}]`, "2", ""},
		{"a member twice in a broken body", "{body.id}", `{"id":1,"id":2`, "", CodeEventIDMissing},

		{"no body", "{body.id}", ``, "", CodeEventIDMissing},
		{"white space", "{body.id}", " \n", "", CodeEventIDMissing},
		{"a form", "{body.id}", `id=1`, "", CodeEventIDMissing},
		{"a body that is cut off", "{body.id}", `{"id":1`, "", CodeEventIDMissing},
		{"something behind the body", "{body.id}", `{"id":1}{"id":2}`, "", CodeEventIDMissing},
		{"a comma at the end", "{body.id}", `{"id":1,}`, "", CodeEventIDMissing},
		{"broken JSON elsewhere", "{body.id}", `{"id":1,"x":[1,]}`, "", CodeEventIDMissing},
		{"a number with a zero in front", "{body.id}", `{"id":01}`, "", CodeEventIDMissing},
		{"not a number", "{body.id}", `{"id":NaN}`, "", CodeEventIDMissing},
		{"a control character in a text", "{body.id}", "{\"id\":\"a\nb\"}", "", CodeEventIDMissing},
		{"an unknown escape", "{body.id}", `{"id":"\x41"}`, "", CodeEventIDMissing},
		{"single quotes", "{body.id}", `{'id':'1'}`, "", CodeEventIDMissing},
		{"a byte order mark", "{body.id}", "\ufeff{\"id\":1}", "1", ""},
		{"two of them", "{body.id}", "\ufeff\ufeff{\"id\":1}", "", CodeEventIDMissing},
		{"escapes behind a byte order mark", "{body.id}", "\ufeff{\"id\":\"a\\u0041\"}", "aA", ""},
		{"half a surrogate pair", "{body.id}", `{"id":"\ud83d"}`, "", CodeEventIDMissing},
		{"half a surrogate pair before another escape", "{body.id}", `{"id":"\ud83d\u0041"}`, "", CodeEventIDMissing},
		{"half a surrogate pair elsewhere", "{body.id}", `{"\ud83d":"\ud83d","id":1}`, "1", ""},

		{"300 levels", "{body.id}", `{"id":1,"x":` + strings.Repeat("[", 299) + strings.Repeat("]", 299) + `}`, "1",
			""},
		{"301 levels", "{body.id}", `{"id":1,"x":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, "",
			CodeEventIDMissing},
		{"a million levels", "{body.id}", strings.Repeat("[", 1e6), "", CodeEventIDMissing},
		{"a million levels of objects", "{body.id}", strings.Repeat(`{"id":`, 1e6), "", CodeEventIDMissing},

		{"a text of 512 bytes", "{body.id}", `{"id":"` + long + `"}`, long, ""},
		{"a text of 512 bytes, all escaped", "{body.id}", `{"id":"` + strings.Repeat(`\u0041`, MaxValue) + `"}`,
			strings.Repeat("A", MaxValue), ""},
		{"a text of 513 bytes", "{body.id}", `{"id":"` + long + `x"}`, "", CodeKeyTooLong},
		{"a text of 513 bytes, all escaped", "{body.id}", `{"id":"` + strings.Repeat(`\u0041`, MaxValue+1) + `"}`, "",
			CodeKeyTooLong},
		{"a number of 513 digits", "{body.id}", `{"id":` + strings.Repeat("1", MaxValue+1) + `}`, "", CodeKeyTooLong},
	} {
		t.Run(tt.sentence, func(t *testing.T) {
			k := mustKeys(t, KeySpec{Route: "r", Workflow: "w", EventID: tt.template, Missing: MissingReject})
			n, err := k.Name(&Message{Body: []byte(tt.body)})
			var bad *NameError
			if tt.code == "" && (err != nil || n.EventID != tt.want) {
				t.Fatalf("event ID %q, %v; want %q", n.EventID, err, tt.want)
			}
			if tt.code != "" && (!errors.As(err, &bad) || bad.Code != tt.code) {
				t.Fatalf("%q, %v; want %s", n.EventID, err, tt.code)
			}
		})
	}
}

func TestScansAHostileBodyWithoutMemory(t *testing.T) {
	set := new(bodySet)
	set.addPath([]pathStep{{name: "id"}})
	body := []byte("[" + strings.Repeat("{},", 1<<20) + "0]")
	var scan jsonScan
	if n := testing.AllocsPerRun(3, func() { scan.scanText(body, set) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

// FuzzJSONBody holds the scan against encoding/json: the same texts are JSON, and the same values
// are found in them.
func FuzzJSONBody(f *testing.F) {
	for _, s := range []string{
		`{"id":"a"}`, `{"id":1e5,"a":{"b":[1,{"c":"\u00e9"}]}}`, `{"a":{"b":[0,{"c":"x","c":2}]}}`, `[{"id":2}]`,
		`{"id":"\ud83d\ude00"}`,
		`{"i\u0064":true}`, ` {"id":-0.0} `, `{"id":null,"x":"\ud800"}`, `"id"`, `{"a":[]}`, `{"id":"\\u0041"}`,
		`{"a":"{\"b\":[1,{\"c\":2}]}"}`, `{"a":{"b":"[1,{\"c\":\"\\u0041\"}]"}}`, `{"a":"{\"b\":\"[1,{}]\"}"}`,
	} {
		f.Add([]byte(s))
	}
	id, deep := []pathStep{{name: "id"}}, []pathStep{{name: "a"}, {name: "b"}, {index: 1, isIndex: true}, {name: "c"}}
	set := new(bodySet)
	paths := map[int][]pathStep{set.addPath(id): id, set.addPath(deep): deep}
	f.Fuzz(func(t *testing.T, body []byte) {
		m := &Message{Body: body}
		m.scratch.beginDelivery("r")
		ok := m.scratch.body.scan.scanText(body, set)
		if want := json.Valid(body); ok != want &&
			!(want && bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) > maxDepth) {
			t.Fatalf("%q: is JSON %v, encoding/json says %v", body, ok, want)
		}
		if !ok || !utf8.Valid(body) {
			return
		}
		for slot, path := range paths {
			value, result := bodySource{set, slot}.readValue(m)
			want := oracle(body, path)
			if result == found && want != string(value) {
				t.Fatalf("%q %v: %q, encoding/json says %q", body, path, value, want)
			}
			if result == missing && want != "" && !strings.Contains(want, "\ufffd") {
				t.Fatalf("%q %v: missing, encoding/json says %q", body, path, want)
			}
		}
	})
}

// oracle is what encoding/json finds at path, "" for what counts as missing.
func oracle(body []byte, path []pathStep) string {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return ""
	}
	inside := false
	for _, step := range path {
		if text, ok := v.(string); ok && !inside && json.Valid([]byte(text)) {
			inside = true
			d := json.NewDecoder(strings.NewReader(text))
			d.UseNumber()
			_ = d.Decode(&v)
		}
		if step.isIndex {
			a, _ := v.([]any)
			if step.index >= len(a) {
				return ""
			}
			v = a[step.index]
			continue
		}
		o, _ := v.(map[string]any)
		v = o[step.name]
	}
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return ""
}
