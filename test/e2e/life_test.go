package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hooklock/test/testkit"
)

// embedded is a configuration with the embedded etcd in dir.
func embedded(dir, top string) string {
	config := shared.config("embedded", top)
	from := strings.Index(config, "etcd:")
	to := from + strings.Index(config[from:], "\n")
	own := "data_dir: " + dir
	if !strings.Contains(top, "etcd:") {
		own += "\netcd: {request_timeout: 10s}"
	}
	return config[:from] + own + config[to:]
}

func TestRecordsInTheEmbeddedEtcdOutliveARestart(t *testing.T) {
	t.Parallel()
	config := embedded(t.TempDir(), "")
	path := at(t, "plain")
	h := own(t, config)
	first := testkit.Post(t, h.Addr, path, "{}", key("1"))
	passed(t, first, 200, "done", "executed")
	h.Signal(t, syscall.SIGTERM)
	if code := h.ExitCode(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	h = own(t, config)
	again := testkit.Post(t, h.Addr, path, "{}", key("1"))
	passed(t, again, 200, "done", "replayed")
	if again.Execution() != first.Execution() {
		t.Errorf("another execution: %v", again)
	}
}

func TestAKillRightAfterTheAnswerLosesNothing(t *testing.T) {
	t.Parallel()
	config := embedded(t.TempDir(), "")
	path := at(t, "plain")
	for round := range 3 {
		h := testkit.Serve(t, hooklockProgram, config)
		for earlier := range round {
			passed(t, testkit.Post(t, h.Addr, path, "{}", key(fmt.Sprint(earlier))), 200, "done", "replayed")
		}
		passed(t, testkit.Post(t, h.Addr, path, "{}", key(fmt.Sprint(round))), 200, "done", "executed")
		h.Kill()
	}
	reached(t, path, 3)
}

func TestASecondProcessOnOneDataDirIsRefused(t *testing.T) {
	t.Parallel()
	config := embedded(t.TempDir(), "")
	own(t, config)
	second := testkit.StartServe(t, hooklockProgram, config)
	if code := second.ExitCode(t); code == 0 {
		t.Error("exit code 0")
	}
	if said := second.Stderr.String(); !strings.Contains(said, "in use by another hooklock") ||
		!strings.Contains(said, "data_dir") {
		t.Errorf("it said: %s", said)
	}
}

func TestADataDirThatCannotBeWrittenIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dirs := []string{filepath.Join(file, "below")}
	if os.Geteuid() != 0 { // nothing is closed to root
		closed := filepath.Join(t.TempDir(), "closed")
		if err := os.Mkdir(closed, 0o500); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, closed)
	}
	for _, dir := range dirs {
		h := testkit.StartServe(t, hooklockProgram, embedded(dir, ""))
		if code := h.ExitCode(t); code == 0 {
			t.Error("exit code 0")
		}
		if said := h.Stderr.String(); !strings.Contains(said, "set data_dir") ||
			!strings.Contains(said, filepath.Dir(dir)) {
			t.Errorf("it said: %s", said)
		}
	}
}

func TestTheEmbeddedEtcdIsRefusedInsideKubernetesUnlessThereIsOneReplica(t *testing.T) {
	t.Parallel()
	inside := "KUBERNETES_SERVICE_HOST=10.0.0.1"
	dir := t.TempDir()
	h := testkit.StartServe(t, hooklockProgram, embedded(dir, ""), inside)
	if code := h.ExitCode(t); code != 78 {
		t.Errorf("exit code %d", code)
	}
	if said := h.Stderr.String(); !strings.Contains(said, "single_replica") {
		t.Errorf("it said: %s", said)
	}
	h = own(t, embedded(dir, "etcd: {embedded: {single_replica: true}}"), inside)
	h.Stderr.Await(t, "a warning that there may be one replica only", func(line string) bool {
		return strings.Contains(line, `"level":"WARN"`)
	})
}

func TestTheDataDirIsForItsUserAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	own(t, embedded(dir, ""))
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// endsInOrder ends h by signals while a delivery runs, which has its answer, and is recorded,
// before h is gone.
func endsInOrder(t *testing.T, h *testkit.Hooklock, signals ...syscall.Signal) (path string) {
	t.Helper()
	path = at(t, "plain")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	work.await(t)
	for _, s := range signals {
		h.Signal(t, s)
	}
	testkit.Until(t, "no new connection is accepted", func() bool {
		c, err := net.Dial("tcp", h.Addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	work.answer <- testkit.OK("ended")
	a := testkit.Receive(t, "the answer", first)
	if a == nil {
		t.Fatalf("the delivery was cut off:\n%s", h.Stderr)
	}
	passed(t, a, 200, "ended", "executed")
	if code := h.ExitCode(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	return path
}

func TestSIGTERMLetsRunningDeliveriesEnd(t *testing.T) {
	t.Parallel()
	config := embedded(t.TempDir(), "")
	path := endsInOrder(t, own(t, config), syscall.SIGTERM)
	passed(t, testkit.Post(t, own(t, config).Addr, path, "{}", key("1")), 200, "ended", "replayed")
}

func TestDuringShutdownDelayDeliveriesAreAcceptedAndReadyzIs503(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("delay", "shutdown_delay: 6s"))
	h.Signal(t, syscall.SIGTERM)
	testkit.Until(t, "/readyz is 503", func() bool {
		return testkit.Exchange(t, h.Admin, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").Status == 503
	})
	passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")), 200, "done", "executed")
	if code := h.ExitCode(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestWhatDoesNotEndWithinShutdownTimeoutIsUnknownAndNotLost(t *testing.T) {
	t.Parallel()
	config := strings.Replace(embedded(t.TempDir(), ""), "shutdown_timeout: 5s", "shutdown_timeout: 300ms", 1)
	h := testkit.Serve(t, hooklockProgram, config)
	path := at(t, "block")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	work.await(t)
	h.Signal(t, syscall.SIGTERM)
	if a := testkit.Receive(t, "the answer", first); a == nil || a.JSON()["executed"] != "unknown" {
		t.Errorf("%v", a)
	}
	if code := h.ExitCode(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, h.Stderr)
	}
	refused{409, "outcome_unknown", "unknown", "unknown"}.check(t,
		testkit.Post(t, own(t, config).Addr, path, "{}", key("1")))
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	h := testkit.Serve(t, hooklockProgram, shared.config("twice", ""))
	path := at(t, "plain")
	work := shared.holds(t, path)
	first := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	work.await(t)
	h.Signal(t, syscall.SIGTERM)
	h.Stderr.AwaitRecord(t, "stopping", nil)
	insist(t, h.Process)
	if code := h.ExitCode(t); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if a := testkit.Receive(t, "the end of the connection", first); a != nil {
		t.Errorf("%v", a)
	}
	if said := h.Stderr.String(); !strings.Contains(said, "second signal") {
		t.Errorf("it said: %s", said)
	}
}

// insist signals again when what comes is no echo of the signal before any more.
func insist(t *testing.T, p *testkit.Process) {
	t.Helper()
	began := time.Now()
	testkit.Until(t, "a second is over", func() bool { return time.Since(began) > 1200*time.Millisecond })
	p.Signal(t, syscall.SIGINT)
}

// As timeout(1) and wrappers do: the program gets what its group gets, too.
func TestASignalThatComesTwiceIsOne(t *testing.T) {
	t.Parallel()
	endsInOrder(t, testkit.Serve(t, hooklockProgram, shared.config("echo", "")), syscall.SIGTERM, syscall.SIGINT)
}
