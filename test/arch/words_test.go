package arch

import (
	"slices"
	"strings"
	"testing"
)

func TestNoLineIsWiderThanAScreen(t *testing.T) {
	_, sources := project(t)
	for _, s := range sources {
		for _, p := range s.Wide() {
			t.Error(p)
		}
	}
}

func TestWhatActsIsNamedAfterWhatItDoes(t *testing.T) {
	_, sources := project(t)
	for _, s := range sources {
		for _, p := range s.Participles() {
			t.Error(p)
		}
	}
}

func TestAFunctionSaysWhatItIsAbout(t *testing.T) {
	_, sources := project(t)
	for _, s := range sources {
		for _, p := range s.BareNames() {
			t.Error(p)
		}
	}
}

func TestAWordHasOneMeaning(t *testing.T) {
	_, sources := project(t)
	for _, s := range sources {
		for _, p := range s.Meanings() {
			t.Error(p)
		}
	}
}

func TestAFileIsFoundByItsName(t *testing.T) {
	packages, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	_, sources := project(t)
	for _, p := range Namesakes(packages, sources) {
		t.Error(p)
	}
}

func TestWordsThatMisleadAreFound(t *testing.T) {
	long := strings.Repeat("x", 130)
	for _, c := range []struct {
		name, path, text, want string
	}{
		{"wide code", "proxy/wire/a.go", "package wire\nvar a = " + long, "2: 138 columns wide, at most 120"},
		{"a wide comment", "proxy/wire/a.go", "package wire\n// a " + long[:100], "columns wide, at most 100"},
		{"a wide address", "proxy/wire/a.go", "package wire\n// " + long[:100], ""},
		{"wide text", "proxy/wire/a.go", "package wire\nvar a = `" + long + "`", ""},
		{"a wide string", "proxy/wire/a.go", "package wire\nvar a = \"" + long + "\"", "columns wide"},
		{"a wide string of a test", "proxy/wire/a_test.go", "package wire\nvar a = \"" + long + "\"", ""},
		{"a participle", "proxy/wire/a.go", "package wire\nfunc (p *pump) finished() {}", "finished returns nothing"},
		{"a past tense", "proxy/wire/a.go", "package wire\nfunc Told(x int) {}", "Told returns nothing"},
		{"a participle that waits", "proxy/wire/a.go",
			"package wire\nfunc (p *pump) found(ctx context.Context) error { return nil }", "found takes a context"},
		{"a participle that fails", "proxy/wire/a.go",
			"package wire\nfunc (p *pump) allowed(x int) error { return nil }", "allowed returns an error"},
		{"an error for an error", "proxy/wire/a.go", "package wire\nfunc callFailed(err error) error { return nil }", ""},
		{"a participle that changes", "proxy/wire/a.go",
			"package wire\nfunc (p *pump) seenAt() int { p.a.b[1]++; return 0 }", "seenAt changes its receiver"},
		{"a participle that changes a parameter", "proxy/wire/a.go",
			"package wire\nfunc filled(m map[int]int) int { m[1] = 2; return 0 }", "filled changes its receiver or a"},
		{"a participle that changes a copy", "proxy/wire/a.go",
			"package wire\nfunc (p pump) sizedPump() pump { p.a = 1; return p }", ""},
		{"a value with an adjective", "proxy/wire/a.go",
			"package wire\nfunc knownRoutes(ctx context.Context) error { return nil }", ""},
		{"a question", "proxy/wire/a.go", "package wire\nfunc hasEnded() bool { return true }", ""},
		{"a callback", "proxy/wire/a.go", "package wire\nfunc OnEnded() {}", ""},
		{"a verb in -ed", "proxy/wire/a.go", "package wire\nfunc embedAll() {}", ""},
		{"a bare word", "proxy/wire/a.go", "package wire\nfunc whole() error { return nil }", "whole is one word"},
		{"a known verb", "proxy/wire/a.go", "package wire\nfunc (p *pump) close() error { return nil }", ""},
		{"a word without a type", "idem/a.go", "package idem\ntype Held struct{}", "Held has one meaning"},
		{"a word elsewhere", "proxy/a.go", "package proxy\ntype Obstacle struct{}", "Obstacle has one meaning"},
		{"a word at home", "idem/a.go", "package idem\ntype Obstacle struct{}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parsed(t, c.path, c.text)
			got := strings.Join(slices.Concat(s.Wide(), s.Participles(), s.BareNames(), s.Meanings()), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	same := []Package{{ImportPath: "hooklock/a", Imports: []string{"hooklock/b"}}, {ImportPath: "hooklock/b"}}
	var files []*Source
	for _, file := range []string{"a/doc.go", "a/x.go", "a/y.go", "b/doc.go", "b/x.go", "b/z.go"} {
		files = append(files, parsed(t, file, "package p"))
	}
	if got := Namesakes(same, files); len(got) != 1 || !strings.Contains(got[0], "file x.go") {
		t.Errorf("files of one name: %q", got)
	}
}
