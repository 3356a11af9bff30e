package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLookSaysWhatIsThereAndChangesNothing(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "data", "etcd")
	s, err := Look(dir)
	if err != nil || s.Exists || s.Size != 0 || s.Free <= 0 {
		t.Errorf("before: %+v %v", s, err)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
		t.Errorf("it left %v %v", left, err)
	}
	server := startIn(t, dir)
	if s, err = Look(dir); !errors.Is(err, ErrInUse) || !s.Exists || s.Size == 0 {
		t.Errorf("in use: %+v %v", s, err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Look(dir); err != nil || s.Size == 0 {
		t.Errorf("after: %+v %v", s, err)
	}
	startIn(t, dir) // and it can be used
}

func TestLookRefusesWhatStartWould(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if _, err := Look(dir); err == nil || !strings.Contains(err.Error(), "data_dir") {
			t.Errorf("%s: got %v", dir, err)
		}
	}
	if os.Getuid() == 0 {
		return // root may write everywhere
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := Look(filepath.Join(closed, "etcd")); err == nil || !strings.Contains(err.Error(), "data_dir") {
		t.Errorf("got %v", err)
	}
}

func TestLookFindsADatabaseThatWasCutShort(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := startIn(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "member", "snap", "db"), 8192); err != nil {
		t.Fatal(err)
	}
	if _, err := Look(dir); err == nil || !strings.Contains(err.Error(), "hooklock embedded restore") {
		t.Errorf("got %v", err)
	}
}
