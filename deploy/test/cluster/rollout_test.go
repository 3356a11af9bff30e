//go:build linux

package cluster

import (
	"path/filepath"
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
)

// change exchanges a text that is there in a file.
func change(t *testing.T, path, from, to string) {
	t.Helper()
	text := read(t, path)
	if !strings.Contains(text, from) {
		t.Fatalf("%s has no %q", path, from)
	}
	write(t, path, strings.ReplaceAll(text, from, to))
}

func TestNoDeliveryIsLostOrRepeatedFromTheFirstRollOutToTheRemoval(t *testing.T) {
	needs(t)
	namespace := newNamespace(t, "rollout", "pod-security.kubernetes.io/warn=restricted")
	dir := copied(t)
	etcd(t, dir, namespace)

	// The service as it is: nothing of Hooklock, no preStop.
	shop := filepath.Join(dir, "kubernetes", "example")
	run(t, shop, namespace,
		"kubectl apply -f deployment.yaml -f service.yaml && kubectl rollout status deployment/shop --timeout=4m")
	front := follow(t, namespace, "shop")
	front.awaitEndpoints(t, 2, "8080")
	s := send("/orders/rollout", front.pick)
	s.more(t, 50)

	// The first roll-out, by the page.
	change(t, filepath.Join(shop, "sidecar.yaml"), "routes:\n", "routes:\n"+orders)
	change(t, filepath.Join(shop, "kustomization.yaml"), "  - ../app-waits\n",
		"  - ../app-waits\n  - ../first-rollout\n")
	run(t, dir, namespace, "cp etcd/secrets/hooklock/* kubernetes/example/secrets/")
	run(t, shop, namespace, commands(t, "docs/kubernetes.md", "shows what will change. The first time"))
	front.awaitEndpoints(t, 2, "18080")
	s.more(t, 50)

	// A change of the configuration, scaling, undoing.
	change(t, filepath.Join(shop, "kustomization.yaml"), "  - ../first-rollout\n", "")
	change(t, filepath.Join(shop, "sidecar.yaml"), "unmatched: pass", "unmatched: pass\nlog: {level: debug}")
	run(t, shop, namespace, "kubectl apply -k . && kubectl rollout status deployment/shop --timeout=4m")
	s.more(t, 50)
	run(t, shop, namespace,
		"kubectl scale deployment/shop --replicas=4 && kubectl rollout status deployment/shop --timeout=4m")
	s.more(t, 50)
	run(t, shop, namespace,
		"kubectl scale deployment/shop --replicas=1 && kubectl rollout undo deployment/shop && kubectl rollout status deployment/shop --timeout=4m")
	s.more(t, 50)
	front.awaitEndpoints(t, 1, "18080")

	// Out again: first the Service, then the pods.
	run(t, shop, namespace, "kubectl apply -f service.yaml")
	front.awaitEndpoints(t, 1, "8080")
	before, _, _ := strings.Cut(kit.Read(t, filepath.Join(shop, "kustomization.yaml")), "# All that follows was added.")
	write(t, filepath.Join(shop, "kustomization.yaml"), before)
	run(t, shop, namespace, "kubectl apply -k . && kubectl rollout status deployment/shop --timeout=4m")
	s.more(t, 50)
	s.end(t)
}
