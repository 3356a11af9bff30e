package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"hooklock/test/testkit"
)

// logReader reads the log of a process from a pipe, as long as the test wants it to.
type logReader struct {
	pipe  *os.File
	gate  sync.Mutex
	ended chan struct{}
}

// serveRead starts a Hooklock of this test's own whose standard error is a pipe.
func serveRead(t *testing.T, config string) (*testkit.Hooklock, *logReader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	h := testkit.StartServeTo(t, w, hooklockProgram, config)
	_ = w.Close() // the process has its own
	l := &logReader{pipe: r, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		text := make([]byte, 4096)
		for {
			n, err := r.Read(text)
			if err != nil {
				return
			}
			l.gate.Lock()
			_, _ = h.Stderr.Write(text[:n])
			l.gate.Unlock()
		}
	}()
	t.Cleanup(func() { h.Kill(); l.die() })
	h.AwaitReady(t)
	return h, l
}

// die ends the reader.
func (l *logReader) die() { _ = l.pipe.Close(); <-l.ended }

// flood delivers an event again and again until lines are lost.
func flood(t *testing.T, h *testkit.Hooklock, path string) {
	t.Helper()
	const rounds, each = 100, 200    // lines of a quarter of these would be more than may wait
	path += strings.Repeat("w", 400) // it is in each line
	requests := strings.Repeat(testkit.Request(path, "{}", key("1")), each)
	for range rounds {
		c := testkit.Dial(t, h.Addr)
		sent := make(chan struct{})
		go func() { defer close(sent); c.Say(requests) }()
		for n := range each {
			if a := c.Answer("POST"); a.Status != 200 {
				t.Fatalf("delivery %d: %v", n, a)
			}
		}
		<-sent
		_ = c.Close()
		if dropped(t, h) > 0 {
			return
		}
	}
	t.Fatal("no line is lost")
}

var droppedLines = regexp.MustCompile(`(?m)^hooklock_log_lines_dropped_total (\S+)$`)

// dropped is how many lines of the log were lost.
func dropped(t *testing.T, h *testkit.Hooklock) int {
	t.Helper()
	found := droppedLines.FindStringSubmatch(h.Metrics(t))
	if found == nil {
		t.Fatal("no counter of lost lines")
	}
	n, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

func TestAReaderOfTheLogThatStopsReadingStopsNoDeliveryAndItsMissingLinesAreCounted(t *testing.T) {
	t.Parallel()
	h, reader := serveRead(t, shared.config("stalled-log", ""))
	token := localToken(t, h)
	if n := dropped(t, h); n != 0 {
		t.Errorf("%d lost before anything happened", n)
	}
	reader.gate.Lock()
	goOn := sync.OnceFunc(reader.gate.Unlock)
	defer goOn()
	flood(t, h, at(t, "plain"))

	// Changes are refused when their lines cannot be written, and those that are made have one.
	var made []string
	testkit.Until(t, "a change is refused", func() bool {
		name := fmt.Sprintf("of-the-stall-%d", len(made))
		status, a := asked(t, h, "POST", "/v1/locks/"+name+"/acquire", token, `{"ttl":"1m"}`)
		if status == 201 {
			made = append(made, name)
			return false
		}
		if status != 503 || a["code"] != "audit_unavailable" || a["retryAfter"] == nil {
			t.Fatalf("%d %v", status, a)
		}
		if status, _ := asked(t, h, "GET", "/v1/locks/"+name, "", ""); status != 404 {
			t.Errorf("it was refused, and the lock is taken: %d", status)
		}
		return true
	})
	passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("still")), 200, "done", "executed")

	goOn()
	h.Stderr.AwaitRecord(t, "log.lost", nil)
	said := 0
	testkit.Until(t, "the log says how many are missing", func() bool {
		said = 0
		for _, r := range h.Stderr.Records() {
			if r.Text("msg") == "log.lost" {
				said += int(r.Number("lines"))
			}
		}
		return said == dropped(t, h)
	})
	for _, name := range made {
		h.Stderr.AwaitRecord(t, "admin.audit", func(r testkit.Record) bool {
			return r.Text("workflow") == name && r.Text("result") == "done"
		})
	}
	testkit.Until(t, "changes are made again", func() bool {
		status, _ := asked(t, h, "POST", "/v1/locks/after-the-stall/acquire", token, `{"ttl":"1m"}`)
		return status == 201
	})
	h.Stderr.AwaitRecord(t, "admin.audit", func(r testkit.Record) bool {
		return r.Text("workflow") == "after-the-stall"
	})
	leave(t, h.Process)
	h.Stderr.AwaitRecord(t, "stopped", nil)
}

