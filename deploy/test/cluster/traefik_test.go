//go:build linux

package cluster

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// startTraefik starts Traefik with its three providers for Kubernetes.
func startTraefik(t *testing.T) {
	t.Helper()
	program := kit.Traefik(t)
	crds := filepath.Join(kit.Source(t, gatewayAPI), "config", "crd", "standard")
	run(t, ".", "default", "kubectl apply --server-side -f "+crds)
	run(t, ".", "default", "kubectl apply --server-side -f "+
		filepath.Join(kit.Source(t, traefikModule), "docs", "content", "reference", "dynamic-configuration",
			"kubernetes-crd-definition-v1.yml"))
	run(t, ".", "default", "kubectl wait --for=condition=Established crd --all --timeout=2m")
	log, err := os.Create(filepath.Join(logs(), "traefik.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	testkit.Start(t, testkit.Command{Program: program, Env: []string{"KUBECONFIG=" + control.Kubeconfig}, Stderr: log,
		Args: []string{
			"--entryPoints.web.address=" + hostIP + ":8000", "--entryPoints.websecure.address=" + hostIP + ":8443",
			"--providers.kubernetesGateway", "--providers.kubernetesIngress", "--providers.kubernetesCRD",
			"--log.level=INFO", "--log.filePath=" + log.Name(),
			"--global.checkNewVersion=false", "--global.sendAnonymousUsage=false",
		}})
}

// What stands beside deploy/gateway-api/httproute.yaml in a cluster with Traefik, and an Ingress,
// which deploy/ has no file for.
const traefikObjects = `apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: traefik}
spec: {controllerName: traefik.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: public}
spec:
  gatewayClassName: traefik
  listeners: [{name: web, port: 8000, protocol: HTTP}]
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: traefik}
spec: {controller: traefik.io/ingress-controller}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop-webhooks}
spec:
  ingressClassName: traefik
  rules:
    - host: ingress.example.com
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}
`

func TestDeliveriesComeThroughTraefikAsGatewayIngressAndIngressRoute(t *testing.T) {
	needs(t)
	startTraefik(t)
	namespace := newNamespace(t, "traefik")
	dir := copied(t)
	etcd(t, dir, namespace)
	shop := filepath.Join(dir, "kubernetes", "example")
	change(t, filepath.Join(shop, "sidecar.yaml"), "routes:\n", "routes:\n"+orders)
	run(t, dir, namespace, "cp etcd/secrets/hooklock/* kubernetes/example/secrets/")
	objects := filepath.Join(t.TempDir(), "traefik.yaml")
	write(t, objects, traefikObjects)
	run(t, dir, namespace, "kubectl apply --validate=strict -f "+objects+
		" -f gateway-api/httproute.yaml -f traefik/ingressroute.yaml")
	run(t, shop, namespace, "kubectl apply -k . && kubectl rollout status deployment/shop --timeout=4m")

	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // Traefik's own certificate
	}}
	fronts := map[string]front{
		"gateway":      {client, "http://" + hostIP + ":8000", "hooks.example.com"},
		"ingress":      {client, "http://" + hostIP + ":8000", "ingress.example.com"},
		"ingressroute": {client, "https://" + hostIP + ":8443", "hooks.example.com"},
	}
	var senders []*sender
	for name, f := range fronts {
		try := 0
		Await(t, "deliveries come through the "+name, func() bool {
			try++
			return f.deliver("/orders/first-"+name, fmt.Sprint(name, try)) == ""
		})
		for range 3 { // copies are answered, and do not run
			if said := f.deliver("/orders/copies-"+name, "same-"+name); said != "" {
				t.Errorf("%s: %s", name, said)
			}
		}
		if n := ran(t, "/orders/copies-"+name)["same-"+name]; n != 1 {
			t.Errorf("%s: an event ran %d times", name, n)
		}
		senders = append(senders, sendBy("/orders/traefik-"+name, f.deliver))
	}
	if reasons := run(t, ".", namespace,
		"kubectl get httproute shop-webhooks -o 'jsonpath={.status.parents[*].conditions[*].reason}'"); reasons != "Accepted ResolvedRefs" {
		t.Errorf("the HTTPRoute's conditions are %q", reasons)
	}
	for _, what := range []string{"rollout restart deployment/shop", "scale deployment/shop --replicas=4",
		"scale deployment/shop --replicas=2"} {
		for _, s := range senders {
			s.more(t, 30)
		}
		run(t, shop, namespace, "kubectl "+what+" && kubectl rollout status deployment/shop --timeout=4m")
	}
	for _, s := range senders {
		s.more(t, 30)
		s.end(t)
	}
}
