package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sassoftware/go-rpmutils"

	"hooklock/deploy/tools/dist"
)

const (
	version = "v0.0.0-test.1"
	deb     = "hooklock_0.0.0.test.1_amd64.deb"
	rpm     = "hooklock-0.0.0.test.1-1.x86_64.rpm"
)

// in is where everything belongs, with its mode; deb and rpm differ in zsh's folder alone.
func in(zsh string) map[string]string {
	files := map[string]string{
		"/usr/bin/hooklock":                                         "0755",
		"/etc/hooklock/sidecar.yaml":                                "0644",
		"/usr/lib/systemd/system/hooklock.service":                  "0644",
		"/usr/lib/systemd/system/hooklock.socket":                   "0644",
		"/usr/lib/systemd/system/hooklock@.service":                 "0644",
		"/usr/lib/systemd/system/hooklock@.service.d/instance.conf": "0644",
		"/usr/lib/sysusers.d/hooklock.conf":                         "0644",
		"/usr/share/man/man1/hooklock.1.gz":                         "0644",
		"/usr/share/man/man1/hooklock-serve.1.gz":                   "0644",
		"/usr/share/bash-completion/completions/hooklock":           "0644",
		"/usr/share/fish/vendor_completions.d/hooklock.fish":        "0644",
		"/usr/share/doc/hooklock/THIRD-PARTY.txt":                   "0644",
	}
	files[zsh] = "0644"
	return files
}

func TestPackages(t *testing.T) {
	s, err := dist.NewSource(version)
	if err != nil {
		t.Fatal(err)
	}
	s.Epoch = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	made := func() map[string][]byte {
		t.Helper()
		out := t.TempDir()
		if err := packages(s, "", "Somebody <somebody@example.com>", out); err != nil {
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
		return files
	}
	first := made()
	want := []string{dist.Sums, deb, rpm, strings.Replace(deb, "amd64", "arm64", 1),
		strings.Replace(rpm, "x86_64", "aarch64", 1)}
	for _, name := range want[1:] {
		want = append(want, name+".cdx.json", name+".intoto.json")
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(first)); !slices.Equal(got, want) {
		t.Fatalf("got %v", got)
	}
	second := made()
	for _, name := range want {
		if !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s is different the second time", name)
		}
	}
	t.Run("deb", func(t *testing.T) { lookIntoDeb(t, first[deb]) })
	t.Run("rpm", func(t *testing.T) { lookIntoRPM(t, first[rpm]) })
	t.Run("rpm by its own tools", func(t *testing.T) { lookWithRPM(t, first[rpm]) })
}

// output runs a program of the system that shows what is in a package.
func output(t *testing.T, name, pkg string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (Debian: %s)", name, pkg)
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func lookIntoDeb(t *testing.T, content []byte) {
	path := write(t, deb, content)
	fields := output(t, "dpkg-deb", "dpkg", "-f", path)
	for _, field := range []string{"Package: hooklock", "Version: 0.0.0.test.1", "Architecture: amd64",
		"Maintainer: Somebody <somebody@example.com>"} {
		if !strings.Contains(fields, field+"\n") {
			t.Errorf("no %q in\n%s", field, fields)
		}
	}
	dir := t.TempDir()
	output(t, "dpkg-deb", "dpkg", "-R", path, dir)
	for file, mode := range in("/usr/share/zsh/vendor-completions/_hooklock") {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil || fmt.Sprintf("%#o", info.Mode().Perm()) != mode || info.Size() == 0 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "DEBIAN/conffiles")); err != nil ||
		string(text) != "/etc/hooklock/sidecar.yaml\n" {
		t.Errorf("conffiles %q, %v", text, err)
	}
	if said := output(t, filepath.Join(dir, "usr/bin/hooklock"), "", "version"); !strings.HasPrefix(said,
		"hooklock "+version+" ") {
		t.Errorf("hooklock version: %s", said)
	}
	output(t, filepath.Join(dir, "usr/bin/hooklock"), "", "validate", "--config",
		filepath.Join(dir, "etc/hooklock/sidecar.yaml"))
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		output(t, "sh", "dash", "-n", filepath.Join(dir, "DEBIAN", script))
	}
	t.Run("manual", func(t *testing.T) {
		page := output(t, "man", "man-db", "--warnings", "-l",
			filepath.Join(dir, "usr/share/man/man1/hooklock-doctor.1.gz"))
		if !strings.Contains(page, "hooklock doctor --config sidecar.yaml") || !strings.Contains(page, "Jan 2026") {
			t.Errorf("got\n%s", page)
		}
	})
	t.Run("completion", func(t *testing.T) {
		output(t, "bash", "bash", "-n", filepath.Join(dir, "usr/share/bash-completion/completions/hooklock"))
	})
}

