package kube

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hooklock/config"
	"hooklock/deploy/test/kit"
	"hooklock/deploy/test/schema"
)

func TestTheSidecarIsInTheDeploymentAndTheServiceLeadsToIt(t *testing.T) {
	deployment, all := example(t)
	spec := &deployment.Spec.Template.Spec
	c := Sidecar(t, spec)
	if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Errorf("restartPolicy %v: it is no sidecar", c.RestartPolicy)
	}
	if c.Image != "registry.example.com/hooklock:1.0" {
		t.Errorf("image %q: what the user set did not arrive", c.Image)
	}
	if got := settings(c)["HOOKLOCK__UPSTREAM__URL"]; got != "http://127.0.0.1:8080" {
		t.Errorf("it sends deliveries to %q; the container listens on 8080", got)
	}
	port := Of[*corev1.Service](t, all).Spec.Ports[0]
	if port.TargetPort.StrVal != "hooklock" || c.Ports[0].Name != "hooklock" ||
		settings(c)["HOOKLOCK__LISTEN__ADDRESS"] != ":18080" || c.Ports[0].ContainerPort != 18080 {
		t.Errorf("the Service leads to %v; ports %v", port.TargetPort, c.Ports)
	}
	if label := Of[*corev1.Service](t, all).Labels["hooklock"]; label != "service" {
		t.Errorf("the Service cannot be left out of a first apply: it is labelled %q", label)
	}
	if deployment.Spec.Template.Labels["hooklock"] != "sidecar" {
		t.Errorf("labels %v", deployment.Spec.Template.Labels)
	}
}

func TestConfigurationAndSecretsArriveUnderTheirHashes(t *testing.T) {
	deployment, all := example(t)
	config, secret := Of[*corev1.ConfigMap](t, all), Of[*corev1.Secret](t, all)
	names := map[string]string{}
	for _, v := range deployment.Spec.Template.Spec.Volumes {
		switch {
		case v.ConfigMap != nil:
			names[v.Name] = v.ConfigMap.Name
		case v.Secret != nil:
			names[v.Name] = v.Secret.SecretName
		}
	}
	if names["hooklock-config"] != config.Name || names["hooklock-secrets"] != secret.Name ||
		config.Name == "hooklock" || secret.Name == "hooklock" {
		t.Errorf("volumes %v, ConfigMap %s, Secret %s", names, config.Name, secret.Name)
	}
	if config.Data["sidecar.yaml"] != kit.Read(t, kit.Deploy("kubernetes/example/sidecar.yaml")) {
		t.Error("another configuration")
	}
}

func TestWhatWasThereIsThereStill(t *testing.T) {
	deployment, _ := example(t)
	was := Of[*appsv1.Deployment](t, Objects(t, before(t)))
	deployment.Spec.Template.Spec.Containers[0].Lifecycle = nil
	if !reflect.DeepEqual(was.Spec.Template.Spec.Containers, deployment.Spec.Template.Spec.Containers) {
		t.Error("the containers have changed")
	}
	deployment.Spec.Template, was.Spec.Template = corev1.PodTemplateSpec{}, corev1.PodTemplateSpec{}
	if !reflect.DeepEqual(was, deployment) {
		t.Error("something else of the Deployment has changed")
	}
}

