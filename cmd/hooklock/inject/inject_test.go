package inject

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"hooklock/cmd/hooklock/cli"
)

const deployment = `# the team's own words
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
        - {name: php-fpm, image: php, ports: [{containerPort: 9000}]}
        - {name: nginx, image: nginx, ports: [{name: http, containerPort: 80}]} # answers
`

const service = `---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec:
  selector: {app: shop}
  ports: [{port: 80, targetPort: http}, {port: 9000}]
`

func injected(t *testing.T, manifests string, o options) (string, []string) {
	t.Helper()
	if o.Image == "" {
		o.Image = "registry.example.com/hooklock:1.0"
	}
	var out bytes.Buffer
	notes, err := injectManifests(strings.NewReader(manifests), &out, o)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), notes
}

// A canary, or blue and green.
func TestTwoDeploymentsBehindOneServiceGetOneEach(t *testing.T) {
	t.Parallel()
	canary := strings.NewReplacer("{name: shop}", "{name: canary}", "containerPort: 80}",
		"containerPort: 8080}").Replace(deployment)
	got, notes := injected(t, deployment+"---\n"+canary+service, options{})
	if len(notes) > 0 {
		t.Errorf("%v", notes)
	}
	for _, want := range []string{"'http://127.0.0.1:80'", "'http://127.0.0.1:8080'", "targetPort: hooklock"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q is there %d times in\n%s", want, strings.Count(got, want), got)
		}
	}
}

// DNS gives the addresses of the pods, and nobody who connects to one asks for a targetPort.
func TestAHeadlessServiceIsNamedAsAWayPast(t *testing.T) {
	t.Parallel()
	headless := strings.Replace(service, "spec:\n", "spec:\n  clusterIP: None\n", 1)
	canary := strings.Replace(deployment, "{name: shop}", "{name: canary}", 1)
	_, notes := injected(t, deployment+"---\n"+canary+headless, options{})
	if len(notes) != 1 || !strings.Contains(notes[0], "Service shop is headless") ||
		!strings.Contains(notes[0], "past Hooklock") {
		t.Errorf("%q", notes)
	}
}

func TestTheServiceChoosesThePortAndTheContainer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ service, url string }{
		"by name":       {service, "http://127.0.0.1:80"},
		"by number":     {strings.Replace(service, "targetPort: http", "targetPort: 80", 1), "http://127.0.0.1:80"},
		"by its own":    {strings.Replace(service, ", targetPort: http", "", 1), "http://127.0.0.1:80"},
		"the other one": {strings.Replace(service, "targetPort: http", "targetPort: 9000", 1), "http://127.0.0.1:9000"},
	} {
		got, notes := injected(t, deployment+c.service, options{})
		if !strings.Contains(got, "'"+c.url+"'") || strings.Count(got, "targetPort: hooklock") != 1 || len(notes) != 0 {
			t.Errorf("%s: %v\n%s", name, notes, got)
		}
		nginx, waits := strings.Index(got, "name: nginx"), strings.Index(got, "sleep:")
		if strings.HasSuffix(c.url, ":80") != (nginx < waits) {
			t.Errorf("%s: another container waits\n%s", name, got)
		}
	}
}

func TestWhatWasThereIsThereStillAndWhatIsNotMeantIsLeftAlone(t *testing.T) {
	t.Parallel()
	other := strings.NewReplacer("shop", "worker", "targetPort: http", "targetPort: 80").Replace("---\n" + deployment)
	got, notes := injected(t, deployment+service+other+"---\n{apiVersion: v1, kind: Secret, metadata: {name: s}}\n",
		options{})
	for _, want := range []string{"# the team's own words", "# answers", "kind: Secret"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is gone:\n%s", want, got)
		}
	}
	if !slices.Equal(notes,
		[]string{"Deployment worker was left alone: no Service among these manifests selects its pods"}) ||
		strings.Count(got, "initContainers") != 1 {
		t.Errorf("%q\n%s", notes, got)
	}
}

