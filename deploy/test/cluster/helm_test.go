//go:build linux

package cluster

import (
	"path/filepath"
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
)

// The chart as a gateway: installed, tested, upgraded, rolled back and removed by helm, with
// deliveries under way.
func TestHelmInstallsUpgradesRollsBackAndRemovesTheGateway(t *testing.T) {
	needs(t)
	namespace := newNamespace(t, "gateway", "pod-security.kubernetes.io/enforce=restricted")
	definitions(t)
	dir := copied(t)
	etcd(t, dir, namespace)
	legacy := newNamespace(t, "legacy") // a service that cannot be touched, and passes no policy
	run(t, filepath.Join(dir, "kubernetes", "example"), legacy,
		"kubectl apply -f deployment.yaml && kubectl rollout status deployment/shop --timeout=4m")
	ip := run(t, ".", legacy, "kubectl get pods -o 'jsonpath={.items[0].status.podIP}'")

	values := filepath.Join(t.TempDir(), "values.yaml")
	write(t, values, `
image: {repository: registry.internal/hooklock, tag: "1.0"}
secretName: hooklock
networkPolicy: {enabled: true}
serviceMonitor: {enabled: true}
prometheusRule: {enabled: true}
config:
  upstream: http://`+ip+`:8080
  etcd:
    endpoints: ["https://etcd-0.etcd:2379", "https://etcd-1.etcd:2379", "https://etcd-2.etcd:2379"]
    tls: {ca_file: /etc/hooklock-secrets/ca.crt, cert_file: /etc/hooklock-secrets/tls.crt, key_file: /etc/hooklock-secrets/tls.key}
  routes:
`+orders)
	chart := kit.Deploy("helm/hooklock")
	run(t, ".", namespace, "helm template shop "+chart+" -f "+values+
		" | kubectl apply --dry-run=server --validate=strict -f -")
	run(t, ".", namespace, "helm upgrade --install shop "+chart+" -f "+values+" --wait --timeout 4m")
	if said := run(t, ".", namespace, "helm test shop --timeout 3m"); !strings.Contains(said,
		"Phase:          Succeeded") {
		t.Errorf("helm test says\n%s", said)
	}
	front := follow(t, namespace, "shop-hooklock")
	front.only = "http"
	front.awaitEndpoints(t, 2, "8080")
	s := send("/orders/gateway", front.pick)
	s.more(t, 50)
	run(t, ".", namespace, "helm upgrade shop "+chart+" -f "+values+
		" --set config.log.level=debug --set replicas=3 --wait --timeout 4m")
	front.awaitEndpoints(t, 3, "8080")
	s.more(t, 50)
	run(t, ".", namespace, "helm rollback shop 1 --wait --timeout 4m")
	front.awaitEndpoints(t, 2, "8080")
	s.more(t, 50)
	s.end(t)
	run(t, ".", namespace, "helm uninstall shop --wait --timeout 4m")
	Await(t, "nothing of the release is left", func() bool {
		return run(t, ".", namespace,
			"kubectl get all,cm,networkpolicy,pdb,servicemonitor,prometheusrule -o name -l app.kubernetes.io/instance=shop") == ""
	})
	if _, err := shell(t, ".", namespace, "helm upgrade --install shop "+chart+" --set replica=3"); err == nil {
		t.Error("a misspelt value was taken")
	}
}

// The chart as a dependency: what the example renders is rolled out on the API server.
func TestHelmRollsOutTheSidecarOfTheExample(t *testing.T) {
	needs(t)
	namespace := newNamespace(t, "sidecar")
	dir := copied(t)
	etcd(t, dir, namespace)
	example := filepath.Join(dir, "helm", "example")
	run(t, dir, namespace,
		`helm dependency update helm/example && kubectl create secret generic shop-webhooks --from-file=etcd/secrets/hooklock --from-literal=stripe.secret=whsec_made_up`)
	run(t, ".", namespace, "helm upgrade --install shop "+example+" --wait --timeout 4m")
	front := follow(t, namespace, "shop")
	front.awaitEndpoints(t, 2, "18080")
	s := send("/health-check", front.pick) // of no route: it passes
	s.more(t, 20)
	run(t, ".", namespace, "helm upgrade shop "+example+
		" --set hooklock.config.log.level=debug --wait --timeout 4m && helm rollback shop 1 --wait --timeout 4m")
	s.more(t, 20)
	s.end(t)
	run(t, ".", namespace, "helm uninstall shop --wait --timeout 4m")
}
