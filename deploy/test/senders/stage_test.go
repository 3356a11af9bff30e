package senders

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"hooklock/deploy/test/kit"
	"hooklock/test/testkit"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// routeOf returns the example of a page of docs/senders that has the route, with another upstream.
func routeOf(t *testing.T, page, route, upstream string) string {
	t.Helper()
	for _, block := range yamlBlock.FindAllStringSubmatch(kit.Read(t,
		filepath.Join(kit.Root(), "docs", "senders", page+".md")), -1) {
		if strings.Contains(block[1], "name: "+route+"\n") {
			return strings.Replace(block[1], "http://127.0.0.1:8081", upstream, 1)
		}
	}
	t.Fatalf("%s has no route %s", page, route)
	return ""
}

var secretFile = regexp.MustCompile(`/etc/hooklock/([\w.-]+)`)

// front starts a Hooklock with the route that a page shows, and returns its URL.
func front(t *testing.T, page, route string, service *testkit.Upstream) (h *testkit.Hooklock, url string) {
	t.Helper()
	return frontWith(t, page, route, service)
}

// frontWith is front with changes of the route: pairs of old and new text.
func frontWith(t *testing.T, page, route string, service *testkit.Upstream, changes ...string) (h *testkit.Hooklock,
	url string) {
	t.Helper()
	config, secrets := routeOf(t, page, route, service.URL), t.TempDir()
	for _, of := range secretFile.FindAllStringSubmatch(config, -1) { // also of other routes of the page
		if err := os.WriteFile(filepath.Join(secrets, of[1]), []byte("whatever it is"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changes = append(changes, "/etc/hooklock/", secrets+"/")
	h = testkit.Serve(t, hooklockProgram,
		fmt.Sprintf(
			"listen: 127.0.0.1:0\nadmin: {listen: \"127.0.0.1:0\"}\ndata_dir: %q\netcd: {request_timeout: 10s}\n%s",
			t.TempDir(), strings.NewReplacer(changes...).Replace(config)))
	return h, "http://" + h.Addr + "/hooks/" + route
}

// slow is a service that takes a while for each event, and answers all with 200.
func slow(t *testing.T, each time.Duration) *testkit.Upstream {
	t.Helper()
	return testkit.NewUpstream(t, func(r *testkit.Received) string {
		select {
		case <-r.Context.Done():
			return ""
		case <-time.After(each): // the work of the service
		}
		return testkit.OK("{}")
	})
}

// scripted is a service that gives new events the answers it was told to, one after the other, and
// all else 200.
type scripted struct {
	*testkit.Upstream
	mu      sync.Mutex
	answers []string
	seen    map[string]bool // the bodies that came
}

func newScripted(t *testing.T) *scripted {
	t.Helper()
	s := &scripted{seen: map[string]bool{}}
	s.Upstream = testkit.NewUpstream(t, func(r *testkit.Received) string {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.seen[r.Body] || len(s.answers) == 0 || r.Method == "GET" {
			return testkit.OK("{}")
		}
		s.seen[r.Body] = true
		next := s.answers[0]
		s.answers = s.answers[1:]
		return next
	})
	return s
}

// answer sets the next answer.
func (s *scripted) answer(next string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, next)
}

// events returns the bodies that ran, each once. It fails the test if one ran twice.
func events(t *testing.T, service *testkit.Upstream) []string {
	t.Helper()
	seen := map[string]bool{}
	var all []string
	for _, r := range service.Received("") {
		if seen[r.Body] {
			t.Errorf("it ran twice: %s", r.Body)
		}
		seen[r.Body] = true
		all = append(all, r.Body)
	}
	return all
}

// await waits until p listens at addr.
func await(t *testing.T, p *testkit.Process, addr string) {
	t.Helper()
	testkit.Until(t, addr+" answers", func() bool {
		select {
		case <-p.Done():
			t.Fatalf("it has ended:\n%s%s", p.Stdout.String(), p.Stderr.String())
		default:
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}

// post sends a request to a sending program, with header lines, and returns its answer.
func post(t *testing.T, method, url, body string, lines ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	client := &http.Client{Timeout: testkit.Patience}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || res.StatusCode >= 400 {
		t.Fatalf("%s %s: %d %s %v", method, url, res.StatusCode, said, err)
	}
	return res
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// goProgram builds a program of a Go module, in a module of its own, so that it is no requirement
// of this one. Where it cannot be built the test is skipped.
func goProgram(t *testing.T, pkg, requires string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module sender\n\ngo 1.26.0\n\n"+requires+"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, filepath.Base(pkg))
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-o", program, pkg)
	build.Dir = dir
	var said bytes.Buffer
	build.Stderr = &said
	if err := build.Run(); err != nil {
		t.Skipf("%s cannot be built, so this sender is not tested: %v\n%s", pkg, err, &said)
	}
	return program
}
