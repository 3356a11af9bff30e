package checks

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// composed reads the compose file as docker compose does: against the specification's schema, with
// what it refers to resolved. change may change its text before.
func composed(t *testing.T, change func(string) string) (*types.Project, error) {
	t.Helper()
	dir := filepath.Join(checkout(t).Root, "deploy/compose")
	text := change(read(t, filepath.Join(dir, "compose.yaml")))
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "compose.yaml"), Content: []byte(text)}},
	})
}

func TestTheComposeFileKeepsTheSpecification(t *testing.T) {
	p, err := composed(t, func(s string) string { return s })
	if err != nil {
		t.Fatal(err)
	}
	if got := p.ServiceNames(); !slices.Equal(got, []string{"etcd-0", "etcd-1", "etcd-2", "hooklock-0", "hooklock-1",
		"legacy", "nginx"}) {
		t.Errorf("services %v", got)
	}
	for _, name := range []string{"hooklock-0", "hooklock-1"} {
		s := p.Services[name]
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.StopGracePeriod == nil ||
			s.StopGracePeriod.String() != "1m0s" {
			t.Errorf("%s: %+v", name, s)
		}
		if s.Build == nil || s.Build.Target != "scratch" {
			t.Errorf("%s is built from %+v", name, s.Build)
		}
		read(t, filepath.Join(s.Build.Context, s.Build.Dockerfile))
	}
	// Nobody may go round Hooklock: the service publishes nothing, and shares a network with
	// Hooklock alone.
	for name, s := range p.Services {
		_, behind := s.Networks["behind"]
		if want := name == "legacy" || strings.HasPrefix(name, "hooklock-"); behind != want {
			t.Errorf("%s is in the network of the service: %v", name, behind)
		}
		if len(s.Ports) > 0 && name != "nginx" {
			t.Errorf("%s publishes %v", name, s.Ports)
		}
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				read(t, v.Source)
			}
		}
	}
	for _, name := range []string{"etcd-0", "etcd-1", "etcd-2"} {
		env := p.Services[name].Environment
		if *env["ETCD_NAME"] != name || *env["ETCD_AUTO_COMPACTION_RETENTION"] == "" ||
			!strings.Contains(*env["ETCD_INITIAL_CLUSTER"], name+"=http://"+name+":2380") {
			t.Errorf("%s: %v", name, env)
		}
	}
}

func TestAMistakeInTheComposeFileIsFound(t *testing.T) {
	for old, mistake := range map[string]string{
		"healthcheck:":         "healthchck:",
		"stop_grace_period: 6": "stop_grace_period: [6, ",
		"  store: {internal":   "  stor: {internal",
	} {
		_, err := composed(t, func(s string) string {
			if !strings.Contains(s, old) {
				t.Fatalf("%q is not in it", old)
			}
			return strings.Replace(s, old, mistake, 1)
		})
		if err == nil {
			t.Errorf("%q was not found", mistake)
		}
	}
}
