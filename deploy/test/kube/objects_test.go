package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"hooklock/deploy/test/kit"
)

func settings(c *corev1.Container) map[string]string {
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
	}
	return env
}

// copied is deploy/kubernetes in a folder that a test may change.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(kit.Deploy("kubernetes"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// change exchanges a text that is there once in a file.
func change(t *testing.T, path, from, to string) {
	t.Helper()
	text := kit.Read(t, path)
	if strings.Count(text, from) != 1 {
		t.Fatalf("%s has %q %d times", path, from, strings.Count(text, from))
	}
	if err := os.WriteFile(path, []byte(strings.Replace(text, from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rendered(t *testing.T, dir string) string {
	t.Helper()
	text, err := Kustomize(dir)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func example(t *testing.T) (*appsv1.Deployment, []any) {
	t.Helper()
	all := Objects(t, rendered(t, kit.Deploy("kubernetes/example")))
	return Of[*appsv1.Deployment](t, all), all
}

// before is the example as it was: the first lines of its kustomization.
func before(t *testing.T) string {
	t.Helper()
	dir := copied(t)
	path := filepath.Join(dir, "example", "kustomization.yaml")
	kept, _, found := strings.Cut(kit.Read(t, path), "# All that follows was added.")
	if !found {
		t.Fatal("the example does not say what was added")
	}
	if err := os.WriteFile(path, []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	return rendered(t, filepath.Join(dir, "example"))
}
