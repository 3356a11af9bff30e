package docs

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEachPictureIsDrawnFromTheTextBesideIt needs no graphviz: a picture carries the hash of its
// text.
func TestEachPictureIsDrawnFromTheTextBesideIt(t *testing.T) {
	sources, err := filepath.Glob("../../docs/pictures/*.dot")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no pictures: %v", err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		picture, err := os.ReadFile(strings.TrimSuffix(source, ".dot") + ".svg")
		if err != nil {
			t.Errorf("%v: run make pictures", err)
			continue
		}
		hash := sha256.Sum256(text)
		if mark := filepath.Base(source) + " " + hex.EncodeToString(hash[:])[:16]; !strings.Contains(string(picture),
			mark) {
			t.Errorf("%s was changed and not drawn again: run make pictures", source)
		}
		if !strings.Contains(string(picture), "prefers-color-scheme:dark") {
			t.Errorf("the picture of %s cannot be read in the dark", source)
		}
	}
}
