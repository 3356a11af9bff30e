package docs

import (
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
