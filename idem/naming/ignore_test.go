package naming

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func bodyOf(kind, body string) *Message {
	return &Message{Method: []byte("POST"), Path: []byte("/h"), Body: []byte(body),
		Fields: fields("Content-Type: " + kind)}
}

func mustIgnore(t *testing.T, paths ...string) *Ignored {
	t.Helper()
	g, err := CompileIgnored(paths)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestTwoAttemptsThatDifferOnlyInIgnoredMembersAreOneRequest(t *testing.T) {
	const js, form, xml = "application/json", "application/x-www-form-urlencoded", "text/xml"
	for name, c := range map[string]struct {
		ignore, kind, first, other string
		same                       bool
	}{
		"a member": {"body.sent_at", js, `{"id":1,"sent_at":"a"}`, `{"id":1,"sent_at":"b"}`,
			true},
		"one that only retries have": {"body.attempt", js, `{"id":1}`, `{"id":1,"attempt":2}`, true},
		"one in front of the others": {"body.attempt", js, `{"id":1}`, `{"attempt":{"n":[2]}, "id":1}`, true},
		"a nested one":               {"body.meta.at", js, `{"meta":{"at":1,"k":2}}`, `{"meta":{"k":2}}`, true},
		"another member differs": {"body.sent_at", js, `{"id":1,"sent_at":"a"}`, `{"id":2,"sent_at":"a"}`,
			false},
		"the same name elsewhere": {"body.sent_at", js, `{"o":{"sent_at":1}}`, `{"o":{"sent_at":2}}`, false},
		"a member of each element": {"body.items[*].at", js, `{"items":[{"at":1,"k":1},{"k":2}]}`,
			`{"items":[{"k":1},{"k":2,"at":9}]}`, true},
		"another element": {"body.items[*].at", js, `{"items":[{"at":1}]}`,
			`{"items":[{"at":1},{"at":2}]}`, false},
		"one element": {"body[1]", js, `[1,2,3]`, `[1,9,3]`, true},
		"each member of an object": {"body.headers.*", js, `{"headers":{"a":1}}`, `{"headers":{"b":2,"c":3}}`,
			true},
		"an escaped name": {"body.at", js, `{"\u0061t":1,"id":2}`, `{"id":2}`, true},
		"JSON in a string": {"body.message.at", js, `{"message":"{\"at\":1,\"id\":2}"}`,
			`{"message":"{\"at\":5,\"id\":2}"}`, true},
		"other JSON in a string": {"body.message.at", js, `{"message":"{\"at\":1,\"id\":2}"}`,
			`{"message":"{\"at\":1,\"id\":3}"}`, false},
		"a string that looks like members": {"body.at", js, `{"id":"1,\"x\":2"}`, `{"id":"1","x":2}`, false},
		"an empty object is no array":      {"body.at", js, `{"a":{}}`, `{"a":[]}`, false},
		"white space":                      {"body.at", js, "{\"id\": 1 ,\n \"at\": 2}", `{"id":1,"at":3}`, true},
		"broken JSON":                      {"body.at", js, `{"id":1,"at":1`, `{"id":1,"at":2`, false},
		"all of the body":                  {"*", js, `{"id":1}`, `hello`, true},
		"a parameter":                      {"form.t", form, `id=1&t=1`, `t=2&id=1`, true},
		"another parameter":                {"form.t", form, `id=1&t=1`, `id=2&t=1`, false},
		"JSON in a parameter": {"form.payload.ts", form, `payload={"ts":1,"id":2}`,
			`payload=%7B%22id%22%3A2%7D`, true},
		"a form that is no form": {"form.t", js, `id=1&t=1`, `id=1&t=2`, false},
		"an element": {"xml.a.t", xml, `<a><t>1</t><id>5</id></a>`,
			"<a>\n <id>5</id>\n <x:t y='>'>2<z/></x:t></a>", true},
		"an empty element": {"xml.a.t", xml, `<a><t/><id>5</id></a>`, `<a><id>5</id></a>`, true},
		"another element's text": {"xml.a.t", xml, `<a><t>1</t><id>5</id></a>`, `<a><t>1</t><id>6</id></a>`,
			false},
		"an attribute":                   {"xml.a.t", xml, `<a n="1"><t/></a>`, `<a n="2"><t/></a>`, false},
		"an element of that name deeper": {"xml.a.t", xml, `<a><b><t>1</t></b></a>`, `<a><b><t>2</t></b></a>`, false},
		"the second of a name": {"xml.a.n[1].t", xml, `<a><n><t>1</t></n><n><t>1</t></n></a>`,
			`<a><n><t>1</t></n><n><t>2</t></n></a>`, true},
		"the first of a name": {"xml.a.n[1].t", xml, `<a><n><t>1</t></n><n><t>1</t></n></a>`,
			`<a><n><t>2</t></n><n><t>1</t></n></a>`, false},
		"XML with a document type": {"xml.a.t", xml, `<!DOCTYPE a><a><t>1</t></a>`,
			`<!DOCTYPE a><a><t>2</t></a>`, false},
		"a comment does not hide a tag": {"xml.a.t", xml, `<a><!-- <t> --><id>1</id></a>`,
			`<a><!-- <t> --><id>2</id></a>`, false},
		"CDATA does not hide a tag": {"xml.a.t", xml, `<a><id><![CDATA[<t>]]>1</id></a>`,
			`<a><id><![CDATA[<t>]]>2</id></a>`, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, a, b := mustIgnore(t, c.ignore), bodyOf(c.kind, c.first), bodyOf(c.kind, c.other)
			if same := FingerprintOf(a, Open{}, g) == FingerprintOf(b, Open{}, g); same != c.same {
				t.Errorf("the same request: %v", same)
			}
			if differ := len(partsOf(a, Open{}, g).Differ(partsOf(b, Open{}, g))) > 0; differ == c.same {
				t.Errorf("a mismatch names what differs: %v", differ)
			}
			if c.first != c.other && FingerprintOf(a, Open{}, nil) == FingerprintOf(b, Open{}, nil) {
				t.Error("the bytes are equal, so this shows nothing")
			}
		})
	}
}

