package checks

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"hooklock/deploy/tools/dist"
)

func checkout(t *testing.T) dist.Source {
	t.Helper()
	s, err := dist.NewSource("v0.0.0-test.1")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tool is a program of the system; without it the test is skipped.
func tool(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (Debian: %s)", name, pkg)
	}
	return path
}

// setting is the value of a setting of the unit, which must be there once.
func setting(t *testing.T, unit, name string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(unit, -1)
	if len(found) != 1 {
		t.Fatalf("%s is there %d times", name, len(found))
	}
	return found[0][1]
}

func TestTheUnitIsHardened(t *testing.T) {
	analyze := tool(t, "systemd-analyze", "systemd")
	out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager",
		filepath.Join(checkout(t).Root, "deploy/systemd/hooklock.service")).CombinedOutput()
	m := regexp.MustCompile(`Overall exposure level for hooklock.service: ([0-9.]+)`).FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if exposure, err := strconv.ParseFloat(string(m[1]), 64); err != nil || exposure > 2.0 {
		t.Errorf("exposure %s, more than 2.0:\n%s", m[1], out)
	}
}

// verified is what systemd says of a unit; nothing, if it understands all of it.
func verified(t *testing.T, unit string) string {
	t.Helper()
	analyze := tool(t, "systemd-analyze", "systemd")
	dir := t.TempDir()
	unit = strings.ReplaceAll(unit, "/usr/bin/hooklock", "/bin/true")               // must be there
	unit = regexp.MustCompile(`(?m)^Documentation=.*\n`).ReplaceAllString(unit, "") // so must the page
	path := filepath.Join(dir, "hooklock.service")
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--no-pager", path).CombinedOutput()
	if err != nil {
		return err.Error() + "\n" + string(out)
	}
	return string(out)
}

func TestSystemdUnderstandsTheUnit(t *testing.T) {
	s := checkout(t)
	unit := read(t, filepath.Join(s.Root, "deploy/systemd/hooklock.service"))
	if said := verified(t, unit); said != "" {
		t.Error(said)
	}
	if said := verified(t, strings.Replace(unit, "WatchdogSec=", "WatchdogSecs=", 1)); said == "" {
		t.Error("a misspelt setting was understood")
	}
}

// The socket and the instances are checked as systemd reads them, with the unit beside them: it has
// to find what each refers to.
func TestSystemdUnderstandsTheSocketAndTheInstances(t *testing.T) {
	analyze := tool(t, "systemd-analyze", "systemd")
	from, dir := filepath.Join(checkout(t).Root, "deploy/systemd"), t.TempDir()
	unit := strings.ReplaceAll(read(t, filepath.Join(from, "hooklock.service")), "/usr/bin/hooklock", "/bin/true")
	files := map[string]string{
		"hooklock.socket": read(t, filepath.Join(from, "hooklock.socket")), "hooklock.service": unit,
		"hooklock@.service":                     unit,
		"hooklock@8079.service.d/instance.conf": read(t, filepath.Join(from, "instance.conf")),
	}
	for name, text := range files {
		text = regexp.MustCompile(`(?m)^Documentation=.*\n`).ReplaceAllString(text, "")
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"hooklock.socket", "hooklock@8079.service"} {
		cmd := exec.Command(analyze, "verify", "--no-pager", filepath.Join(dir, name))
		cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestTheUnitStartsWhatThePackagesInstall(t *testing.T) {
	s := checkout(t)
	unit, config := read(t, filepath.Join(s.Root, "deploy/systemd/hooklock.service")),
		read(t, filepath.Join(s.Root, "deploy/packages/nfpm.yaml"))
	program, args, _ := strings.Cut(setting(t, unit, "ExecStart"), " ")
	_, file, _ := strings.Cut(args, "--config ")
	for _, path := range []string{program, file} {
		if !strings.Contains(config, "dst: "+path+",") {
			t.Errorf("the packages do not have %s", path)
		}
	}
	if setting(t, unit, "Type") != "notify" || setting(t, unit, "WatchdogSec") == "" ||
		setting(t, unit, "RestartPreventExitStatus") != "78" {
		t.Error("type, watchdog, or the end after a bad configuration")
	}
	user := setting(t, unit, "User")
	if sysusers := read(t, filepath.Join(s.Root, "deploy/systemd/hooklock.sysusers")); !strings.Contains(sysusers,
		"u "+user+" ") {
		t.Errorf("nobody makes the user %s", user)
	}
	data := read(t, filepath.Join(s.Root, "deploy/packages/sidecar.yaml"))
	if dir := "/var/lib/" + setting(t, unit, "StateDirectory"); !strings.Contains(data, "data_dir: "+dir+"\n") ||
		setting(t, unit, "WorkingDirectory") != dir {
		t.Errorf("data_dir is not %s", dir)
	}
}

func TestSysusersMakesTheUser(t *testing.T) {
	sysusers := tool(t, "systemd-sysusers", "systemd")
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(sysusers, "--root="+root,
		filepath.Join(checkout(t).Root, "deploy/systemd/hooklock.sysusers")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if passwd := read(t, filepath.Join(root,
		"etc/passwd")); !regexp.MustCompile(
		`(?m)^hooklock:x:\d+:\d+:Hooklock:/var/lib/hooklock:.*nologin$`).MatchString(passwd) {
		t.Errorf("got %s", passwd)
	}
}
