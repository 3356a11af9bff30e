package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hooklock/deploy/test/kit"
	"hooklock/deploy/test/schema"
)

// The definitions of the Prometheus operator; later releases cannot be fetched everywhere, and PodMonitor has been v1 for years.
const prometheusOperator = "github.com/prometheus-operator/prometheus-operator@v0.85.0"

// objects reads a YAML stream and fails the test for what an API server would refuse.
func objects(t *testing.T, text string) []runtime.Object {
	t.Helper()
	var found []runtime.Object
	for _, doc := range schema.Documents(text) {
		if strings.TrimSpace(doc) == "" || strings.Contains(doc, "apiVersion: monitoring.coreos.com") {
			continue
		}
		o, err := Decode(doc)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		if err := Validate(o); err != nil {
			t.Errorf("%v in:\n%s", err, doc)
		}
		found = append(found, o)
	}
	return found
}

// of is the only object of type T.
func of[T runtime.Object](t *testing.T, all []runtime.Object) T {
	t.Helper()
	var found []T
	for _, o := range all {
		if typed, ok := o.(T); ok {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T", len(found), *new(T))
	}
	return found[0]
}

// container is the init container named hooklock; the test fails where there is none, or several.
func container(t *testing.T, spec *corev1.PodSpec) *corev1.Container {
	t.Helper()
	var found *corev1.Container
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.Name == "hooklock" {
			if found != nil {
				t.Fatal("two containers named hooklock")
			}
			found = c
		}
	}
	if found == nil {
		t.Fatal("no container named hooklock: the sidecar is not there")
	}
	return found
}

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

func example(t *testing.T) (*appsv1.Deployment, []runtime.Object) {
	t.Helper()
	all := objects(t, rendered(t, kit.Deploy("kubernetes/example")))
	return of[*appsv1.Deployment](t, all), all
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
