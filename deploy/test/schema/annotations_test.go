package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hooklock/deploy/test/kit"
)

// Neither of the two nginx controllers can be fetched as a Go module, so what they know was read by
// hand, and is written down here: of F5's in the definition of VirtualServer and in
// internal/configs/annotations.go at v5.5.4, of ingress-nginx in its page of annotations. A
// misspelt annotation is not refused by anybody: it is passed over in silence.
var (
	f5Upstream = map[string]string{
		"backup": "string", "backupPort": "integer", "buffer-size": "string", "buffering": "boolean",
		"busy-buffers-size":       "string",
		"client-body-buffer-size": "string", "client-max-body-size": "string", "connect-timeout": "string",
		"fail-timeout": "string",
		"keepalive":    "integer", "lb-method": "string", "max-conns": "integer", "max-fails": "integer",
		"name":                  "string",
		"next-upstream":         "string",
		"next-upstream-timeout": "string", "next-upstream-tries": "integer", "ntlm": "boolean", "port": "integer",
		"read-timeout": "string",
		"send-timeout": "string", "service": "string", "slow-start": "string", "type": "string",
		"use-cluster-ip": "boolean",
	}
	f5Annotations = []string{
		"client-body-buffer-size", "client-max-body-size", "custom-http-errors", "fail-timeout", "keepalive",
		"max-conns", "max-fails", "proxy-buffering",
		"proxy-connect-timeout", "proxy-next-upstream", "proxy-next-upstream-timeout", "proxy-next-upstream-tries",
		"proxy-read-timeout", "proxy-send-timeout",
	}
	retiredAnnotations = map[string]string{
		"proxy-next-upstream": `off`, "proxy-body-size": `\d+m`, "proxy-request-buffering": `on|off`,
		"custom-http-errors":    `[\d,]+`,
		"proxy-connect-timeout": `\d+`, "proxy-send-timeout": `\d+`, "proxy-read-timeout": `\d+`,
		"proxy-next-upstream-tries": `\d+`,
	}
)

func one(t *testing.T, file string) map[string]any {
	t.Helper()
	objects, err := Objects(kit.Read(t, kit.Deploy(file)))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%s: %d objects, %v", file, len(objects), err)
	}
	return objects[0]
}

func annotations(t *testing.T, file, prefix string) map[string]string {
	t.Helper()
	all, _ := one(t, file)["metadata"].(map[string]any)["annotations"].(map[string]any)
	found := map[string]string{}
	for name, value := range all {
		text, ok := value.(string)
		rest, ours := strings.CutPrefix(name, prefix)
		if !ok || !ours {
			t.Errorf("%s: %s: %v: want a text, and the prefix %s", file, name, value, prefix)
		}
		found[rest] = text
	}
	if len(found) == 0 {
		t.Errorf("%s: no annotations", file)
	}
	return found
}

func TestAnnotationsForNginxControllersAreOnesThatTheyKnow(t *testing.T) {
	for name := range annotations(t, "f5-nginx/ingress.yaml", "nginx.org/") {
		if !slices.Contains(f5Annotations, name) {
			t.Errorf("f5-nginx/ingress.yaml: nobody knows nginx.org/%s", name)
		}
	}
	for name, value := range annotations(t, "ingress-nginx/ingress.yaml", "nginx.ingress.kubernetes.io/") {
		if want := retiredAnnotations[name]; want == "" || !regexp.MustCompile("^("+want+")$").MatchString(value) {
			t.Errorf("ingress-nginx/ingress.yaml: %s: %s, want %s", name, value, want)
		}
	}
}

func TestFieldsOfTheVirtualServerAreOnesThatItHas(t *testing.T) {
	spec, _ := one(t, "f5-nginx/virtualserver.yaml")["spec"].(map[string]any)
	upstreams, _ := spec["upstreams"].([]any)
	if len(upstreams) != 1 {
		t.Fatalf("%d upstreams", len(upstreams))
	}
	kinds := map[string]string{"string": "string", "int64": "integer", "bool": "boolean"}
	for name, value := range upstreams[0].(map[string]any) {
		if got := kinds[fmt.Sprintf("%T", value)]; got != f5Upstream[name] {
			t.Errorf("%s is %s, want %q", name, got, f5Upstream[name])
		}
	}
	for name := range spec {
		if !slices.Contains([]string{"host", "tls", "upstreams", "routes"}, name) {
			t.Errorf("spec.%s is not known here", name)
		}
	}
}

func TestTheRetiredOneSaysSoFirst(t *testing.T) {
	if text := kit.Read(t, kit.Deploy("ingress-nginx/ingress.yaml")); !strings.HasPrefix(text, "# RETIRED") {
		t.Errorf("ingress-nginx/ingress.yaml begins with %.40q", text)
	}
}
