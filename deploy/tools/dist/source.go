package dist

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Target is a system that a release has a program for.
type Target struct{ OS, Arch string }

// String is what archives call it: linux_amd64.
func (t Target) String() string { return t.OS + "_" + t.Arch }

// Targets are all of them, in the order of a release.
var Targets = []Target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// Source says what a release is made from.
type Source struct {
	// Root is the checkout: the folder with Hooklock's go.mod.
	Root string
	// Version is what `hooklock version` says.
	Version string
	// Epoch is the time of every file that is written; SOURCE_DATE_EPOCH of
	// reproducible-builds.org.
	Epoch time.Time
	// Revision is the commit that is checked out; "" where that is not known, as in an archive of
	// the source.
	Revision string
}

// Licence is what the project is under, in SPDX's words: its owner has not chosen one.
const Licence = "NOASSERTION"

// NewSource finds the checkout that the working directory is in, and reads SOURCE_DATE_EPOCH
// (seconds; 0 where it is not set).
func NewSource(version string) (Source, error) {
	s := Source{Version: version, Epoch: time.Unix(0, 0).UTC()}
	if version == "" {
		return s, errors.New("say which version with -version")
	}
	if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return s, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		s.Epoch = time.Unix(seconds, 0).UTC()
	}
	dir, err := os.Getwd()
	if err != nil {
		return s, fmt.Errorf("find the working directory: %w", err)
	}
	for {
		if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil &&
			strings.HasPrefix(string(text), "module hooklock\n") {
			s.Root = dir
			s.Revision = revision(dir)
			return s, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return s, errors.New("no checkout of hooklock above the working directory")
		}
		dir = parent
	}
}

func revision(dir string) string {
	cmd := exec.Command("git", "rev-parse", "--verify", "HEAD")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// Build builds the program for t as the file out: static, without paths of this machine.
func (s Source) Build(t Target, out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("name the program: %w", err)
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags",
		"-s -w -X hooklock/cmd/hooklock/cli.version="+s.Version, "-o", out, "./cmd/hooklock")
	cmd.Dir = s.Root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.OS, "GOARCH="+t.Arch, "GOAMD64=v1", "GOARM64=v8.0")
	return quietly(cmd)
}

// Host is the system that this runs on.
func Host() Target { return Target{runtime.GOOS, runtime.GOARCH} }

// Papers writes what the program says of itself into dir: man/*.1, and completions/ for four
// shells.
func (s Source) Papers(program, dir string) error {
	man := exec.Command(program, "man", "--dir", filepath.Join(dir, "man"))
	man.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(s.Epoch.Unix(), 10))
	if err := quietly(man); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "completions"), 0o755); err != nil {
		return fmt.Errorf("make the folder of the completions: %w", err)
	}
	for shell, name := range map[string]string{"bash": "hooklock.bash", "zsh": "_hooklock", "fish": "hooklock.fish",
		"powershell": "hooklock.ps1"} {
		text, err := exec.Command(program, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("hooklock completion %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "completions", name), text, 0o644); err != nil {
			return fmt.Errorf("write the completion for %s: %w", shell, err)
		}
	}
	return nil
}

// quietly runs a command whose output matters only when it fails.
func quietly(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
