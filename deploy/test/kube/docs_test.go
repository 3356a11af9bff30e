package kube

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withoutData is a rendered stream without ConfigMaps and Secrets, whose content is not what the
// page is about.
func withoutData(text string) string {
	var kept []string
	for _, doc := range strings.Split(text, "---\n") {
		if !strings.Contains(doc, "\nkind: ConfigMap") && !strings.Contains(doc, "\nkind: Secret") {
			kept = append(kept, doc)
		}
	}
	return strings.Join(kept, "---\n")
}

// difference is what `diff` says, without its two first lines, which name files.
func difference(t *testing.T, was, is string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "was"), was)
	write(t, filepath.Join(dir, "is"), is)
	// 1: they differ
	out, _ := exec.Command("diff", "-U2", filepath.Join(dir, "was"), filepath.Join(dir, "is")).Output()
	lines := strings.SplitAfterN(string(out), "\n", 3)
	if len(lines) < 3 {
		t.Fatal("no difference")
	}
	return lines[2]
}

func TestTheDifferenceInTheDocumentationIsTheRenderedOne(t *testing.T) {
	got := difference(t, withoutData(before(t)), withoutData(rendered(t, kit.Deploy("kubernetes/example"))))
	if got != kit.Read(t, kit.Deploy("kubernetes/rendered.diff")) {
		t.Errorf("deploy/kubernetes/rendered.diff shows something else; what is rendered is\n%s", got)
	}
}

func TestTheKustomizationInTheDocumentationIsTheExample(t *testing.T) {
	if got := kit.Read(t, kit.Deploy("kubernetes/example/kustomization.yaml")); got != kit.Fenced(t,
		"docs/kubernetes.md", "Your `kustomization.yaml`", "yaml") {
		t.Errorf("docs/kubernetes.md shows something else; the example is\n%s", got)
	}
}

// The rest of a Service need not go with etcd.
func TestReadinessThatLooksAtTheProcessAloneIsAPatch(t *testing.T) {
	dir := filepath.Join(copied(t), "example")
	path := filepath.Join(dir, "kustomization.yaml")
	write(t, path, kit.Read(t, path)+kit.Fenced(t, "docs/kubernetes.md", "## Probes", "yaml"))
	pod := Of[*appsv1.Deployment](t, Objects(t, rendered(t, dir))).Spec.Template.Spec
	if got := Sidecar(t, &pod).ReadinessProbe.HTTPGet.Path; got != "/livez" {
		t.Errorf("readiness asks %s", got)
	}
}

// The flags are given to the member that this project's own tests run.
func TestEtcdTakesTheFlagsInTheDocumentation(t *testing.T) {
	program := filepath.Join(t.TempDir(), "etcd")
	build := exec.Command("go", "build", "-o", program, testkit.EtcdPackage)
	build.Dir = kit.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build etcd: %v\n%s", err, out)
	}
	client, peer := "http://"+testkit.FreePort(t), "http://"+testkit.FreePort(t)
	flags := strings.Fields(kit.Fenced(t, "docs/kubernetes.md", "## etcd", "etcd"))
	m := testkit.Member{Endpoint: client,
		Process: testkit.Start(t, testkit.Command{Program: program, Args: append([]string{
			"--data-dir", filepath.Join(t.TempDir(), "data"), "--listen-client-urls", client, "--advertise-client-urls",
			client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
		}, flags...)})}
	m.AwaitHealthy(t)
}
