package admin

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestProcessesThatStartTogetherAgreeOnOneToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var all sync.WaitGroup
	tokens := make([]string, 20)
	for i := range tokens {
		all.Go(func() {
			token, err := LocalToken(dir)
			if err != nil {
				t.Error(err)
			}
			tokens[i] = token
		})
	}
	all.Wait()
	for _, token := range tokens {
		if token != tokens[0] || len(token) < 40 {
			t.Fatalf("tokens %q", tokens)
		}
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, TokenFile): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	if other, err := LocalToken(t.TempDir()); err != nil || other == tokens[0] {
		t.Errorf("another folder has %q %v", other, err)
	}
}

func TestATokenThatOthersMayKnowIsNotTaken(t *testing.T) {
	good := strings.Repeat("x", 43)
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		says string
	}{
		"for the owner":            {good + "\n", 0o600, ""},
		"read-only":                {good, 0o400, ""},
		"the group of a volume":    {good, 0o660, ""},
		"for everybody":            {good, 0o644, "others may know"},
		"everybody may write":      {good, 0o602, "others may know"},
		"empty":                    {"", 0o600, "holds no token"},
		"cut off":                  {"hooklock_ab\n", 0o600, "holds no token"},
		"what no header can carry": {good + "\nsecond line", 0o600, "holds no token"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, TokenFile)
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			token, err := LocalToken(dir)
			if c.says == "" && (err != nil || token != good) {
				t.Errorf("%q %v", token, err)
			}
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) ||
				strings.Contains(err.Error(), good)) {
				t.Errorf("%q %v", token, err)
			}
			if info, _ := os.Stat(path); c.says == "" && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("mode %v stays", info.Mode())
			}
		})
	}
	dir := t.TempDir()
	elsewhere := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(elsewhere, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, TokenFile)); err != nil {
		t.Fatal(err)
	}
	if token, err := LocalToken(dir); err == nil {
		t.Errorf("a link was followed: %q", token)
	}
}
