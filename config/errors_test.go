package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGolden loads each testdata/*.yaml and compares what it says with the .txt beside it:
// problems, or warnings where there are none. Lines "#env NAME=value" at the top are its
// environment.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata")
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			src := Source{Path: "sidecar.yaml", Bytes: text}
			for line := range strings.Lines(string(text)) {
				if variable, found := strings.CutPrefix(strings.TrimSpace(line), "#env "); found {
					src.Env = append(src.Env, variable)
				}
			}
			var got string
			if loaded, err := Load(src); err != nil {
				got = "problems:\n" + err.Error() + "\n"
			} else {
				got = "warnings:\n" + loaded.Warnings.Error() + "\n"
			}
			golden := strings.TrimSuffix(name, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
