package checks

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// No test can pull base images. So the build stage's own commands are run here, on this machine's
// Go; what they make is handed to buildah in the place of that stage; and distroless is replaced by
// nothing.
func TestTheDockerfileBuildsAndRuns(t *testing.T) {
	buildah := tool(t, "buildah", "buildah")
	if os.Getuid() != 0 {
		t.Skip("this is not root: the Dockerfile is not built")
	}
	s := checkout(t)
	file := read(t, filepath.Join(s.Root, "deploy/container/Dockerfile"))
	stage, dir := t.TempDir(), t.TempDir()
	runBuildStage(t, s.Root, file, stage)
	do := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(buildah, append([]string{"--storage-driver", "vfs", "--root", dir + "/root", "--runroot",
			dir + "/run"}, args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("buildah %v: %v\n%s", args, err, &stderr)
		}
		return strings.TrimSpace(string(out))
	}
	const base = "FROM gcr.io/distroless/static-debian12:nonroot AS "
	if !strings.Contains(file, base) {
		t.Fatalf("no %q", base)
	}
	path := filepath.Join(dir, "Dockerfile")
	if err := os.WriteFile(path, []byte(strings.Replace(file, base, "FROM scratch AS ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"scratch", "distroless"} {
		t.Run(target, func(t *testing.T) {
			image := do("bud", "--quiet", "--isolation", "chroot", "--build-context", "build="+stage, "--target",
				target, "-f", path, t.TempDir())
			var inspected struct {
				OCIv1 struct {
					Config struct {
						User            string
						Entrypoint, Cmd []string
						WorkingDir      string
					} `json:"config"`
				}
			}
			if err := json.Unmarshal([]byte(do("inspect", "--type", "image", image)), &inspected); err != nil {
				t.Fatal(err)
			}
			c := inspected.OCIv1.Config
			if c.User != "65532:65532" || c.WorkingDir != "/var/lib/hooklock" ||
				!slices.Equal(c.Entrypoint, []string{"/usr/bin/hooklock"}) ||
				!slices.Equal(c.Cmd, []string{"serve", "--config", "/etc/hooklock/sidecar.yaml"}) {
				t.Errorf("config %+v", c)
			}
			if target == "distroless" {
				return // who the user is, is said by the base that is not here
			}
			container := do("from", "--pull-never", image)
			if said := do("run", "--isolation", "chroot", container, "--", "/usr/bin/hooklock",
				"version"); !strings.HasPrefix(said, "hooklock v0.0.0-test.1 ") {
				t.Errorf("hooklock version: %s", said)
			}
		})
	}
}

// runBuildStage runs the long RUN of the Dockerfile with another place for /out.
func runBuildStage(t *testing.T, root, file, stage string) {
	t.Helper()
	run := regexp.MustCompile(`(?s)\nRUN (CGO_ENABLED=0 .*?[^\\])\n\n`).FindStringSubmatch(file)
	if run == nil {
		t.Fatal("the Dockerfile builds nothing")
	}
	if _, err := os.Stat("/etc/ssl/certs/ca-certificates.crt"); err != nil {
		t.Skip("no authorities are installed here (Debian: ca-certificates)")
	}
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(run[1], "/out", stage+"/out"))
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "VERSION=v0.0.0-test.1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
