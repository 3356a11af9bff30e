//go:build linux

package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// needs skips a test where there is no cluster.
func needs(t *testing.T) {
	t.Helper()
	if why != "" {
		t.Skip(why)
	}
}

// shell runs lines as a person types them: kubectl, helm and hooklock are in the PATH, and the
// namespace is set.
func shell(t *testing.T, dir, namespace, lines string) (string, error) {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", lines)
	cmd.Dir = dir
	config := filepath.Join(t.TempDir(), "kubeconfig")
	text, err := os.ReadFile(control.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	mine := strings.Replace(string(text), `"cluster": "it", "user"`, `"cluster": "it", "namespace": "`+namespace+
		`", "user"`, 1)
	if err := os.WriteFile(config, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Env = []string{"PATH=" + bin(t) + ":/usr/local/bin:/usr/bin:/bin", "KUBECONFIG=" + config,
		"HOME=" + t.TempDir(), "HELM_NAMESPACE=" + namespace}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// bin is a folder with the programs that people have.
func bin(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"kubectl", "helm", "hooklock"} {
		if err := os.Symlink(paths[name], filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run is shell, for lines that must succeed.
func run(t *testing.T, dir, namespace, lines string) string {
	t.Helper()
	out, err := shell(t, dir, namespace, lines)
	if err != nil {
		t.Fatalf("%v in:\n%s\n%s", err, lines, out)
	}
	return out
}

// newNamespace makes a namespace for a test, with labels, and removes it afterwards.
func newNamespace(t *testing.T, name string, labels ...string) string {
	t.Helper()
	run(t, ".", name, "kubectl create namespace "+name)
	if len(labels) > 0 {
		run(t, ".", name, "kubectl label namespace "+name+" "+strings.Join(labels, " "))
	}
	t.Cleanup(func() { _, _ = shell(t, ".", name, "kubectl delete namespace "+name+" --timeout=120s") })
	return name
}
