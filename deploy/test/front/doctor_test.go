package front

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/test/testkit"
)

// check is what doctor says of one thing.
type check struct{ Check, Result, Found string }

// doctorOf runs doctor in the place of the replicas behind a front.
func doctorOf(t *testing.T, front string, replicas []string) []check {
	t.Helper()
	config := write(t, filepath.Join(t.TempDir(), "sidecar.yaml"),
		fmt.Sprintf("listen: %s\nadmin: {listen: \"127.0.0.1:0\"}\ndata_dir: %q\nupstream: http://127.0.0.1:1\n"+
			"routes: [{name: plain, path: \"/plain/{w}\", workflow: \"{path.w}\"}]\n", replicas[0], t.TempDir()))
	args := []string{"doctor", "--config", config, "-o", "json", "--probe", "http://" + front + "/plain/acme",
		"--probe-wait", "1s"}
	for _, address := range replicas {
		args = append(args, "--probe-listen", address)
	}
	c := exec.Command(hooklockProgram, args...)
	out, err := c.Output()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	var said struct{ Checks []check }
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return said.Checks
}

// What doctor says of each front, with two replicas behind it of which one dies. Caddy looks after
// its replicas at health.listen, which doctor keeps open: it stands for one there.
func TestDoctorFindsEachFrontAsItsPageSaysThatItIs(t *testing.T) {
	inFront(t, func(t *testing.T, p *proxy) {
		at := []string{testkit.FreePort(t), testkit.FreePort(t)}
		if p.name == "caddy" {
			at = at[:1]
		}
		checks := doctorOf(t, p.as(t, &setup{backends: at}), at)
		want := map[string]string{
			"front http": "ok", "front, headers": "ok", "front, address": "ok", "front, body": "ok",
			"front, spelling": "ok", "front, size": "ok",
			"front, answers": "ok", "front, patience": "ok", "front, retries": "ok", "front, replicas": "ok",
			"front, half-closed": "ok",
		}
		if p.name == "caddy" {
			want["front, half-closed"] = "warning"
		}
		if p.respells {
			want["front, headers"], want["front, spelling"] = "warning", "warning"
		}
		if len(at) == 1 {
			want["front, replicas"] = "skipped"
		}
		for _, f := range checks {
			if hangsUp := p.name == "haproxy" ||
				p.name == "apache"; f.Check == "front, retries" &&
				strings.Contains(f.Found, "hangs up on a sender") != hangsUp {
				t.Errorf("%s: %s", f.Check, f.Found)
			}
			for name, result := range want {
				if strings.HasPrefix(f.Check, name) {
					delete(want, name)
					if f.Result != result {
						t.Errorf("%s is %s, want %s: %s", f.Check, f.Result, result, f.Found)
					}
				}
			}
		}
		for name := range want {
			t.Errorf("nothing is said of %s", name)
		}
	})
}
