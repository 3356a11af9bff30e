//go:build linux

package cluster

import (
	"path/filepath"
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
)

// dryRun asks the API server about manifests, with unknown and repeated fields refused.
func dryRun(t *testing.T, namespace, source string) {
	t.Helper()
	run(t, ".", namespace, source+" | kubectl apply --dry-run=server --validate=strict -f -")
}

// definitions installs the kinds of others that the manifests use. They stay.
func definitions(t *testing.T) {
	t.Helper()
	dir := filepath.Join(kit.Source(t, operatorModule), "example", "prometheus-operator-crd")
	for _, name := range []string{"podmonitors", "servicemonitors", "prometheusrules"} {
		run(t, ".", "default", "kubectl apply --server-side -f "+
			filepath.Join(dir, "monitoring.coreos.com_"+name+".yaml"))
	}
	run(t, ".", "default", "kubectl wait --for=condition=Established crd --all --timeout=2m")
}

func TestTheAPIServerTakesAllManifests(t *testing.T) {
	needs(t)
	namespace := newNamespace(t, "manifests")
	definitions(t)
	dir := copied(t)
	run(t, filepath.Join(dir, "etcd"), namespace, "./certificates")
	dryRun(t, namespace, "kubectl kustomize "+filepath.Join(dir, "etcd"))
	dryRun(t, namespace, "cat "+filepath.Join(dir, "kubernetes", "mutatingadmissionpolicy.yaml"))
	example := filepath.Join(dir, "kubernetes", "example")
	dryRun(t, namespace, "kubectl kustomize "+example)
	for _, component := range []string{"first-rollout", "network-policy", "pod-monitor", "prometheus-rule"} {
		change(t, filepath.Join(example, "kustomization.yaml"), "  - ../app-waits\n", "  - ../app-waits\n  - ../"+
			component+"\n")
	}
	dryRun(t, namespace, "kubectl kustomize "+example)
	dryRun(t, namespace, "cat "+kit.Deploy("ingress-nginx/ingress.yaml"))
	dryRun(t, namespace, "cat "+kit.Deploy("f5-nginx/ingress.yaml"))

	// It would have seen a mistake.
	said, err := shell(t, ".", namespace, "kubectl kustomize "+example+
		" | sed 's/path: \\/livez/pathz: \\/livez/' | kubectl apply --dry-run=server --validate=strict -f -")
	if err == nil || !strings.Contains(said, `unknown field "spec.template.spec.initContainers[0].`) {
		t.Errorf("a misspelt field: %v\n%s", err, said)
	}
}
