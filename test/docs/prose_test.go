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

// Markdown ends a table at a blank line, and shows the rows after it as text with bars.
func TestATableIsInOnePiece(t *testing.T) {
	code := regexp.MustCompile("(?ms)^ *```.*?^ *```")
	parted := regexp.MustCompile(`(?m)^\|.*\n\n+(\|.*)\n(\|.*)?`)
	rule := regexp.MustCompile(`^\|[ :|-]+\|$`)
	for name, page := range pages(t) {
		for _, m := range parted.FindAllStringSubmatch(code.ReplaceAllString(page, ""), -1) {
			if !rule.MatchString(m[2]) {
				t.Errorf("%s: a blank line cuts this row off its table: %.60s…", name, m[1])
			}
		}
	}
}
