package kube

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	psa "k8s.io/pod-security-admission/api"
	psapolicy "k8s.io/pod-security-admission/policy"

	"hooklock/deploy/test/kit"
	"hooklock/deploy/test/schema"
)

// The definitions of the Prometheus operator; later releases cannot be fetched everywhere, and
// these kinds have been v1 for years.
const prometheusOperator = "github.com/prometheus-operator/prometheus-operator@v0.85.0"

const monitoring = "apiVersion: monitoring.coreos.com"

// Objects reads a YAML stream and fails the test for what an API server would refuse. Kinds of the
// Prometheus operator are left to CheckMonitoring.
func Objects(t *testing.T, text string) []any {
	t.Helper()
	var found []any
	for _, doc := range schema.Documents(text) {
		if strings.TrimSpace(doc) == "" || strings.Contains(doc, monitoring) {
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

// CheckMonitoring fails the test for what the definitions of the Prometheus operator do not allow.
func CheckMonitoring(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(text, monitoring) {
		return
	}
	kinds := schema.Kinds{}
	for _, kind := range []string{"podmonitors", "servicemonitors", "prometheusrules"} {
		if err := kinds.Add(kit.Read(t, filepath.Join(kit.Source(t, prometheusOperator), "example",
			"prometheus-operator-crd", "monitoring.coreos.com_"+kind+".yaml"))); err != nil {
			t.Fatal(err)
		}
	}
	for _, doc := range schema.Documents(text) {
		if !strings.Contains(doc, monitoring) {
			continue
		}
		monitors, err := schema.Objects(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range kinds.Check(monitors[0]) {
			t.Errorf("%s in:\n%s", p, doc)
		}
	}
}

// Of is the only object of type T.
func Of[T any](t *testing.T, all []any) T {
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

// Sidecar is the init container named hooklock; the test fails where there is none, or several.
func Sidecar(t *testing.T, spec *corev1.PodSpec) *corev1.Container {
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

// Restricted is what Pod Security says against a pod at the level "restricted", empty where it says
// nothing.
func Restricted(t *testing.T, pod *corev1.PodTemplateSpec) string {
	t.Helper()
	checks, err := psapolicy.NewEvaluator(psapolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	result := psapolicy.AggregateCheckResults(checks.EvaluatePod(psa.LevelVersion{Level: psa.LevelRestricted,
		Version: psa.LatestVersion()}, &pod.ObjectMeta, &pod.Spec))
	return result.ForbiddenDetail()
}
