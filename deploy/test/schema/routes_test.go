package schema

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
)

// route is a file with custom resources, and where their definitions are.
type route struct {
	file   string
	module string
	crds   []string // patterns below the module
}

var routes = []route{
	{"gateway-api/httproute.yaml", "sigs.k8s.io/gateway-api@v1.6.3",
		[]string{"config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"}},
	{"gateway-api/envoy-gateway.yaml", "github.com/envoyproxy/gateway@v1.9.1", []string{
		"charts/gateway-crds-helm/templates/generated/gateway.envoyproxy.io_backendtrafficpolicies.yaml",
		"charts/gateway-crds-helm/templates/generated/gateway.envoyproxy.io_clienttrafficpolicies.yaml",
	}},
	{"traefik/ingressroute.yaml", "github.com/traefik/traefik/v3@v3.7.13",
		[]string{"docs/content/reference/dynamic-configuration/kubernetes-crd-definition-v1.yml"}},
	{"istio/virtualservice.yaml", "istio.io/api@v1.31.1", []string{"kubernetes/customresourcedefinitions.gen.yaml"}},
}

func definitions(t *testing.T, r *route) Kinds {
	t.Helper()
	dir, kinds := kit.Source(t, r.module), Kinds{}
	for _, pattern := range r.crds {
		if err := kinds.Add(kit.Read(t, filepath.Join(dir, filepath.FromSlash(pattern)))); err != nil {
			t.Fatal(err)
		}
	}
	return kinds
}

func check(t *testing.T, kinds Kinds, text string) []string {
	t.Helper()
	objects, err := Objects(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) == 0 {
		t.Fatal("no object")
	}
	var problems []string
	for _, o := range objects {
		problems = append(problems, kinds.Check(o)...)
	}
	return problems
}

func TestRoutesAreWhatTheirDefinitionsAllow(t *testing.T) {
	for _, r := range routes {
		t.Run(r.file, func(t *testing.T) {
			for _, p := range check(t, definitions(t, &r), kit.Read(t, kit.Deploy(r.file))) {
				t.Error(p)
			}
		})
	}
}

// Each of these is a mistake that somebody could make in the file; the definitions have to see it,
// or the test above proves nothing.
func TestMistakesInRoutesAreSeen(t *testing.T) {
	for _, c := range []struct{ file, from, to, want string }{
		{"gateway-api/httproute.yaml", "backendRequest: 60s", "backendRequest: 61s",
			"backendRequest timeout cannot be longer than request timeout"}, // a CEL rule
		{"gateway-api/httproute.yaml", "hostnames:", "hostnamez:", "unknown field spec.hostnamez"},
		{"gateway-api/httproute.yaml", "port: 80", "port: 80000", "port"},
		{"gateway-api/envoy-gateway.yaml", "requestTimeout: 60s", "requestTimeout: 60", "requestTimeout"},
		{"gateway-api/envoy-gateway.yaml", "KeepUnchanged", "Keep", "escapedSlashesAction"},
		{"gateway-api/envoy-gateway.yaml", "kind: HTTPRoute", "kind: Service", "targetRefs"}, // a CEL rule
		{"traefik/ingressroute.yaml", "kind: Rule", "kind: Rulez", "kind"},
		{"traefik/ingressroute.yaml", "maxRequestBodyBytes: 16777216", "maxRequestBodyBytes: 16MiB",
			"maxRequestBodyBytes"},
		{"istio/virtualservice.yaml", "attempts: 0", "attemptz: 0", "attemptz"},
		{"istio/virtualservice.yaml", "timeout: 60s", "timeout: sixty", "timeout"}, // a CEL rule
	} {
		i := slices.IndexFunc(routes, func(r route) bool { return r.file == c.file })
		t.Run(c.file+" "+c.to, func(t *testing.T) {
			text := kit.Read(t, kit.Deploy(c.file))
			if !strings.Contains(text, c.from) {
				t.Fatalf("%q is not in %s", c.from, c.file)
			}
			problems := strings.Join(check(t, definitions(t, &routes[i]), strings.Replace(text, c.from, c.to, 1)), "\n")
			if !strings.Contains(problems, c.want) {
				t.Errorf("got %q, want %q", problems, c.want)
			}
		})
	}
}