func lookIntoRPM(t *testing.T, content []byte) {
	t.Helper()
	r, err := rpmutils.ReadRpm(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[int]string{rpmutils.NAME: "hooklock", rpmutils.VERSION: "0.0.0.test.1",
		rpmutils.ARCH: "x86_64", 1007: "localhost"} {
		if got, err := r.Header.GetString(tag); err != nil || got != want {
			t.Errorf("tag %d is %q, %v; want %q", tag, got, err, want)
		}
	}
	files, err := r.Header.GetFiles()
	if err != nil {
		t.Fatal(err)
	}
	const config, noReplace = 1, 16 // RPMFILE_CONFIG, RPMFILE_NOREPLACE
	found := map[string]string{}
	for _, f := range files {
		found[f.Name()] = fmt.Sprintf("%#o", f.Mode()&0o7777)
		kept := f.Flags()&(config|noReplace) == config|noReplace
		if kept != (f.Name() == "/etc/hooklock/sidecar.yaml") {
			t.Errorf("%s is kept at an upgrade: %v", f.Name(), kept)
		}
	}
	for file, mode := range in("/usr/share/zsh/site-functions/_hooklock") {
		if found[file] != mode {
			t.Errorf("%s has mode %q, want %s", file, found[file], mode)
		}
	}
	payload, err := r.PayloadReaderExtended()
	if err != nil {
		t.Fatal(err)
	}
	for {
		f, err := payload.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, payload); err != nil || n != f.Size() {
			t.Errorf("%s: %d bytes, %v", f.Name(), n, err)
		}
	}
}

func lookWithRPM(t *testing.T, content []byte) {
	path := write(t, rpm, content)
	if said := output(t, "rpm", "rpm", "-K", "--nosignature", path); !strings.Contains(said, "OK") {
		t.Errorf("got %s", said)
	}
	scripts := output(t, "rpm", "rpm", "-qp", "--scripts", "--nosignature", path)
	for _, script := range []string{"postinstall", "preuninstall", "postuninstall"} {
		if !strings.Contains(scripts, script+" scriptlet") {
			t.Errorf("no %s in\n%s", script, scripts)
		}
	}
}

func TestAVersionThatIsNoReleaseSortsBelowAllReleases(t *testing.T) {
	for version, want := range map[string]string{"v1.2.3": "1.2.3", "v1.2.3-4-gabc": "1.2.3.4.gabc",
		"4cdda64-dirty": "0~4cdda64.dirty", "dev": "0~dev"} {
		if got := packageVersion(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
}

// The scripts run as root on machines of others: what they call is looked at.
func TestScriptsCallWhatTheyShould(t *testing.T) {
	s, err := dist.NewSource(version)
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, name := range []string{"systemctl", "systemd-sysusers"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho "+name+" \"$@\"\n"),
			0o700); err != nil {
			t.Fatal(err)
		}
	}
	sysusers, reload := "systemd-sysusers hooklock.conf\n", "systemctl daemon-reload\n"
	restart, disable := "systemctl try-restart hooklock.service hooklock@*.service\n",
		"systemctl stop hooklock.socket hooklock@*.service\n"+
			"systemctl disable hooklock.socket hooklock@.service\nsystemctl disable --now hooklock.service\n"
	for _, c := range []struct {
		script string
		args   []string
		want   string
	}{
		{"postinstall.sh", []string{"configure"}, sysusers + reload},
		{"postinstall.sh", []string{"configure", "1.0"}, sysusers + reload + restart},
		{"postinstall.sh", []string{"1"}, sysusers + reload},
		{"postinstall.sh", []string{"2"}, sysusers + reload + restart},
		{"preremove.sh", []string{"remove"}, disable},
		{"preremove.sh", []string{"upgrade", "2.0"}, ""},
		{"preremove.sh", []string{"0"}, disable},
		{"preremove.sh", []string{"1"}, ""},
		{"postremove.sh", []string{"purge"}, reload},
	} {
		text, err := os.ReadFile(filepath.Join(s.Root, "deploy/packages", c.script))
		if err != nil {
			t.Fatal(err)
		}
		// as if systemd ran
		path := write(t, c.script, bytes.ReplaceAll(text, []byte("/run/systemd/system"), []byte(bin)))
		cmd := exec.Command("sh", append([]string{path}, c.args...)...)
		cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin"}
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != c.want {
			t.Errorf("%s %v: %q, %v; want %q", c.script, c.args, out, err, c.want)
		}
	}
}