// kustomize passes over a patch that meets nothing in silence; the pods would run unguarded.
func TestASidecarThatMeetsNothingOrTooMuchIsAnError(t *testing.T) {
	for name, edit := range map[string]func(t *testing.T, example string){
		"no Deployment": func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, "kustomization.yaml"), "  - deployment.yaml\n", "")
		},
		"no Service": func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, "kustomization.yaml"), "  - service.yaml\n", "")
		},
		"two Deployments": func(t *testing.T, dir string) {
			twice := kit.Read(t, filepath.Join(dir, "deployment.yaml"))
			change(t, filepath.Join(dir, "deployment.yaml"), twice,
				twice+"---\n"+strings.Replace(twice, "name: shop", "name: other", 1))
		},
		"a container without a port": func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, "deployment.yaml"),
				"          ports:\n            - {name: http, containerPort: 8080}\n", "")
		},
		"two containers that declare a port": func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, "deployment.yaml"), "      containers:\n",
				"      containers:\n        - {name: php-fpm, image: php, ports: [{containerPort: 9000}]}\n")
		},
		"a third one that does": func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, "deployment.yaml"), "        - name: shop\n",
				"        - {name: a, image: a, ports: [{containerPort: 9000}]}\n        - {name: b, image: b}\n        - name: shop\n")
		},
		"a lifecycle that app-waits would replace": func(t *testing.T, dir string) {
			change(t, filepath.Join(dir, "deployment.yaml"), "        - name: shop\n",
				"        - name: shop\n          lifecycle: {preStop: {sleep: {seconds: 3}}}\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(copied(t), "example")
			edit(t, dir)
			if text, err := Kustomize(dir); err == nil {
				t.Errorf("rendered all the same:\n%s", text)
			} else {
				t.Log(err)
			}
		})
	}
}

// What the page says about a kustomization with several Deployments.
func TestTwoDeploymentsHaveACopyEach(t *testing.T) {
	dir := copied(t)
	example := filepath.Join(dir, "example")
	for _, file := range []string{"deployment.yaml", "service.yaml"} {
		path := filepath.Join(example, file)
		one := kit.Read(t, path)
		write(t, path, one+"---\n"+strings.NewReplacer("name: shop", "name: other", "app: shop", "app: other", "8080",
			"9090").Replace(one))
	}
	for _, component := range []string{"sidecar", "app-waits"} {
		for _, name := range []string{"shop", "other"} {
			to := filepath.Join(dir, component+"-"+name)
			if err := os.CopyFS(to, os.DirFS(filepath.Join(dir, component))); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(to, "kustomization.yaml")
			write(t, path, regexp.MustCompile(`\{kind: (\w+)\}|source:\n      kind: \w+\n`).ReplaceAllStringFunc(
				kit.Read(t, path), func(s string) string {
					if object, ok := strings.CutSuffix(s, "}"); ok {
						return object + ", name: " + name + "}"
					}
					return s + "      name: " + name + "\n"
				}))
		}
		change(t, filepath.Join(example, "kustomization.yaml"), "  - ../"+component+"\n",
			"  - ../"+component+"-shop\n  - ../"+component+"-other\n")
	}
	text := rendered(t, example)
	Objects(t, text)
	for _, want := range []string{"value: http://127.0.0.1:8080\n", "value: http://127.0.0.1:9090\n"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is there %d times", want, strings.Count(text, want))
		}
	}
	for want, n := range map[string]int{"targetPort: hooklock\n": 2, "hooklock: service\n": 2, "hooklock: sidecar\n": 2,
		"sleep:\n": 2} {
		if got := strings.Count(text, want); got != n {
			t.Errorf("%q is there %d times", want, got)
		}
	}
}

func TestAServiceThatNamesNoTargetPortGetsOne(t *testing.T) {
	dir := filepath.Join(copied(t), "example")
	change(t, filepath.Join(dir, "service.yaml"), ", targetPort: http", "")
	service := Of[*corev1.Service](t, Objects(t, rendered(t, dir)))
	if got := service.Spec.Ports[0].TargetPort.String(); got != "hooklock" {
		t.Errorf("targetPort is %q", got)
	}
}

func TestAPatchOfYourOwnComesAfterTheComponent(t *testing.T) {
	dir := filepath.Join(copied(t), "example")
	path := filepath.Join(dir, "kustomization.yaml")
	write(t, path, kit.Read(t, path)+kit.Fenced(t, "docs/kubernetes.md", "`terminationGracePeriodSeconds` becomes 60",
		"yaml"))
	deployment := Of[*appsv1.Deployment](t, Objects(t, rendered(t, dir)))
	if got := *deployment.Spec.Template.Spec.TerminationGracePeriodSeconds; got != 300 {
		t.Errorf("terminationGracePeriodSeconds is %d", got)
	}
}

