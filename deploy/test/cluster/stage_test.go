//go:build linux

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// copied is deploy/ in a folder that a test may change, as a user has it: etcd beside kubernetes.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kubernetes", "helm", "gateway-api", "traefik"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(kit.Deploy(name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "etcd", "certificates"), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return dir
}

// claims makes volumes for the three members of etcd in a namespace: what a cluster's own
// provisioner does.
func claims(t *testing.T, namespace string) {
	t.Helper()
	var all strings.Builder
	for i := range 3 {
		folder := filepath.Join(work, "volumes", fmt.Sprintf("%s-%d", namespace, i))
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s-%[2]d}
spec:
  capacity: {storage: 20Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: %[3]s}
  claimRef: {namespace: %[1]s, name: data-etcd-%[2]d}
`, namespace, i, folder)
	}
	file := filepath.Join(t.TempDir(), "volumes.yaml")
	write(t, file, all.String())
	run(t, ".", namespace, "kubectl apply -f "+file)
}

// commands is the block of lines of a page that follows a mark.
func commands(t *testing.T, page, mark string) string {
	t.Helper()
	return kit.Fenced(t, page, mark, "")
}

// etcd makes deploy/etcd run in a namespace, by the commands of its page.
func etcd(t *testing.T, dir, namespace string) {
	t.Helper()
	claims(t, namespace)
	run(t, filepath.Join(dir, "etcd"), namespace, commands(t, "deploy/etcd/README.md", "(it needs `openssl`):"))
}

// orders is a route for the deliveries of package tests, to be added to the example's.
const orders = `  - {name: orders, path: "/orders/{id}", workflow: "orders/{body.id}"}
`
