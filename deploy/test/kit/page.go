package kit

import (
	"path/filepath"
	"strings"
	"testing"
)

// Fenced is the text between ```language and ``` that stands in a page of the project after the
// text mark.
func Fenced(t *testing.T, page, mark, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(Read(t, filepath.Join(Root(), filepath.FromSlash(page))), mark)
	_, rest, opened := strings.Cut(rest, "```"+language+"\n")
	text, _, closed := strings.Cut(rest, "```\n")
	if !found || !opened || !closed {
		t.Fatalf("%s: nothing in %s after %q", page, language, mark)
	}
	return text
}
