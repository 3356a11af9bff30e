package kube

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

// asked is the status that a kubelet gets from a probe of c at addr.
func asked(t *testing.T, c *corev1.Container, p *corev1.Probe, addr string) int {
	t.Helper()
	port := ""
	for _, named := range c.Ports {
		if named.Name == p.HTTPGet.Port.StrVal {
			port = strconv.Itoa(int(named.ContainerPort))
		}
	}
	if env := settings(c)["HOOKLOCK__HEALTH__LISTEN"]; port == "" || env != ":"+port {
		t.Fatalf("the probe asks port %q; health.listen is %q", port, env)
	}
	client := &http.Client{Timeout: testkit.Patience}
	defer client.CloseIdleConnections()
	res, err := client.Get("http://" + addr + p.HTTPGet.Path)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	return res.StatusCode
}

// The container's arguments, environment, probes and preStop hook, in a process instead of a pod.
// Addresses, and folders that only a pod has, are exchanged for this machine's.
func TestTheContainerRunsAsItIsRendered(t *testing.T) {
	deployment, _ := example(t)
	c := Sidecar(t, &deployment.Spec.Template.Spec)
	service := testkit.NewUpstream(t, func(*testkit.Received) string { return testkit.OK("done") })
	env := settings(c)
	health, door := testkit.FreePort(t), testkit.FreePort(t)
	for name, value := range map[string]string{
		"HOOKLOCK__LISTEN__ADDRESS": door, "HOOKLOCK__HEALTH__LISTEN": health, "HOOKLOCK__ADMIN__LISTEN": "127.0.0.1:0",
		"HOOKLOCK__DATA_DIR": filepath.Join(t.TempDir(), "data"), "HOOKLOCK__UPSTREAM__URL": service.URL,
	} {
		if env[name] == "" {
			t.Errorf("%s is not set", name)
		}
		env[name] = value
	}
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	config := filepath.Join(t.TempDir(), "sidecar.yaml")
	write(t, config, "routes: [{name: orders, path: /orders, workflow: orders}]\n")
	start := func() *testkit.Process {
		return testkit.Start(t, testkit.Command{Program: hooklockProgram, Env: list,
			Args: strings.Fields(strings.Replace(strings.Join(c.Args, " "), "/etc/hooklock/sidecar.yaml", config, 1))})
	}
	p := start()

	testkit.Until(t, "the startup probe passes", func() bool { return asked(t, c, c.StartupProbe, health) == 200 })
	testkit.Until(t, "the readiness probe passes", func() bool { return asked(t, c, c.ReadinessProbe, health) == 200 })
	if a := testkit.Post(t, door, "/orders", "{}", "Idempotency-Key: 1"); a.Status != 200 ||
		a.Decision() != "executed" {
		t.Errorf("%v", a)
	}

	hook := c.Lifecycle.PreStop.Exec.Command
	if hook[0] != "/usr/bin/hooklock" { // where the image has it
		t.Fatalf("preStop runs %v", hook)
	}
	if out, err := exec.Command(hooklockProgram,
		append(hook[1:], "--pid", strconv.Itoa(p.Pid()))...).CombinedOutput(); err != nil {
		t.Fatalf("preStop: %v: %s", err, out)
	}
	testkit.Until(t, "the readiness probe fails", func() bool { return asked(t, c, c.ReadinessProbe, health) == 503 })
	if asked(t, c, c.LivenessProbe, health) != 200 {
		t.Error("a pod that drains is taken for dead")
	}
	if a := testkit.Post(t, door, "/orders", "{}", "Idempotency-Key: 2"); a.Status != 200 {
		t.Errorf("a delivery that was still on its way: %v", a)
	}
	leave := func() time.Duration {
		began := time.Now()
		p.Signal(t, syscall.SIGTERM)
		if code := p.ExitCode(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
		return time.Since(began)
	}
	// The kubelet's smallest patience is 2 s: what a sidecar gets when the others have used up
	// everything. This machine may be busy with other tests: one of five is enough.
	took := leave()
	for again := 0; again < 4 && took > 2*time.Second; again++ {
		p = start()
		testkit.Until(t, "the readiness probe passes again", func() bool {
			return asked(t, c, c.ReadinessProbe, health) == 200
		})
		took = min(took, leave())
	}
	if took > 2*time.Second {
		t.Errorf("it left after %v", took)
	}
}

func TestTheExampleConfigurationIsValidInThePod(t *testing.T) {
	deployment, all := example(t)
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	write(t, path, Of[*corev1.ConfigMap](t, all).Data["sidecar.yaml"])
	for name := range Of[*corev1.Secret](t, all).Data {
		if !strings.Contains(kit.Read(t, path), "/etc/hooklock-secrets/"+name) {
			t.Errorf("nothing names the secret %s", name)
		}
	}
	validate := exec.Command(hooklockProgram, "validate", "--without-files", "--config", path)
	for name, value := range settings(Sidecar(t, &deployment.Spec.Template.Spec)) {
		validate.Env = append(validate.Environ(), name+"="+value)
	}
	if out, err := validate.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// `hooklock inject` makes of the same manifests the same pods as the component.
func TestInjectMakesThePodsOfTheComponent(t *testing.T) {
	example := kit.Deploy("kubernetes/example")
	inject := exec.Command(hooklockProgram, "inject", "--image", "registry.example.com/hooklock:1.0", "--config",
		"sidecar.yaml", "deployment.yaml", "service.yaml")
	inject.Dir = example
	var said strings.Builder
	inject.Stderr = &said
	out, err := inject.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	all := Objects(t, string(out))
	got, want := Of[*appsv1.Deployment](t, all).Spec.Template,
		Of[*appsv1.Deployment](t, Objects(t, rendered(t, example))).Spec.Template
	got.Annotations = nil // the hash of the configuration, which is in the names of kustomize's ConfigMap and Secret
	want.Spec.Volumes[0].ConfigMap.Name, want.Spec.Volumes[1].Secret.SecretName = "hooklock", "hooklock"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("another pod:\n%v\nwant\n%v", got, want)
	}
	if s := Of[*corev1.Service](t, all); s.Spec.Ports[0].TargetPort.StrVal != "hooklock" ||
		s.Labels["hooklock"] != "service" {
		t.Errorf("the Service is %v", s)
	}
	if m := Of[*corev1.ConfigMap](t, all); m.Data["sidecar.yaml"] != kit.Read(t, example+"/sidecar.yaml") {
		t.Errorf("the ConfigMap is %v", m)
	}
}
