package docs

import (
	"regexp"
	"testing"

	"hooklock/test/testkit"
)

func TestNoLineOfProseIsWiderThanAReaderTakes(t *testing.T) {
	for name, page := range pages(t) {
		for _, line := range testkit.TooWide(page) {
			t.Errorf("%s: wider than %d characters: %.60s…", name, testkit.Widest, line)
		}
	}
}

func TestEachHeadingHasSomethingBelowIt(t *testing.T) {
	empty := regexp.MustCompile(`(?m)^(##+ .+)\n+(?:## |\z)`)
	for name, page := range pages(t) {
		for _, m := range empty.FindAllStringSubmatch(page, -1) {
			t.Errorf("%s: nothing is below %q", name, m[1])
		}
	}
}
