package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hooklock/deploy/tools/dist"
)

const version = "v0.0.0-test.1"

var epoch = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)

// checkout is where this test runs.
func checkout(t *testing.T) dist.Source {
	t.Helper()
	s, err := dist.NewSource(version)
	if err != nil {
		t.Fatal(err)
	}
	s.Epoch = epoch
	return s
}

// elsewhere is a copy of the checkout in another folder, without history and without what was
// built.
func elsewhere(t *testing.T, s dist.Source) dist.Source {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "another", "folder")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(s.Root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(s.Root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (rel == ".git" || rel == "bin"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(dir, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(filepath.Join(dir, rel), text, 0o644))
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Root = dir
	return s
}

// made is a folder of a release: the content of each file.
func made(t *testing.T, s dist.Source) (map[string][]byte, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "release")
	if err := run(s, out); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(out, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files, out
}

func TestAReleaseHasTheSameBytesFromEveryFolder(t *testing.T) {
	s := checkout(t)
	first, out := made(t, s)
	want := []string{dist.Sums}
	for _, target := range dist.Targets {
		name := "hooklock_" + version + "_" + target.String()
		want = append(want, name+".cdx.json", name+".tar.gz", name+".tar.gz.intoto.json")
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(first)); !slices.Equal(got, want) {
		t.Fatalf("got %v", got)
	}
	if sha256sum, err := exec.LookPath("sha256sum"); err == nil {
		cmd := exec.Command(sha256sum, "-c", dist.Sums)
		cmd.Dir = out
		if text, err := cmd.CombinedOutput(); err != nil || bytes.Count(text, []byte(": OK\n")) != len(want)-1 {
			t.Errorf("sha256sum -c: %v\n%s", err, text)
		}
	} else {
		t.Log("skipped: sha256sum is not installed, so nobody else reads SHA256SUMS")
	}
	second, _ := made(t, elsewhere(t, s))
	for _, name := range want {
		if !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s is different when it is made in another folder", name)
		}
	}
	for _, target := range dist.Targets {
		t.Run(target.String(), func(t *testing.T) {
			looksRight(t, s, target, first["hooklock_"+version+"_"+target.String()+".tar.gz"])
			validBOM(t, target, first["hooklock_"+version+"_"+target.String()+".cdx.json"])
		})
	}
}

// looksRight opens an archive.
func looksRight(t *testing.T, s dist.Source, target dist.Target, archive []byte) {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	prefix := "hooklock_" + version + "_" + target.String() + "/"
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name, below := strings.CutPrefix(h.Name, prefix)
		executable := h.Mode == 0o755
		if !below || !h.ModTime.Equal(epoch) || h.Uid != 0 || executable != (name == "hooklock") {
			t.Errorf("%+v", h)
		}
		if files[name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		"hooklock", "README.md", "CHANGELOG.md", "sidecar.yaml", "THIRD-PARTY.txt", "man/hooklock.1",
		"man/hooklock-serve.1",
		"completions/hooklock.bash", "completions/_hooklock", "completions/hooklock.fish", "completions/hooklock.ps1",
	} {
		if len(files[name]) == 0 {
			t.Errorf("%s is not there", name)
		}
	}
	if has := len(files["systemd/hooklock.service"]) > 0; has != (target.OS == "linux") {
		t.Errorf("a systemd unit: %v", has)
	}
	for _, place := range []string{s.Root, os.Getenv("HOME") + "/"} {
		if bytes.Contains(files["hooklock"], []byte(place)) {
			t.Errorf("the program names %s", place)
		}
	}
	if target.OS == "linux" {
		isStatic(t, files["hooklock"])
	}
	if target == dist.Host() {
		program := filepath.Join(t.TempDir(), "hooklock")
		if err := os.WriteFile(program, files["hooklock"], 0o700); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.Command(program, "version").Output(); err != nil ||
			!strings.HasPrefix(string(said), "hooklock "+version+" ") {
			t.Errorf("hooklock version: %q, %v", said, err)
		}
	}
}

func isStatic(t *testing.T, program []byte) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Error("the program wants a dynamic linker")
		}
	}
}

// What Go's cache remembers of a build is not built again; this looks behind it.
func TestAProgramThatIsBuiltFromNothingHasTheSameBytes(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped by -short: it compiles everything, the standard library included")
	}
	s := checkout(t)
	dir := t.TempDir()
	read := func(s dist.Source, name string) []byte {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := s.Build(dist.Host(), path); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := read(s, "first")
	t.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -a")
	if !bytes.Equal(first, read(elsewhere(t, s), "second")) {
		t.Error("it is different")
	}
}