func TestAnIgnoredParameterOfTheQueryDoesNotCount(t *testing.T) {
	g := mustIgnore(t, "query.t")
	with := func(query string) *Message { return &Message{Path: []byte("/h"), Query: []byte(query)} }
	if FingerprintOf(with("id=1&t=1"), Open{}, g) != FingerprintOf(with("id=1&%74=2"), Open{}, g) {
		t.Error("t counts")
	}
	if FingerprintOf(with("id=1&t=1"), Open{}, g) == FingerprintOf(with("id=2&t=1"), Open{}, g) {
		t.Error("id does not count")
	}
}

func TestAnIgnoredMemberDoesNotCountForThePayloadKey(t *testing.T) {
	k := mustKeys(t, KeySpec{Route: "r", Workflow: "w", Ignore: []string{"body.at"}})
	a, b := mustName(t, k, bodyOf("application/json", `{"n":1,"at":1}`)),
		mustName(t, k, bodyOf("application/json", `{"n":1,"at":2}`))
	if a.Key != b.Key || !a.ByPayload {
		t.Errorf("%v and %v", a.Key, b.Key)
	}
}

func TestAnIgnoredPathThatCannotBeReadIsRefused(t *testing.T) {
	for path, want := range map[string]string{
		"":            "a member is missing",
		"header.X":    "Headers never count",
		"sent_at":     "only members of the body",
		"body":        "write a path of 1",
		"body.a[x]":   "is no index",
		"body.a }":    "unexpected",
		"xml.a:b":     "",
		"query.":      "query needs a name",
		"form.a ?? b": "unexpected",
	} {
		_, err := CompileIgnored([]string{path})
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := CompileIgnored(make([]string, maxIgnored+1)); err == nil {
		t.Error("takes any number of paths")
	}
	if _, err := NewKeys(KeySpec{Workflow: "w", Ignore: []string{"id"}}); err == nil ||
		!strings.HasPrefix(err.Error(), "ignore: ") {
		t.Error(err)
	}
}

// FuzzIgnoredMembers checks that a member which is left out changes nothing, and that everything
// else does.
func FuzzIgnoredMembers(f *testing.F) {
	for _, body := range []string{`{}`, `{"a":[1,{"ignored":2}]}`, `{"ignored":{"ignored":"\""},"b":null}`,
		`{"a":"\u00e9\\"}`} {
		f.Add(body, `{"other":1}`)
	}
	g, err := CompileIgnored([]string{"body.ignored", "body.a[*].ignored"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		a, readable := g.bodyDigest(bodyOf("application/json", one))
		if valid := json.Valid([]byte(one)); readable && !valid && !strings.HasPrefix(one, "\ufeff") {
			t.Fatalf("%q is no JSON, and was read", one)
		}
		if trimmed := strings.TrimSpace(one); readable && strings.HasPrefix(trimmed, "{") {
			more := `{"ignored":[1,2],` + trimmed[1:]
			if strings.TrimSpace(trimmed[1:len(trimmed)-1]) == "" {
				more = `{"ignored":[1,2]}`
			}
			if b, ok := g.bodyDigest(bodyOf("application/json", more)); !ok || !bytes.Equal(a, b) {
				t.Fatalf("%q and %q are two requests", one, more)
			}
		}
		b, ok := g.bodyDigest(bodyOf("application/json", two))
		if readable && ok && bytes.Equal(a, b) && !bytes.Equal(compacted(t, one), compacted(t, two)) &&
			!strings.Contains(one+two, "ignored") && !strings.Contains(one+two, `\u`) {
			t.Fatalf("%q and %q are one request", one, two)
		}
	})
}

func compacted(t *testing.T, text string) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, bytes.TrimPrefix([]byte(text), []byte("\ufeff"))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
