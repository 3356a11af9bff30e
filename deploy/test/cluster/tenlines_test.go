//go:build linux

package cluster

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The lines of docs/kubernetes.md, counted, typed, and what comes of them.
func TestTenLinesLeadFromADeploymentToABlockedDuplicate(t *testing.T) {
	needs(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	lines := strings.Split(strings.TrimSpace(commands(t, "docs/kubernetes.md",
		"`hooklock` is the program (`make build`):")), "\n")
	if len(lines) > 10 {
		t.Fatalf("%d lines", len(lines))
	}
	namespace := newNamespace(t, "ten")
	claims(t, namespace)
	dir := copied(t)
	run(t, dir, namespace,
		"cp kubernetes/example/{deployment,service}.yaml . && kubectl apply -f deployment.yaml -f service.yaml && kubectl rollout status deployment/shop --timeout=4m")
	front := follow(t, namespace, "shop")
	front.awaitEndpoints(t, 2, "8080")
	run(t, dir, namespace, strings.Join(lines[:len(lines)-2], "\n"))
	front.awaitEndpoints(t, 2, "18080")
	for i, replayed := range []bool{false, true} {
		said := run(t, dir, namespace,
			strings.Replace(lines[len(lines)-2+i], "curl", "curl -sS --connect-to ::"+front.pick(), 1))
		if !strings.Contains(said, "HTTP/1.1 200 OK") || !strings.Contains(said, "ran on shop-") ||
			strings.Contains(said, "Idempotent-Replayed: true") != replayed {
			t.Errorf("delivery %d gets\n%s", i+1, said)
		}
	}
	if n := ran(t, "/orders/7")["1"]; n != 1 {
		t.Errorf("the event ran %d times", n)
	}
	leastRole(t, namespace)
}

// leastRole asks Hooklock's doctor, in a pod with what the sidecar has, what the user of
// deploy/etcd may do.
func leastRole(t *testing.T, namespace string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "doctor.yaml")
	write(t, file, `apiVersion: v1
kind: Pod
metadata: {name: doctor}
spec:
  restartPolicy: Never
  containers:
    - name: doctor
      image: registry.example.com/hooklock:1.0
      args: [doctor, --config, /etc/hooklock/sidecar.yaml]
      env: [{name: HOOKLOCK__DATA_DIR, value: /var/lib/hooklock/data}]
      volumeMounts:
        - {name: config, mountPath: /etc/hooklock}
        - {name: secrets, mountPath: /etc/hooklock-secrets}
        - {name: data, mountPath: /var/lib/hooklock}
  volumes:
    - {name: config, configMap: {name: hooklock}}
    - {name: secrets, secret: {secretName: hooklock}}
    - {name: data, emptyDir: {}}
`)
	run(t, ".", namespace, "kubectl apply -f "+file+
		" && kubectl wait pod/doctor --for=jsonpath='{.status.containerStatuses[0].state.terminated.reason}' --timeout=3m")
	uid := run(t, ".", namespace, "kubectl get pod doctor -o 'jsonpath={.metadata.uid}'")
	said := read(t, filepath.Join(work, "pods", uid, "doctor.log"))
	for _, line := range []string{`(?m)^ok +etcd permissions `, `(?m)^ok +etcd outside the prefix +denied`,
		`(?m)^ok +etcd https://etcd-2.etcd:2379 `} {
		if !regexp.MustCompile(line).MatchString(said) {
			t.Errorf("doctor does not say %s:\n%s", line, said)
		}
	}
}