// The selector of a Deployment cannot be changed: an API server would refuse what has the label of
// the pods in it, too.
func TestWhatAnAnchorNamesIsChangedInOnePlace(t *testing.T) {
	t.Parallel()
	for name, manifests := range map[string]string{
		"an alias": strings.NewReplacer(
			"metadata: {name: shop}\nspec:\n  template:\n    metadata: {labels: {app: shop}}",
			"metadata: {name: shop, labels: &l {app: shop}} # ours\nspec:\n  selector: {matchLabels: *l}\n  template:\n    metadata: {labels: *l}").Replace(deployment) + service,
		"a merge": strings.NewReplacer("spec:\n  template:\n    metadata: {labels: {app: shop}}",
			"spec:\n  selector: {matchLabels: &l {app: shop}}\n  template:\n    metadata:\n      labels: {<<: *l, app: shop, tier: web}",
			"- {name: php-fpm, image: php, ports: [{containerPort: 9000}]}",
			"- &c {name: php-fpm, image: php, ports: [{containerPort: 9000}]}",
			"- {name: nginx, image: nginx,",
			"- {<<: [*c, {image: other, stdin: true}], name: nginx,").Replace(deployment) + service,
		"a port of the Service": deployment + strings.Replace(service, "[{port: 80, targetPort: http}, {port: 9000}]",
			"[&p {port: 80, targetPort: http}]\nstatus: {p: *p}", 1),
	} {
		got, notes := injected(t, manifests, options{})
		var d struct {
			Spec struct {
				Selector struct {
					Labels map[string]string `yaml:"matchLabels"`
				}
				Template struct {
					Metadata struct{ Labels map[string]string }
					Spec     struct{ Containers []map[string]any }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(got), &d); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, got)
		}
		if d.Spec.Selector.Labels["hooklock"] != "" || d.Spec.Template.Metadata.Labels["hooklock"] != "sidecar" ||
			d.Spec.Template.Metadata.Labels["app"] != "shop" {
			t.Errorf("%s: labels\n%s", name, got)
		}
		if c := d.Spec.Template.Spec.Containers; len(c) != 2 || c[0]["lifecycle"] != nil || c[1]["lifecycle"] == nil ||
			c[0]["image"] != "php" || name == "a merge" && (c[1]["image"] != "php" || c[1]["stdin"] != true) {
			t.Errorf("%s: containers\n%s", name, got)
		}
		if strings.Count(got, "targetPort: hooklock") != 1 || len(notes) != 0 || !strings.Contains(got, "# answers") {
			t.Errorf("%s: %v\n%s", name, notes, got)
		}
	}
}

// As `kubectl get -o yaml` writes several objects.
func TestTheObjectsOfAListAreDocuments(t *testing.T) {
	t.Parallel()
	item := func(object string) string {
		return "- " + strings.ReplaceAll(strings.TrimSpace(strings.TrimPrefix(object, "---\n")), "\n", "\n  ") + "\n"
	}
	got, notes := injected(t, "apiVersion: v1\nkind: List\nitems:\n"+
		item(strings.Replace(deployment, "app: shop", "app: &name shop", 1))+
		item(strings.Replace(service, "app: shop", "app: *name", 1)), options{})
	want, _ := injected(t, deployment+service, options{})
	if got != want || len(notes) != 0 {
		t.Errorf("%v\n%s\nwant\n%s", notes, got, want)
	}
}

