package senders

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// startMonit starts one that looks each second at a file, and tells of each change of it. It keeps
// what was refused and sends it again.
func startMonit(t *testing.T, url string) (change func(t *testing.T)) {
	t.Helper()
	program, dir := testkit.Program(t, "monit"), t.TempDir()
	watched := filepath.Join(dir, "watched")
	if err := os.Mkdir(filepath.Join(dir, "queue"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(watched, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	config := write(t, "monitrc", fmt.Sprintf(`
set daemon 1
set pidfile %[1]s/pid
set idfile %[1]s/id
set statefile %[1]s/state
set mmonit %[2]s with timeout 1 second
set eventqueue basedir %[1]s/queue slots 100
check file watched path %[1]s/watched
 if changed timestamp then alert
`, dir, url))
	p := testkit.Start(t, testkit.Command{Program: program, Args: []string{"-I", "-c", config}})
	p.AwaitLine(t, p.Stdout, "heartbeat started")
	later := time.Now()
	return func(t *testing.T) {
		t.Helper()
		later = later.Add(time.Minute)
		if err := os.Chtimes(watched, later, later); err != nil {
			t.Fatal(err)
		}
	}
}

// A message without an answer comes again with a new state of all services, and its event runs
// once.
func TestEachEventOfMonitRunsOnceInAServiceThatIsSlowerThanItWaits(t *testing.T) {
	const changed = "changed from"
	service := testkit.NewUpstream(t, func(r *testkit.Received) string {
		if strings.Contains(r.Body, changed) {
			select {
			case <-r.Context.Done():
				return ""
			case <-time.After(2500 * time.Millisecond): // the work of the service
			}
		}
		return testkit.OK("")
	})
	h, to := front(t, "self-hosted", "monit", service)
	change := startMonit(t, to)
	told := func(text string) (bodies []string) {
		for _, r := range service.Received("") {
			if strings.Contains(r.Body, text) {
				bodies = append(bodies, r.Body)
			}
		}
		return bodies
	}
	testkit.Until(t, "Monit has seen the file", func() bool { return len(told("<modify>")) > 0 })
	change(t)
	testkit.Until(t, "the event is told", func() bool { return len(told(changed)) > 0 })
	_, sec, _ := strings.Cut(told(changed)[0], "<event><collected_sec>")
	sec, usec, _ := strings.Cut(sec, "</collected_sec><collected_usec>")
	usec, _, _ = strings.Cut(usec, "<")
	testkit.Until(t, "Monit gets the answer to the event", func() bool {
		for _, line := range strings.Split(h.Stderr.String(), "\n") {
			if strings.Contains(line, `"decision":"replayed"`) &&
				strings.Contains(line, `"event_id":"`+sec+"."+usec+`"`) {
				return true
			}
		}
		return false
	})
	if n := len(told(changed)); n != 1 {
		t.Errorf("the event ran %d times", n)
	}
}
