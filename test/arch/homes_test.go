package arch

import (
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
	got := strings.Join(Strays([]*Source{home, parse("config/senders.go", "package config\nvar x = []string{\"acme\"}")}), "\n")
	if !strings.Contains(got, "config/senders.go:2: names acme, which lives in proxy/sender/acme.go") {
		t.Errorf("got %q", got)
	}
	if got := Strays([]*Source{home, parse("config/senders_test.go", "package config\nvar x = \"acme\"")}); len(got) > 0 {
		t.Errorf("a test may name a sender: %q", got)
	}
}
