package senders

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// startJanus starts a media server that tells of its sessions; an event is a session that begins.
func startJanus(t *testing.T, url string) func(t *testing.T) {
	t.Helper()
	program, addr, dir := testkit.Program(t, "janus"), testkit.FreePort(t), t.TempDir()
	_, port, _ := strings.Cut(addr, ":")
	for name, text := range map[string]string{
		"janus.jcfg": fmt.Sprintf(`
general: { plugins_folder = "%[1]s/none"; transports_folder = "%[1]s/transports"; events_folder = "%[1]s/events"; loggers_folder = "%[1]s/none"; }
nat: { ice_lite = true; }
`, dir),
		"janus.eventhandler.sampleevh.jcfg": fmt.Sprintf(
			`general: { enabled = true; events = "sessions"; grouping = true; backend = %q; }`, url),
		"janus.transport.http.jcfg": fmt.Sprintf(
			`general: { http = true; ip = "127.0.0.1"; port = %s; base_path = "/janus"; }`, port),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for folder, module := range map[string]string{"events": "libjanus_sampleevh.so", "transports": "libjanus_http.so",
		"none": ""} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		found, err := filepath.Glob("/usr/lib/*/janus/" + folder + "/" + module)
		if err != nil || module == "" {
			continue
		}
		if len(found) == 0 {
			t.Skipf("Janus has no %s, so it is not tested", module)
		}
		if err := os.Symlink(found[0], filepath.Join(dir, folder, module)); err != nil {
			t.Fatal(err)
		}
	}
	p := testkit.Start(t, testkit.Command{Program: program,
		Args: []string{"-C", filepath.Join(dir, "janus.jcfg"), "-F", dir, "-e"}})
	await(t, p, addr)
	return func(t *testing.T) {
		t.Helper()
		post(t, "POST", "http://"+addr+"/janus", `{"janus":"create","transaction":"a"}`)
	}
}

// Janus takes any answer for a delivery: what the service refuses, and what it is too slow for,
// runs all the same.
func TestEachSessionIsToldOfInAServiceThatIsSlowOrRefuses(t *testing.T) {
	var came atomic.Int32
	service := testkit.NewUpstream(t, func(r *testkit.Received) string {
		switch came.Add(1) {
		case 1:
			return testkit.Reply(503, "")
		case 2:
			select {
			case <-r.Context.Done():
				return ""
			case <-time.After(5 * time.Second): // the work of the service
			}
		}
		return testkit.OK("{}")
	})
	_, to := front(t, "self-hosted", "janus", service)
	send := startJanus(t, to)
	const sessions = 4
	for range sessions {
		send(t)
	}
	told := map[int64]bool{}
	testkit.Until(t, "each session is told of", func() bool {
		clear(told)
		for _, r := range service.Received("") {
			var events []struct {
				Session int64 `json:"session_id"`
			}
			if err := json.Unmarshal([]byte(r.Body), &events); err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				told[e.Session] = true
			}
		}
		return len(told) == sessions
	})
	requests, times := service.Received(""), map[string]int{}
	for _, r := range requests {
		times[r.Body]++
	}
	if len(times) != len(requests)-1 || times[requests[0].Body] != 2 {
		t.Errorf("%d requests for %d messages: the first alone was refused, and is to run again", len(requests),
			len(times))
	}
	if n := service.MostAtOnce("janus"); n != 1 {
		t.Errorf("%d ran at once", n)
	}
}