func TestALimitOfTheCPUIsAPatchAway(t *testing.T) {
	dir := filepath.Join(copied(t), "example")
	path := filepath.Join(dir, "kustomization.yaml")
	write(t, path, kit.Read(t, path)+kit.Fenced(t, "docs/kubernetes.md", "Where a quota on `limits.cpu` wants one",
		"yaml"))
	deployment := Of[*appsv1.Deployment](t, Objects(t, rendered(t, dir)))
	if got := Sidecar(t, &deployment.Spec.Template.Spec).Resources.Limits.Cpu().String(); got != "1" {
		t.Errorf("limits.cpu is %s", got)
	}
}

func TestAStatefulSetGetsTheSameSidecar(t *testing.T) {
	dir := copied(t)
	for _, file := range []string{"sidecar/kustomization.yaml", "app-waits/kustomization.yaml",
		"example/deployment.yaml"} {
		path := filepath.Join(dir, filepath.FromSlash(file))
		text := kit.Read(t, path)
		change(t, path, text, strings.ReplaceAll(text, "kind: Deployment", "kind: StatefulSet"))
	}
	deployment, _ := example(t)
	set := Of[*appsv1.StatefulSet](t, Objects(t, rendered(t, filepath.Join(dir, "example"))))
	if !reflect.DeepEqual(set.Spec.Template, deployment.Spec.Template) {
		t.Errorf("another pod: %v", set.Spec.Template)
	}
}

func TestThePodPassesPodSecurityRestricted(t *testing.T) {
	deployment, _ := example(t)
	pod := &deployment.Spec.Template
	for i := range pod.Spec.Containers { // whether the other containers pass is their affair
		pod.Spec.Containers[i].SecurityContext = Sidecar(t, &pod.Spec).SecurityContext
	}
	if why := Restricted(t, pod); why != "" {
		t.Error(why)
	}
	Sidecar(t, &pod.Spec).SecurityContext.Capabilities = nil
	if Restricted(t, pod) == "" {
		t.Error("a container that keeps its capabilities was not refused")
	}
}

// The pod's patience is the sum of what happens in it, one after the other.
func TestThePodWaitsForItsLastDelivery(t *testing.T) {
	deployment, _ := example(t)
	spec := &deployment.Spec.Template.Spec
	loaded, err := config.Load(config.Source{Path: "four lines",
		Bytes: []byte("upstream: http://127.0.0.1:8081\nroutes: [{name: a, path: /a, workflow: a}]\n")})
	if err != nil {
		t.Fatal(err)
	}
	c := loaded.Config
	// kustomize has put it there
	longest := time.Duration(spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds)*time.Second +
		c.Routes[0].Lock.WaitTimeout + c.Upstream.ConnectTimeout + c.Upstream.Timeout + // the last delivery
		c.Etcd.RequestTimeout + 2*time.Second // Hooklock leaves
	if patience := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second; patience < longest {
		t.Errorf("terminationGracePeriodSeconds is %v; a delivery may need %v", patience, longest)
	}
}

func TestTheOptionalComponentsSelectThePods(t *testing.T) {
	dir := copied(t)
	change(t, filepath.Join(dir, "example", "kustomization.yaml"), "  - ../app-waits\n",
		"  - ../app-waits\n  - ../network-policy\n  - ../pod-monitor\n  - ../prometheus-rule\n")
	text := rendered(t, filepath.Join(dir, "example"))
	Objects(t, text) // the NetworkPolicy among them
	for _, kind := range []string{"kind: NetworkPolicy", "kind: PodMonitor"} {
		_, doc, found := strings.Cut(text, kind)
		doc, _, _ = strings.Cut(doc, "\n---")
		if !found || !strings.Contains(doc, "matchLabels:\n      hooklock: sidecar") {
			t.Errorf("%s selects something else:\n%s", kind, doc)
		}
	}
	CheckMonitoring(t, text)
}

