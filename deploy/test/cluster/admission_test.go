//go:build linux

package cluster

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
)

// pod is one that asks for Hooklock, with a port and containers as JSON.
func pod(name, port, containers string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, annotations: {hooklock-port: %q}}
spec: {containers: [%s]}
`, name, port, containers)
}

const shopContainer = `{name: shop, image: "registry.example.com/shop:4.2", ports: [{containerPort: 8080}]}`

func TestTheAdmissionPolicyGuardsPodsAndRefusesInWords(t *testing.T) {
	needs(t)
	policy := kit.Deploy("kubernetes/mutatingadmissionpolicy.yaml")
	run(t, ".", "default", "kubectl apply --validate=strict -f "+policy)
	t.Cleanup(func() { run(t, ".", "default", "kubectl delete -f "+policy) })
	labelled := newNamespace(t, "guarded", "hooklock=enabled")
	other := newNamespace(t, "unlabelled")
	file := filepath.Join(t.TempDir(), "pod.yaml")
	try := func(namespace, text string) (string, error) {
		write(t, file, text)
		return shell(t, ".", namespace, "kubectl create -o yaml --validate=strict --dry-run=server -f "+file)
	}
	// Policies are read a moment after they were written.
	Await(t, "the policies are in force", func() bool {
		_, admitted := try(labelled, pod("zero", "0", shopContainer))
		said, err := try(labelled, pod("good", "8080", shopContainer))
		return admitted != nil && err == nil && strings.Contains(said, "name: hooklock-data")
	})
	fpm := `{name: php-fpm, image: "php:8.4-fpm", ports: [{containerPort: 9000}]}, {name: nginx, image: nginx, ports: [{containerPort: 80}]}`
	for name, c := range map[string]struct{ namespace, pod, refused string }{
		"port 0": {labelled, pod("a", "0", shopContainer),
			`hooklock-port: "0" is no port: write the number, 1 to 65535, at which your container takes HTTP`},
		"port -1":    {labelled, pod("a", "-1", shopContainer), `hooklock-port: "-1" is no port`},
		"port 99999": {labelled, pod("a", "99999", shopContainer), `hooklock-port: "99999" is no port`},
		"a name":     {labelled, pod("a", "http", shopContainer), `hooklock-port: "http" is no port`},
		"php-fpm": {labelled, pod("a", "9000", fpm),
			`hooklock-port: "9000" is where php-fpm takes FastCGI`},
		"nginx before php-fpm": {labelled, pod("a", "80", fpm), ""},
		"an unlabelled namespace": {other, pod("a", "8080", shopContainer),
			"kubectl label namespace unlabelled hooklock=enabled"},
		"0 in such a namespace": {other, pod("a", "0", shopContainer), `hooklock-port: "0" is no port`},
		"a pod that did not ask": {other, "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [" +
			shopContainer + "]}\n", ""},
	} {
		said, err := try(c.namespace, c.pod)
		if (err != nil) != (c.refused != "") || !strings.Contains(said, c.refused) {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
		if err != nil && (strings.Count(said, "\n") > 2 || len(said) > 500) {
			t.Errorf("%s: a refusal of %d characters:\n%s", name, len(said), said)
		}
	}
	if said, err := try(labelled, pod("a", "80", fpm)); err != nil ||
		!strings.Contains(said, "value: http://127.0.0.1:80\n") {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestTheSidecarOfThePolicyHasNoTokenAndPassesAQuotaOfCPULimits(t *testing.T) {
	needs(t)
	policy := kit.Deploy("kubernetes/mutatingadmissionpolicy.yaml")
	run(t, ".", "default", "kubectl apply --validate=strict -f "+policy)
	t.Cleanup(func() { run(t, ".", "default", "kubectl delete -f "+policy) })
	namespace := newNamespace(t, "quota", "hooklock=enabled")
	file := filepath.Join(t.TempDir(), "pod.yaml")
	write(t, file, pod("shop", "8080",
		`{name: shop, image: "registry.example.com/shop:4.2", resources: {limits: {cpu: 500m, memory: 64Mi}}}`))
	run(t, ".", namespace, "kubectl create quota all --hard=limits.cpu=4,limits.memory=4Gi,requests.cpu=4")
	Await(t, "the service account is there", func() bool {
		_, err := shell(t, ".", namespace, "kubectl get serviceaccount default")
		return err == nil
	})
	var said string
	Await(t, "the pod is admitted with Hooklock in it", func() bool {
		var err error
		said, err = shell(t, ".", namespace, `kubectl create --dry-run=server -f `+file+
			` -o 'jsonpath={range .spec.initContainers[*].volumeMounts[*]}{.name} {.mountPath}{"\n"}{end}{range .spec.containers[*].volumeMounts[*]}shop {.mountPath}{"\n"}{end}limit {.spec.initContainers[0].resources.limits.cpu}'`)
		return err == nil && strings.Contains(said, "hooklock-data /var/lib/hooklock")
	})
	for _, want := range []string{
		"hooklock-data /var/run/secrets/kubernetes.io/serviceaccount\n",
		"shop /var/run/secrets/kubernetes.io/serviceaccount\n", "limit 1",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
	if strings.Contains(said, "kube-api-access") {
		t.Errorf("a token is mounted into Hooklock's container:\n%s", said)
	}
}

// From the manifests as they are to a guarded service, by the lines at the head of the policy's
// file; and what a person finds who forgot the label.
func TestAnAnnotationIsEnoughAndAForgottenLabelIsFound(t *testing.T) {
	needs(t)
	policy := kit.Deploy("kubernetes/mutatingadmissionpolicy.yaml")
	run(t, ".", "default", "kubectl apply -f "+policy)
	t.Cleanup(func() { run(t, ".", "default", "kubectl delete -f "+policy) })
	namespace := newNamespace(t, "annotated")
	dir := copied(t)
	etcd(t, dir, namespace)
	example := filepath.Join(dir, "kubernetes", "example")
	config := filepath.Join(dir, "etcd", "sidecar.yaml")
	write(t, config, read(t, config)+"routes:\n"+orders)
	run(t, example, namespace, "kubectl create configmap hooklock --from-file="+config+
		" && kubectl apply -f service.yaml")
	change(t, filepath.Join(example, "deployment.yaml"), "      labels: {app: shop}\n    spec:",
		"      labels: {app: shop}\n      annotations: {hooklock-port: \"8080\"}\n    spec:")
	change(t, filepath.Join(example, "deployment.yaml"), "        - name: shop\n",
		"        - name: shop\n          lifecycle: {preStop: {sleep: {seconds: 10}}}\n")
	bad := filepath.Join(t.TempDir(), "pod.yaml")
	write(t, bad, pod("zero", "0", shopContainer))
	Await(t, "the policies are in force", func() bool {
		_, err := shell(t, ".", namespace, "kubectl create --dry-run=server -f "+bad)
		return err != nil
	})
	run(t, example, namespace, "kubectl apply -f deployment.yaml")
	Await(t, "an event says why there are no pods", func() bool {
		said := run(t, example, namespace, "kubectl get events --field-selector reason=FailedCreate")
		return strings.Contains(said, "kubectl label namespace annotated hooklock=enabled")
	})
	run(t, example, namespace,
		`kubectl delete -f deployment.yaml && kubectl label namespace annotated hooklock=enabled && kubectl patch service shop --type=json -p '[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": "hooklock"}]'`)
	front := follow(t, namespace, "shop")
	Await(t, "pods are guarded", func() bool {
		run(t, example, namespace,
			"kubectl apply -f deployment.yaml && kubectl rollout status deployment/shop --timeout=4m")
		said := run(t, example, namespace, "kubectl get pods -l hooklock=sidecar -o name")
		return strings.Count(said, "pod/") == 2
	})
	front.awaitEndpoints(t, 2, "18080")
	s := send("/orders/annotated", front.pick)
	s.more(t, 30)
	run(t, example, namespace,
		"kubectl rollout restart deployment/shop && kubectl rollout status deployment/shop --timeout=4m")
	s.more(t, 30)
	s.end(t)
}