func TestAProcessEndsAsAskedAlthoughItsLogIsNotRead(t *testing.T) {
	t.Parallel()
	h, reader := serveRead(t, shared.config("stalled-end", ""))
	reader.gate.Lock()
	defer reader.gate.Unlock()
	path := at(t, "plain")
	for n := range 150 { // more than a pipe holds
		passed(t, testkit.Post(t, h.Addr, path, "{}", key(fmt.Sprint(n))), 200, "done", "executed")
	}
	h.Signal(t, syscall.SIGTERM)
	if code := h.ExitCode(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestAReaderOfTheLogThatDiesEndsNoDelivery(t *testing.T) {
	t.Parallel()
	h, reader := serveRead(t, shared.config("dead-log", ""))
	path := at(t, "plain")
	work := shared.holds(t, path)
	running := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	work.await(t)
	reader.die()
	for n := range 20 {
		passed(t, testkit.Post(t, h.Addr, path+"-other", "{}", key(fmt.Sprint(n))), 200, "done", "executed")
	}
	testkit.Until(t, "its lines are counted", func() bool { return dropped(t, h) > 0 })
	work.answer <- testkit.OK("ran")
	passed(t, testkit.Receive(t, "the answer", running), 200, "ran", "executed")
	leave(t, h.Process)
}

func TestAFullDiskUnderTheLogStopsNoDeliveryAndNoChangeIsMadeUnseen(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("needs /dev/full:", err)
	}
	defer full.Close()
	h := serveUnheard(t, full, "full-log")
	passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")), 200, "done", "executed")
	testkit.Until(t, "lines are lost", func() bool { return dropped(t, h) > 0 })
	status, a := asked(t, h, "POST", "/v1/locks/full/acquire", localToken(t, h), `{"ttl":"1m"}`)
	if detail, _ := a["detail"].(string); status != 503 || a["code"] != "audit_unavailable" ||
		!strings.Contains(detail, "no space left") {
		t.Errorf("%d %v", status, a)
	}
	leave(t, h.Process)
}

// serveUnheard starts a Hooklock whose log nobody can read: where it is, it is told.
func serveUnheard(t *testing.T, stderr *os.File, name string) *testkit.Hooklock {
	t.Helper()
	door, admin := testkit.FreePort(t), testkit.FreePort(t)
	config := strings.NewReplacer("listen: 127.0.0.1:0", "listen: "+door, "127.0.0.1:0",
		admin).Replace(shared.config(name, ""))
	h := testkit.StartServeTo(t, stderr, hooklockProgram, config)
	h.Addr, h.Admin = door, admin
	client := &http.Client{Timeout: testkit.Patience}
	defer client.CloseIdleConnections()
	testkit.Until(t, "/readyz is 200", func() bool {
		res, err := client.Get("http://" + admin + "/readyz")
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return h
}

func TestWithoutAStandardErrorItRuns(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs sh:", err)
	}
	door, admin := testkit.FreePort(t), testkit.FreePort(t)
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	write(t, path, strings.NewReplacer("listen: 127.0.0.1:0", "listen: "+door, "127.0.0.1:0",
		admin).Replace(shared.config("no-log", "")))
	p := testkit.Start(t, testkit.Command{Program: shell,
		Args: []string{"-c", `exec "$0" serve --config "$1" 2>&-`, hooklockProgram, path}, Dir: filepath.Dir(path)})
	testkit.Until(t, "it serves", func() bool {
		a, err := http.Get("http://" + admin + "/readyz")
		if err != nil {
			return false
		}
		_ = a.Body.Close()
		return a.StatusCode == http.StatusOK
	})
	http.DefaultClient.CloseIdleConnections()
	passed(t, testkit.Post(t, door, at(t, "plain"), "{}", key("1")), 200, "done", "executed")
	leave(t, p)
}

// A server that cannot start says why, also where its log was open already; a command whose reader
// has gone ends as any other program.
func TestTheLastWordsOfAStartThatFailsComeOut(t *testing.T) {
	t.Parallel()
	taken := shared.patient.Addr
	h := testkit.StartServe(t, hooklockProgram, strings.Replace(shared.config("taken", ""), "listen: 127.0.0.1:0",
		"listen: "+taken, 1))
	if code := h.ExitCode(t); code != 1 || !strings.Contains(h.Stderr.String(), "hooklock: listen: listen on "+taken) {
		t.Errorf("%d: %s", code, h.Stderr)
	}
}

func TestACommandWhoseReaderHasGoneEndsQuietly(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer w.Close()
	var said strings.Builder
	c := exec.CommandContext(t.Context(), hooklockProgram, "config", "schema")
	c.Stdout, c.Stderr = w, &said
	_ = c.Run()
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGPIPE ||
		said.Len() > 0 {
		t.Errorf("%v: %s", c.ProcessState, said.String())
	}
}
