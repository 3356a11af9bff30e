package arch

import (
	"slices"
	"strings"
	"testing"
)

func TestASenderIsOneFile(t *testing.T) {
	_, sources := project(t)
	senders := 0
	for _, s := range sources {
		senders += len(s.senders())
	}
	if senders < 22 {
		t.Fatalf("found %d senders: this test looks in the wrong place", senders)
	}
	for _, p := range Strays(sources) {
		t.Error(p)
	}
}

func TestASenderThatIsNamedInASecondPlaceIsFound(t *testing.T) {
	parse := func(path, text string) *Source {
		s, err := Parse(path, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	home := parse("proxy/sender/acme.go", `package sender
func (known) Acme() Preset { return Preset{Name: "acme", Page: Page{Title: "Acme"}} }`)
	got := strings.Join(Strays([]*Source{home,
		parse("config/senders.go", "package config\nvar x = []string{\"acme\"}")}), "\n")
	if !strings.Contains(got, "config/senders.go:2: names acme, which lives in proxy/sender/acme.go") {
		t.Errorf("got %q", got)
	}
	if got := Strays([]*Source{home, parse("config/senders_test.go", "package config\nvar x = \"acme\"")}); len(
		got) > 0 {
		t.Errorf("a test may name a sender: %q", got)
	}
}

func TestADecisionIsOneRow(t *testing.T) {
	_, sources := project(t)
	codes := 0
	for _, s := range sources {
		if slices.Contains(decisionHomes, s.Path) {
			codes += len(s.codes())
		}
	}
	if codes < 21+16+14 { // decisions, their codes, and those of rejections
		t.Fatalf("found %d decisions and codes: this test looks in the wrong place", codes)
	}
	for _, p := range Decided(sources) {
		t.Error(p)
	}
}

func TestADecisionThatIsSpelledInASecondPlaceIsFound(t *testing.T) {
	parse := func(path, text string) *Source {
		s, err := Parse(path, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	home := parse("idem/decisions.go", `package idem
const DecisionLate Decision = "late"
var decisions = [...]DecisionRow{{Decision: DecisionLate, Code: "too_late", Effect: "no"}}`)
	for text, want := range map[string]string{
		`package config; var x = []string{"late"}`:                   "config/x.go:1: names late, which lives in idem/decisions.go",
		`package config; func f() string { return "too_" + "late" }`: "names late",
		`package config; var x = map[string]int{"too_late": 1}`:      "names too_late",
		`package config; var x = "no"`:                               "",
	} {
		got := strings.Join(Decided([]*Source{home, parse("config/x.go", text)}), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	for _, path := range []string{"config/x_test.go", "admin/problem_kinds.go", "test/bench/load.go"} {
		if got := Decided([]*Source{home, parse(path, `package x; var x = "late"`)}); len(got) > 0 {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func parsed(t *testing.T, path, text string) *Source {
	t.Helper()
	s, err := Parse(path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAFieldOfAnExecutionIsNamedOnce(t *testing.T) {
	_, sources := project(t)
	for _, l := range layouts {
		n := 0
		for _, s := range sources {
			n += len(l.fields(s))
		}
		if n < 10 {
			t.Fatalf("found %d fields of %+v: this test looks in the wrong place", n, l)
		}
	}
	for _, p := range Copies(sources) {
		t.Error(p)
	}
}

func TestAFieldOfAnExecutionInASecondPlaceIsFound(t *testing.T) {
	home := parsed(t, "idem/record.go", `package idem
type ExecutionFacts struct { Execution string `+"`json:\"executionId\"`"+`; Attempt int `+"`json:\"attempt\"`"+` }
type Attempt struct { Execution string `+"`json:\"executionId\"`"+` }`)
	for name, c := range map[string]struct{ path, text, want string }{
		"a struct that is encoded instead": {
			"etcdlock/protocol/value.go", "type lockValue struct {\n\tTries int `json:\"attempt,omitempty\"`\n}",
			"etcdlock/protocol/value.go:3: names attempt, a field of an execution that idem.ExecutionFacts has",
		},
		"a struct without a name": {"admin/views.go", "var v struct { Attempt int `json:\"attempt\"` }",
			"admin/views.go:2: names attempt"},
		"the record again": {"idem/other.go", "type Record struct { Attempt int `json:\"attempt\"` }",
			"idem/other.go:2: names attempt, which idem.ExecutionFacts has"},
		"a reference": {"proxy/respond.go",
			"type answer struct { Execution string `json:\"executionId\"` }", ""},
		"the API's own": {"admin/client/execution.go",
			"type Execution struct { Attempt int `json:\"attempt\"` }", ""},
		"a test": {"admin/views_test.go", "var v struct { Attempt int `json:\"attempt\"` }", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(Copies([]*Source{home, parsed(t, c.path, "package p\n"+c.text)}), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
