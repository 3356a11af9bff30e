//go:build linux

package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"hooklock/deploy/test/cluster/kubelet"
	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// The test binary is started three times: by `go test`, where it builds the programs; by itself in
// namespaces of its own, where it runs the tests; and by the kubelet as the service whose
// deliveries Hooklock guards.
const (
	stageVariable = "HOOKLOCK_CLUSTER_STAGE"
	dirVariable   = "HOOKLOCK_CLUSTER_DIR"
	bridge        = "pods"
)

var podNetwork = netip.MustParsePrefix("10.244.0.0/16")

// The modules whose definitions are installed. They are fetched before the namespaces are made, in
// which there is no network.
const (
	operatorModule = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
	gatewayAPI     = "sigs.k8s.io/gateway-api@v1.4.0"
	traefikModule  = "github.com/traefik/traefik/v3@" + kit.TraefikVersion
)

// Valid in the namespaces.
var (
	control *Control
	paths   map[string]string
	work    string // an empty folder that all containers may see
	why     string // why the tests skip; empty: they do not
)

func TestMain(m *testing.M) {
	flag.Parse()
	switch os.Getenv(stageVariable) {
	case "":
		os.Exit(outside(m))
	case "shop":
		shop()
	default:
		os.Exit(inside(m))
	}
}

// outside prepares what needs the machine: programs and the image.
func outside(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hooklock-cluster-")
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // containers have users of their own
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if why = prepare(dir); why != "" {
		return m.Run() // all of them skip
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	again := exec.Command(self, os.Args[1:]...)
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	again.Env = append(os.Environ(), stageVariable+"=inside", dirVariable+"="+dir)
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
	}
	runtime.LockOSThread() // Pdeathsig follows the thread
	var exit *exec.ExitError
	if err := again.Run(); errors.As(err, &exit) {
		return max(1, exit.ExitCode())
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// prepare says why there can be no cluster, or nothing.
func prepare(dir string) string {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		return "namespaces for pods need Linux and root"
	}
	for _, needed := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(needed); err != nil {
			return needed + " is not installed (Debian: iproute2, util-linux)"
		}
	}
	if out, err := exec.Command("unshare", "--net", "--mount", "ip", "link", "add", "probe", "type",
		"bridge").CombinedOutput(); err != nil {
		return fmt.Sprintf("no network namespace with a bridge can be made: %v: %s", err, out)
	}
	if _, err := Programs(dir); err != nil {
		return "a program cannot be had: " + err.Error()
	}
	for _, module := range []string{operatorModule, gatewayAPI, traefikModule} {
		fetch := exec.Command("go", "mod", "download", module)
		fetch.Dir = dir
		_ = fetch.Run() // the test that needs it says so
	}
	image := exec.Command("go", "run", "./image", "-version", "1.0", "-out", filepath.Join(dir, "image"))
	image.Dir = kit.Deploy("tools")
	if out, err := image.CombinedOutput(); err != nil {
		return fmt.Sprintf("make image: %v: %s", err, out)
	}
	return ""
}

// inside runs the tests in namespaces that end with it, and all that was started with them.
func inside(m *testing.M) int {
	dir := os.Getenv(dirVariable)
	run := testkit.NewRun(dir)
	defer run.Close()
	if err := settle(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var err error
	if paths, err = Programs(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	control = StartControl(run, paths)
	images, err := images(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	said, err := os.Create(filepath.Join(logs(), "kubelet.log"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer said.Close()
	ctx, stop := context.WithCancel(context.Background())
	node, err := kubelet.Start(ctx, kubelet.Config{
		Node: "node-1", API: control.API, Dir: work, Bridge: bridge, Pods: podNetwork, Images: images,
		Say: func(format string, args ...any) { fmt.Fprintf(said, format+"\n", args...) },
	})
	if err != nil {
		stop()
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer node.Wait()
	defer stop()
	return m.Run()
}

// settle makes the namespaces usable: mounts that nobody else sees, processes that /proc shows, a
// bridge.
func settle(dir string) error {
	work = filepath.Join(dir, "work")
	if os.Getenv(logsVariable) == "" {
		if err := os.Setenv(logsVariable, filepath.Join(dir, "logs")); err != nil {
			return err
		}
	}
	return errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("proc", "/proc", "proc", 0, ""),
		os.MkdirAll(work, 0o755), os.MkdirAll(logs(), 0o755),
		kubelet.Bridge(bridge, podNetwork),
	)
}

// images are what the pods of the tests run.
func images(dir string) (map[string]kubelet.Image, error) {
	hooklock, err := kubelet.Unpack(filepath.Join(dir, "image"), runtime.GOARCH, filepath.Join(work, "image"))
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	root := filepath.Join(work, "etcd-image") // as the etcd project's own: no shell
	bin := filepath.Join(root, "usr", "local", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{"etcd", "etcdctl"} {
		if err := os.Link(paths[name], filepath.Join(bin, name)); err != nil {
			return nil, err
		}
	}
	return map[string]kubelet.Image{
		"registry.example.com/hooklock": hooklock,
		"registry.internal/hooklock":    hooklock,
		"registry.example.com/shop": {Entrypoint: []string{self},
			Env: []string{stageVariable + "=shop", shopVariable + "=" + filepath.Join(work, "shop")}},
		"quay.io/coreos/etcd": {Root: root, Entrypoint: []string{"/usr/local/bin/etcd"}},
	}, nil
}