// What the first roll-out needs: all new pods beside the old ones, for a minute.
func TestTheFirstRollOutKeepsTheOldPods(t *testing.T) {
	dir := copied(t)
	change(t, filepath.Join(dir, "example", "kustomization.yaml"), "  - ../app-waits\n",
		"  - ../app-waits\n  - ../first-rollout\n")
	spec := Of[*appsv1.Deployment](t, Objects(t, rendered(t, filepath.Join(dir, "example")))).Spec
	if r := spec.Strategy.RollingUpdate; r == nil || r.MaxUnavailable.IntValue() != 0 || r.MaxSurge.StrVal != "100%" ||
		spec.MinReadySeconds != 60 {
		t.Errorf("strategy %v, minReadySeconds %d", spec.Strategy, spec.MinReadySeconds)
	}
}

// deploy/etcd, rendered with certificates that its script made.
func TestTheEtcdIsWhatAnAPIServerTakes(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(kit.Deploy("etcd"))); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	if out, err := exec.Command("bash", filepath.Join(dir, "certificates")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := Objects(t, rendered(t, dir))
	for name, pod := range map[string]*corev1.PodTemplateSpec{"members": &Of[*appsv1.StatefulSet](t, all).Spec.Template,
		"role": &Of[*batchv1.Job](t, all).Spec.Template} {
		if why := Restricted(t, pod); why != "" {
			t.Errorf("%s: Pod Security: %s", name, why)
		}
	}
	flags := strings.Fields(kit.Fenced(t, "docs/kubernetes.md", "## etcd", "etcd"))
	for _, flag := range flags {
		if !slices.Contains(Of[*appsv1.StatefulSet](t, all).Spec.Template.Spec.Containers[0].Args, flag) {
			t.Errorf("the members have no %s, which docs/kubernetes.md asks for", flag)
		}
	}
	shown := kit.Fenced(t, "deploy/etcd/README.md", "begins so", "yaml")
	if shown != kit.Read(t, kit.Deploy("etcd/sidecar.yaml")) {
		t.Error("deploy/etcd/README.md shows another sidecar.yaml")
	}
	_, lines, _ := strings.Cut(shown, "\n")
	if !strings.Contains(kit.Read(t, kit.Deploy("kubernetes/example/sidecar.yaml")), lines) {
		t.Error("the example's etcd is another one")
	}
}

func TestIngressesAreValid(t *testing.T) {
	for _, file := range []string{"f5-nginx/ingress.yaml", "ingress-nginx/ingress.yaml"} {
		if got := Objects(t, kit.Read(t, kit.Deploy(file))); len(got) != 1 {
			t.Errorf("%s: %d objects", file, len(got))
		}
	}
}

func TestMistakesAreSeen(t *testing.T) {
	text := rendered(t, kit.Deploy("kubernetes/example"))
	for from, to := range map[string]string{
		"restartPolicy: Always":  "restartPolicy: Sometimes",
		"path: /livez":           "pathz: /livez",
		"name: hooklock-health":  "name: hooklock-health-and-metrics", // too long for a port
		"mountPath: /etc/hookl":  "mountPath: /var/lib/hookl",         // two volumes at one place
		"name: hooklock-data\n":  "name: hooklock-date\n",             // no such volume
		"failureThreshold: 60":   "failureThreshold: -60",
		"targetPort: hooklock":   "targetPort: Hooklock",
		"cpu: 50m":               "cpu: fifty",
		"type: RuntimeDefault":   "type: Runtime",
		"runAsUser: 65532":       "runAsUser: \"65532\"",
		"containerPort: 18080\n": "containerPort: 1808000\n",
	} {
		if !strings.Contains(text, from) {
			t.Errorf("%q is not in the output", from)
			continue
		}
		if firstProblem(strings.Replace(text, from, to, 1)) == nil {
			t.Errorf("%s instead of %s was not seen", to, from)
		}
	}
}

func firstProblem(text string) error {
	for _, doc := range schema.Documents(text) {
		var o runtime.Object
		var err error
		if o, err = Decode(doc); err == nil {
			err = Validate(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