func TestPatienceHooksAndTheConfiguration(t *testing.T) {
	t.Parallel()
	mine := strings.NewReplacer("spec:\n      containers",
		"spec:\n      terminationGracePeriodSeconds: 300\n      volumes: [{name: v, emptyDir: {}}]\n      initContainers: [{name: migrate}]\n      containers",
		"containerPort: 80}]}", "containerPort: 80}], lifecycle: {preStop: {sleep: {seconds: 3}}}}").Replace(deployment)
	got, notes := injected(t, mine+service, options{Config: []byte("routes: []\n"), FirstRollout: true})
	var d struct {
		Spec struct {
			MinReadySeconds int `yaml:"minReadySeconds"`
			Template        struct {
				Metadata struct{ Annotations map[string]string }
				Spec     struct {
					Patience       int `yaml:"terminationGracePeriodSeconds"`
					Volumes        []map[string]any
					InitContainers []map[string]any `yaml:"initContainers"`
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(got), &d); err != nil {
		t.Fatal(err)
	}
	pod := d.Spec.Template.Spec
	if pod.Patience != 300 || len(pod.Volumes) != 4 || len(pod.InitContainers) != 2 ||
		pod.InitContainers[0]["name"] != "hooklock" || d.Spec.MinReadySeconds != 60 {
		t.Errorf("%+v", d)
	}
	if len(d.Spec.Template.Metadata.Annotations["hooklock-config"]) != 64 ||
		!strings.Contains(got, "  sidecar.yaml: |\n    routes: []\n") {
		t.Errorf("the configuration is not there:\n%s", got)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "preStop hook of its own") {
		t.Errorf("%q", notes)
	}
}

func TestWhatCannotBeDoneIsSaid(t *testing.T) {
	t.Parallel()
	replace := func(from, to string) string { return strings.Replace(deployment+service, from, to, 1) }
	done, _ := injected(t, deployment+service, options{})
	for name, c := range map[string]struct{ manifests, want string }{
		"nothing":           {"", "give the files of both"},
		"no Service":        {deployment, "give the files of both"},
		"another's Service": {replace("selector: {app: shop}", "selector: {app: other}"), "give the files of both"},
		"two Services": {deployment + service + strings.Replace(service, "name: shop", "name: inner", 1),
			"shop, inner: say with --service"},
		"an unknown port": {replace("targetPort: http", "targetPort: web"),
			`leads to the port "web", which no container has`},
		"an undeclared port": {replace("targetPort: http", "targetPort: 8080"),
			"no container says that it listens on port 8080"},
		"port 0": {replace("targetPort: http", "targetPort: 0"), "port 0, which is none"},
		"a Service with none": {replace("ports: [{port: 80, targetPort: http}, {port: 9000}]", "type: ExternalName"),
			"has no ports"},
		"it has it": {done, "leads to Hooklock already"},
		"a port of ours": {replace("containerPort: 9000", "containerPort: 18080"),
			"php-fpm has port 18080, which Hooklock needs"},
		"no manifests": {"a: [b", "read manifests"},
		"a circle":     {replace("{app: shop}", "&l {app: shop, l: *l}"), "contains itself"},
	} {
		var out bytes.Buffer
		_, err := injectManifests(strings.NewReader(c.manifests), &out, options{Image: "hooklock"})
		if err == nil || !strings.Contains(err.Error(), c.want) || out.Len() != 0 {
			t.Errorf("%s: %v, want %s\n%s", name, err, c.want, &out)
		}
	}
	if got, _ := injected(t, deployment+service+strings.Replace(service, "name: shop", "name: inner", 1),
		options{Service: "inner"}); strings.Count(got, "targetPort: hooklock") != 1 {
		t.Errorf("another Service was led to Hooklock\n%s", got)
	}
}

func FuzzInject(f *testing.F) {
	f.Add(deployment + service)
	f.Add(
		"kind: Deployment\nspec: {template: {metadata: {labels: &l {app: a}}, spec: {containers: [*l]}}}\n---\nkind: Service\nspec: {selector: *l, ports: [80]}\n")
	f.Add("kind: Service\nspec: [1]\n---\nkind: Deployment\nspec: 3\n")
	f.Fuzz(func(t *testing.T, manifests string) {
		var out bytes.Buffer
		if _, err := injectManifests(strings.NewReader(manifests), &out,
			options{Image: "hooklock", Config: []byte("a"), FirstRollout: true}); err != nil {
			return
		}
		var any yaml.Node
		if err := yaml.Unmarshal(out.Bytes(), &any); err != nil {
			t.Errorf("%v in:\n%s", err, &out)
		}
	})
}

func TestAByteOrderMarkIsNoPartOfAManifest(t *testing.T) {
	var files []string
	for name, text := range map[string]string{"deployment.yaml": deployment, "service.yaml": service} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte("\ufeff"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, path)
	}
	var out bytes.Buffer
	cmd := New(&cli.Environment{Stdout: &out, Stderr: io.Discard}, nil)
	cmd.SetArgs(append([]string{"--image", "registry.example.com/hooklock:1.0"}, files...))
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for decoder := yaml.NewDecoder(&out); ; {
		var object map[string]any
		switch err := decoder.Decode(&object); {
		case err == io.EOF:
			return
		case err != nil:
			t.Fatal(err)
		case object != nil && object["apiVersion"] == nil:
			t.Errorf("%v", object)
		}
	}
}
