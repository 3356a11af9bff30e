package helm

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"hooklock/config"
	"hooklock/deploy/test/kit"
	"hooklock/deploy/test/kube"
)

func load(t *testing.T, name string) *chart.Chart {
	t.Helper()
	c, err := loader.Load(kit.Deploy("helm/" + name))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// withDependency is the example with the chart in it, as `helm dependency build` puts it there.
func withDependency(t *testing.T) *chart.Chart {
	t.Helper()
	c := load(t, "example")
	c.AddDependency(load(t, "hooklock"))
	return c
}

func valuesOf(t *testing.T, file string) map[string]any {
	t.Helper()
	if file == "" {
		return map[string]any{}
	}
	values, err := chartutil.ReadValuesFile(kit.Deploy("helm/hooklock/ci/" + file))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func gateway(t *testing.T, file string) (Rendered, []any) {
	t.Helper()
	r, err := Render(load(t, "hooklock"), "shop", valuesOf(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return r, kube.Objects(t, r.Manifests)
}

// What `helm lint --strict` does: a warning fails, too.
func TestTheChartsLintWithoutAWarning(t *testing.T) {
	for _, file := range []string{"", "gateway-values.yaml", "single-values.yaml", "service-monitor-values.yaml"} {
		for _, m := range lint.All(kit.Deploy("helm/hooklock"), valuesOf(t, file), "shop", true).Messages {
			if m.Severity > 1 { // 1 is for information: that there is no icon
				t.Errorf("%s: %v", file, m)
			}
		}
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(kit.Deploy("helm/example"))); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "charts", "hooklock"), os.DirFS(kit.Deploy("helm/hooklock"))); err != nil {
		t.Fatal(err)
	}
	for _, m := range lint.All(dir, map[string]any{}, "shop", true).Messages {
		if m.Severity > 1 && !strings.Contains(m.Error(), "directory name") {
			t.Errorf("example: %v", m)
		}
	}
}

func TestTheGatewayIsWhatAnAPIServerTakes(t *testing.T) {
	for _, file := range []string{"", "gateway-values.yaml", "single-values.yaml", "service-monitor-values.yaml"} {
		r, all := gateway(t, file)
		deployment := kube.Of[*appsv1.Deployment](t, all)
		pod := &deployment.Spec.Template
		if why := kube.Restricted(t, pod); why != "" {
			t.Errorf("%s: Pod Security: %s", file, why)
		}
		c := pod.Spec.Containers[0]
		service := kube.Of[*corev1.Service](t, all)
		if service.Spec.Ports[0].TargetPort.StrVal != "hooklock" || c.Ports[0].Name != "hooklock" {
			t.Errorf("%s: the Service leads to %v", file, service.Spec.Ports)
		}
		if tag := load(t, "hooklock").AppVersion(); file == "" && !strings.HasSuffix(c.Image, ":"+tag) {
			t.Errorf("image %s; appVersion is %s", c.Image, tag)
		}
		for name, value := range service.Spec.Selector {
			if pod.Labels[name] != value {
				t.Errorf("%s: the Service selects %s=%s", file, name, value)
			}
		}
		kube.CheckMonitoring(t, r.Manifests)
		if file == "gateway-values.yaml" {
			for i, rule := range kube.Of[*networkingv1.NetworkPolicy](t, all).Spec.Ingress {
				if rule.Ports[0].Port.IntVal != c.Ports[i].ContainerPort {
					t.Errorf("the NetworkPolicy opens %v, the container listens on %v", rule.Ports, c.Ports)
				}
			}
		}
		if *deployment.Spec.Replicas > 1 {
			kube.Of[*policyv1.PodDisruptionBudget](t, all)
		}
	}
}

// An etcd takes 130 MB as soon as it starts: a kubelet would put the pod out that has no more than
// the room for a token.
func TestAnEmbeddedEtcdHasRoomAndIsNeverThereTwice(t *testing.T) {
	for file, embedded := range map[string]bool{"gateway-values.yaml": false, "single-values.yaml": true} {
		_, all := gateway(t, file)
		spec := &kube.Of[*appsv1.Deployment](t, all).Spec
		volumes := spec.Template.Spec.Volumes
		if room := volumes[len(volumes)-1].EmptyDir.SizeLimit; (room.Value() > 1<<30) != embedded {
			t.Errorf("%s: room for %v", file, room)
		}
		if (spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType) != embedded {
			t.Errorf("%s: strategy %v", file, spec.Strategy)
		}
	}
}

// Policies add up: one that selected the pods of another release, too, would let those whom it lets
// in reach them; and what two PodMonitors select is counted twice.
func TestWhatAReleaseSelectsAreItsOwnPods(t *testing.T) {
	pods, selectors := map[string]map[string]string{}, map[string]map[string]map[string]string{}
	for _, release := range []string{"shop", "bank"} {
		r, err := Render(load(t, "hooklock"), release, valuesOf(t, "gateway-values.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		all := kube.Objects(t, r.Manifests)
		pods[release] = kube.Of[*appsv1.Deployment](t, all).Spec.Template.Labels
		selectors[release] = map[string]map[string]string{
			"NetworkPolicy":       kube.Of[*networkingv1.NetworkPolicy](t, all).Spec.PodSelector.MatchLabels,
			"PodDisruptionBudget": kube.Of[*policyv1.PodDisruptionBudget](t, all).Spec.Selector.MatchLabels,
			"PodMonitor":          podMonitor(t, r.Manifests),
		}
	}
	for release, mine := range selectors {
		for kind, selector := range mine {
			for other, pod := range pods {
				if got := selects(selector, pod); got != (other == release) {
					t.Errorf("the %s of %s selects %v, the pods of %s have %v", kind, release, selector, other, pod)
				}
			}
		}
	}
}

// The pod of `helm test` runs for a moment and has no port: a PodDisruptionBudget that counted it
// would let all pods of the gateway go at once.
func TestThePodOfTheTestIsNoneOfTheGatewaysPods(t *testing.T) {
	_, all := gateway(t, "service-monitor-values.yaml")
	pod := kube.Of[*corev1.Pod](t, all).Labels
	for kind, selector := range map[string]map[string]string{
		"Service":             kube.Of[*corev1.Service](t, all).Spec.Selector,
		"PodDisruptionBudget": kube.Of[*policyv1.PodDisruptionBudget](t, all).Spec.Selector.MatchLabels,
		"Deployment":          kube.Of[*appsv1.Deployment](t, all).Spec.Selector.MatchLabels,
	} {
		if selects(selector, pod) {
			t.Errorf("the %s selects %v, the pod of the test has %v", kind, selector, pod)
		}
	}
}

func selects(selector, pod map[string]string) bool {
	for name, value := range selector {
		if pod[name] != value {
			return false
		}
	}
	return len(selector) > 0
}

// podMonitor is what the PodMonitor among the manifests selects.
func podMonitor(t *testing.T, manifests string) map[string]string {
	t.Helper()
	for _, text := range strings.Split(manifests, "\n---\n") {
		var m struct {
			Kind string
			Spec struct {
				Selector struct{ MatchLabels map[string]string }
			}
		}
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if m.Kind == "PodMonitor" {
			return m.Spec.Selector.MatchLabels
		}
	}
	t.Fatal("no PodMonitor")
	return nil
}

// With a number in the manifest, each `helm upgrade` would take away the pods that an autoscaler
// has added.
func TestAnAutoscalerMayHaveTheReplicas(t *testing.T) {
	r, err := Render(load(t, "hooklock"), "shop", map[string]any{"replicas": nil})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(r.Manifests, "replicas:") {
		t.Error("the manifests say how many replicas there are")
	}
	kube.Of[*policyv1.PodDisruptionBudget](t, kube.Objects(t, r.Manifests))
	single := valuesOf(t, "single-values.yaml")
	single["replicas"] = nil
	if _, err := Render(load(t, "hooklock"), "shop", single); err == nil ||
		!strings.Contains(err.Error(), "endpoints") {
		t.Errorf("an embedded etcd in pods that an autoscaler adds: %v", err)
	}
}

func TestTheGatewaysConfigurationIsValid(t *testing.T) {
	program, err := kit.BuildHooklock(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"", "gateway-values.yaml", "single-values.yaml", "service-monitor-values.yaml"} {
		_, all := gateway(t, file)
		path := filepath.Join(t.TempDir(), "sidecar.yaml")
		if err := os.WriteFile(path, []byte(kube.Of[*corev1.ConfigMap](t, all).Data["sidecar.yaml"]),
			0o600); err != nil {
			t.Fatal(err)
		}
		validate := exec.Command(program, "validate", "--without-files", "--config", path)
		validate.Env = validate.Environ()
		for _, e := range kube.Of[*appsv1.Deployment](t, all).Spec.Template.Spec.Containers[0].Env {
			validate.Env = append(validate.Env, e.Name+"="+e.Value)
		}
		if out, err := validate.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}

// One template is written as often as there are ways to deploy it; they have to stay the same.
func TestTheSidecarOfTheChartIsTheOneOfTheComponent(t *testing.T) {
	r, err := Render(withDependency(t), "shop", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	all := kube.Objects(t, r.Manifests)
	mine := kube.Of[*appsv1.Deployment](t, all).Spec.Template
	text, err := kube.Kustomize(kit.Deploy("kubernetes/example"))
	if err != nil {
		t.Fatal(err)
	}
	theirs := kube.Of[*appsv1.Deployment](t, kube.Objects(t, text)).Spec.Template
	got, want := kube.Sidecar(t, &mine.Spec), kube.Sidecar(t, &theirs.Spec)
	if got.ImagePullPolicy != corev1.PullIfNotPresent {
		t.Errorf("imagePullPolicy %q", got.ImagePullPolicy)
	}
	got.ImagePullPolicy = ""
	if !reflect.DeepEqual(got, want) {
		t.Errorf("another container:\n%v\nwant\n%v", got, want)
	}
	if mine.Labels["hooklock"] != "sidecar" || mine.Annotations["hooklock-config"] == "" {
		t.Errorf("labels %v, annotations %v", mine.Labels, mine.Annotations)
	}
	if name := kube.Of[*corev1.ConfigMap](t, all).Name; name != mine.Spec.Volumes[0].ConfigMap.Name {
		t.Errorf("the ConfigMap is %s, the volume's is %s", name, mine.Spec.Volumes[0].ConfigMap.Name)
	}
	if strings.Contains(kube.Of[*corev1.ConfigMap](t, all).Data["sidecar.yaml"], "your-service") {
		t.Error("the gateway's upstream is in the sidecar's configuration")
	}
}

func TestAChangedConfigurationRollsThePods(t *testing.T) {
	hash := func(values map[string]any) string {
		r, err := Render(load(t, "hooklock"), "shop", values)
		if err != nil {
			t.Fatal(err)
		}
		return kube.Of[*appsv1.Deployment](t, kube.Objects(t, r.Manifests)).Spec.Template.Annotations["hooklock-config"]
	}
	if hash(map[string]any{}) == hash(
		map[string]any{"config": map[string]any{"upstream": "http://other.default.svc"}}) {
		t.Error("the pods' annotation is the same")
	}
}

func TestTheGatewayHasTimeToEnd(t *testing.T) {
	_, all := gateway(t, "")
	spec := kube.Of[*appsv1.Deployment](t, all).Spec.Template.Spec
	loaded, err := config.Load(config.Source{Path: "four lines",
		Bytes: []byte("upstream: http://127.0.0.1:8081\nroutes: [{name: a, path: /a, workflow: a}]\n")})
	if err != nil {
		t.Fatal(err)
	}
	var delay time.Duration
	for _, e := range spec.Containers[0].Env {
		if e.Name == "HOOKLOCK__SHUTDOWN_DELAY" {
			if delay, err = time.ParseDuration(e.Value); err != nil {
				t.Error(err)
			}
		}
	}
	if patience := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second; delay == 0 || patience <= delay+
		loaded.Config.ShutdownTimeout+10*time.Second {
		t.Errorf("patience %v, shutdown_delay %v, shutdown_timeout %v", patience, delay, loaded.Config.ShutdownTimeout)
	}
}

// A gateway that is killed leaves what runs with an unknown outcome, at each roll-out.
func TestAGraceInWhichNoDeliveryCanEndIsRefused(t *testing.T) {
	type m = map[string]any
	for _, c := range []struct {
		values  m
		refused bool
	}{
		{m{"terminationGracePeriodSeconds": 50}, true}, // 10s and 40s
		{m{"terminationGracePeriodSeconds": 51}, false},
		{m{"shutdownDelay": "1m"}, true},
		{m{"shutdownDelay": "0s", "terminationGracePeriodSeconds": 45}, false},
		{m{"config": m{"shutdown_timeout": "2m"}}, true},
		{m{"config": m{"shutdown_timeout": "1m30s"}, "terminationGracePeriodSeconds": 100}, true},
		{m{"config": m{"shutdown_timeout": "1m30s"}, "terminationGracePeriodSeconds": 101}, false},
		{m{"config": m{"shutdown_timeout": "0.5h"}, "terminationGracePeriodSeconds": 1810}, true},
		{m{"config": m{"shutdown_timeout": "1500ms"}, "shutdownDelay": "500ms", "terminationGracePeriodSeconds": 3},
			false},
		{m{"mode": "sidecar", "terminationGracePeriodSeconds": 1}, false}, // the Deployment is another chart's
	} {
		_, err := Render(load(t, "hooklock"), "shop", c.values)
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "terminationGracePeriodSeconds") {
			t.Errorf("%v: %v", c.values, err)
		}
	}
}

func TestValuesThatCannotWorkAreRefused(t *testing.T) {
	type m = map[string]any
	for want, values := range map[string]m{
		"replicas":                         {"replicas": "two"},
		"replica":                          {"replica": 3}, // misspelt
		"mode":                             {"mode": "ingress"},
		"tag":                              {"image": m{"tag": 1.1}},
		"repository":                       {"image": m{"repository": ""}},
		"endpoints":                        {"config": m{"etcd": m{"endpoints": []any{}}}}, // with two replicas
		"listen":                           {"config": m{"listen": ":80"}},                 // the chart's affair
		"port":                             {"service": m{"port": 70000}},
		"podMonitors":                      {"podMonitors": m{"enabled": true}},
		"counted twice":                    {"podMonitor": m{"enabled": true}, "serviceMonitor": m{"enabled": true}},
		"maxUnavailable":                   {"podDisruptionBudget": m{"maxUnavailable": "all"}},
		"as a sidecar there is no Service": {"mode": "sidecar", "serviceMonitor": m{"enabled": true}},
		"digest":                           {"image": m{"digest": "latest"}},
		// What a value was taken from, or a release has that is older than it and keeps with
		// --reuse-values.
		"missing property 'service'":                       {"service": nil},
		"missing property 'serviceMonitor'":                {"serviceMonitor": nil},
		"missing property 'terminationGracePeriodSeconds'": {"terminationGracePeriodSeconds": nil},
		// These are the chart's: policies and monitors select by them.
		"propertyName 'hooklock'":        {"podLabels": m{"hooklock": "mine"}},
		"propertyName 'hooklock-config'": {"podAnnotations": m{"hooklock-config": "mine"}},
	} {
		_, err := Render(load(t, "hooklock"), "shop", values)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want a word about %s", values, err, want)
		}
	}
}

// An alert has templates of its own in it, which are Prometheus' and not Helm's.
func TestTheAlertsArriveAsTheyAre(t *testing.T) {
	r, _ := gateway(t, "service-monitor-values.yaml")
	for _, want := range []string{"kind: PrometheusRule", "{{ $labels.instance }} does not answer",
		"kind: ServiceMonitor", "port: health", "{name: health, port: 8078, targetPort: hooklock-health",
		"maxUnavailable: 50%"} {
		if !strings.Contains(r.Manifests, want) {
			t.Errorf("%q is not in the manifests", want)
		}
	}
}

func TestTheNotesSayWhatToDoNext(t *testing.T) {
	r, _ := gateway(t, "gateway-values.yaml")
	for _, want := range []string{"http://shop.default.svc", "Service shop-hooklock, port 80", "hooklock doctor"} {
		if !strings.Contains(r.Notes, want) {
			t.Errorf("%q is not in:\n%s", want, r.Notes)
		}
	}
	if strings.Contains(r.Notes, "WARNING") {
		t.Errorf("%s", r.Notes)
	}
	if r, _ = gateway(t, ""); strings.Count(r.Notes, "WARNING") != 2 { // the placeholder, and no routes
		t.Errorf("%s", r.Notes)
	}
}
