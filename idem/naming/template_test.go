package naming

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestSaysWhatIsWrongInATemplateAndWhatToWrite(t *testing.T) {
	for _, tt := range []struct{ template, want string }{
		{"", "column 1: the template is empty: write text, a source such as {route}, or both"},
		{"a}b", `column 2: "}" closes nothing: write "}}" for a brace`},
		{"é{route", `column 2: "{" is not closed: add "}", or write "{{" for a brace`},
		{"{route ", `column 1: "{" is not closed`},
		{"{", `column 1: "{" is not closed`},
		{"{}", "column 2: a source is missing here: write one of path.x,"},
		{"{body.id ??}", "column 12: a source is missing here"},
		{"{body.id ?? ", `column 1: "{" is not closed`},
		{"{headers.X}", `column 2: unknown source "headers.X", did you mean "header.X"?`},
		{"{Header.X}", `did you mean "header.X"?`},
		{"{http.request.header.X-Id}", `did you mean "header.X-Id"?`},
		{"{request.headers.X-Id}", `did you mean "header.X-Id"?`},
		{"{headr}", `did you mean "header.Idempotency-Key"?`},
		{"{body_sha265}", `did you mean "body_sha256"?`},
		{"{body|sha256}", `did you mean "body_sha256"?`},
		{"{$.data.id}", `did you mean "body.data.id"?`},
		{"{payload.id}", `did you mean "body.id"?`},
		{"{figerprint}", `did you mean "fingerprint"?`},
		{"{hosts}", `did you mean "host"?`},
		{"{Route}", `did you mean "route"?`},
		{"{account}", `column 2: unknown source "account": write one of path.x, query.x, header.X`},
		{"{x-y[\"a\"]}", `unknown source "x-y["`},
		{"{header}", "column 2: header needs a name: write {header.Idempotency-Key}"},
		{"{header.}", "header needs a name"},
		{`{header["a b"]}`, `" " cannot be in a header's name`},
		{"{header.A:B}", `":" cannot be in a header's name`},
		{"{header.Ä}", `"Ä" cannot be in a header's name`},
		{"{query}", "query needs a name: write {query.id}"},
		{`{query["a"}`, `column 11: write "]" behind the quoted name`},
		{`{query["a"]x}`, `column 12: unexpected "x": write "??" or "}"`},
		{`{query["a]}`, `column 8: the quote is not closed`},
		{"{path.a b}", `column 9: unexpected "b": write "??" between two sources, or "}"`},
		{"{path.a é}", `column 9: unexpected "é"`},
		{"{body}", "column 2: body needs a member: write {body.id}, or {body_sha256} for the whole body"},
		{"{body.}", `column 7: a member's name is missing behind ".": write body.id, or body["odd name"]`},
		{"{body.a..b}", "column 9: a member's name is missing"},
		{"{body.a[*]}", `column 8: "*" is no index: write a number such as [0], or quote a name as ["name"]`},
		{"{body.a[-1]}", `"-1" is no index`},
		{"{body.a[x]}", `"x" is no index`},
		{"{body.a[0}", `"[" is not closed`},
		{"{body.a[99999999999]}", "is no index"},
		{"{body[0]x}", `column 9: unexpected "x": write ".member" or "[0]"`},
		{"{route.x}", "column 2: route has no parts: write {route}"},
		{`{"a" ?? body.id}`,
			"column 6: a quoted text is never missing, so nothing behind it is ever used: put it last"},
		{`{body.id ?? ""}`, "column 13: a quoted text needs 1 to 512 bytes"},
		{`{"a\n"}`, `column 4: a backslash in quotes: write \\, or \" for a quote`},
		{"{\"a\nb\"}", `control character '\n'`},
		{"a\tb", `column 2: control character '\t': leave it out`},
		{"\xff", "the template is not UTF-8"},
		{strings.Repeat("x", maxTemplate+1), "longer than 4096 bytes"},
		{strings.Repeat("{route}", maxSources+1), "column 226: more than 32 sources: write fewer"},
		{"{body" + strings.Repeat("[0]", maxDepth+1) + "}", "more than 300 steps"},
	} {
		_, err := CompileTemplate(tt.template)
		var bad *TemplateError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60q: %v\nwant %s", tt.template, err, tt.want)
		}
	}
}

func TestListsTheSourcesOfATemplate(t *testing.T) {
	tpl, err := CompileTemplate(`é/{ path.account }/{header.X-Id??body.a["b.c"][0] ?? "none"}{{{fingerprint}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Source{
		{SourcePath, "account", "path.account", 5},
		{SourceHeader, "X-Id", "header.X-Id", 21},
		{SourceBody, `a["b.c"][0]`, `body.a["b.c"][0]`, 34},
		{SourceLiteral, "none", `"none"`, 54},
		{SourceFingerprint, "", "fingerprint", 64},
	}
	if got := tpl.Sources(); !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v", got)
	}
	if !strings.HasPrefix(tpl.String(), "é/{ path") {
		t.Fatal(tpl.String())
	}
}

func TestKnowsTemplatesThatNameAllDeliveriesAlike(t *testing.T) {
	for _, tt := range []struct {
		template string
		constant bool
	}{
		{"w", true},
		{"{route}/{method}@{host}", true},
		{"{body.id}", false},
		{`{body.id ?? "none"}`, false},
		{"{body.id ?? route}", false},
		{`{body.id ?? "none"}-{header.A}`, false},
		{"{fingerprint}", false},
		{"{body_sha256}", false},
	} {
		tpl, err := CompileTemplate(tt.template)
		if err != nil {
			t.Fatal(err)
		}
		if tpl.Constant() != tt.constant {
			t.Errorf("%s: constant %v", tt.template, tpl.Constant())
		}
	}
}

func FuzzCompileTemplate(f *testing.F) {
	for _, s := range []string{"", "{route}", "a{{b}}{path.x ?? query.y??\"z\"}", `{body.a["b\"c"][0].d}`,
		"{headers.X}", "{?", `{"`, "{body[", "{é}"} {
		f.Add(s)
	}
	m := &Message{Method: []byte("POST"), Host: []byte("h"), Body: []byte(`{"a":{"b":[1]}}`)}
	f.Fuzz(func(t *testing.T, text string) {
		tpl, err := CompileTemplate(text)
		if err != nil {
			var bad *TemplateError
			if !errors.As(err, &bad) || bad.Column < 1 || bad.Problem == "" {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		for _, s := range tpl.Sources() {
			if s.Text == "" || !strings.HasPrefix(string([]rune(text)[s.Column-1:]), s.Text) {
				t.Fatalf("%q: %+v is not at its column", text, s)
			}
		}
		m.scratch.beginDelivery("r")
		parts, failed := tpl.readParts(m, nil)
		if failed == nil && len(parts) == 0 {
			t.Fatalf("%q: no parts", text)
		}
		for _, p := range parts {
			if len(p.value) == 0 {
				t.Fatalf("%q: an empty part", text)
			}
		}
	})
}
