package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// The versions that tools/go.mod has, and what is built of them.
const (
	Kubernetes = "1.36.1"
	Helm       = "3.20.2"
)

// programs are those of the control plane and its clients, by name: their package, the version that
// is in their folder's name, and what building them costs in minutes of two idle cores where Go's
// cache has nothing of them.
var programs = []struct {
	name, pkg, of string
	minutes       int
}{
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "kubernetes-" + Kubernetes, 9},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "kubernetes-" + Kubernetes, 2},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", "kubernetes-" + Kubernetes, 1},
	{"kubectl", "k8s.io/kubernetes/cmd/kubectl", "kubernetes-" + Kubernetes, 3},
	{"helm", "helm.sh/helm/v3/cmd/helm", "helm-" + Helm, 1},
}

// Programs are the paths of all programs that the tests run. What is not in the cache folder is
// built; only an error says that one cannot be had.
func Programs(dir string) (map[string]string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the cache folder: %w", err)
	}
	paths := map[string]string{}
	for _, p := range programs {
		path := filepath.Join(cache, "hooklock-test", p.of, p.name)
		paths[p.name] = path
		if _, err := os.Stat(path); err == nil {
			continue
		}
		fmt.Fprintf(os.Stderr, "building %s %s into %s: about %d minutes\n", p.name, p.of, filepath.Dir(path),
			p.minutes)
		// The version that clients ask for is stamped in; without it the API server calls itself
		// v0.0.0-master.
		major, rest, _ := strings.Cut(Kubernetes, ".")
		minor, _, _ := strings.Cut(rest, ".")
		stamp := "-X k8s.io/component-base/version."
		helm := "-X helm.sh/helm/v3/pkg/chartutil.k8sVersion"
		flags := "-s -w " + helm + "Major=" + major + " " + helm + "Minor=" + minor + " " + stamp + "gitVersion=v" +
			Kubernetes + " " + stamp + "gitMajor=" + major + " " + stamp + "gitMinor=" + minor
		if err := build(kit.Deploy("test/cluster/tools"), path, p.pkg, "-trimpath", "-ldflags", flags); err != nil {
			return nil, err
		}
	}
	for name, of := range map[string][2]string{
		"hooklock": {kit.Root(), "./cmd/hooklock"},
		"etcd":     {kit.Root(), testkit.EtcdPackage},
		"etcdctl":  {kit.Deploy("tools"), "go.etcd.io/etcd/etcdctl/v3"},
	} {
		paths[name] = filepath.Join(dir, name)
		if _, err := os.Stat(paths[name]); err == nil {
			continue // built before the namespaces were made
		}
		if err := build(of[0], paths[name], of[1]); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// build builds a main package of the module in dir, one package at a time, and leaves nothing that
// is half done.
func build(dir, to, pkg string, flags ...string) error {
	began := time.Now()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	cmd := exec.Command("go", append(append([]string{"build", "-o", to + ".new"}, flags...), pkg)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	if took := time.Since(began); took > time.Minute {
		fmt.Fprintf(os.Stderr, "built %s in %v\n", filepath.Base(to), took.Round(time.Second))
	}
	return os.Rename(to+".new", to)
}
