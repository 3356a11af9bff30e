package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hooklock/proxy/wiretest"
	"hooklock/test/testkit"
)

// through sends one request over a socket of the file system.
func through(t *testing.T, path, request string) *testkit.Answer {
	t.Helper()
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c := testkit.NewConn(t, nc)
	c.Say(request)
	return c.Answer("POST")
}

// behind is a configuration whose door is a socket.
func behind(t *testing.T, name, path string) string {
	t.Helper()
	return strings.Replace(shared.config(name, ""), "listen: 127.0.0.1:0", "listen: unix://"+path, 1)
}

func TestASocketOfTheFileSystemIsWhereSendersComeIn(t *testing.T) {
	t.Parallel()
	path := wiretest.SocketPath(t)
	h := own(t, behind(t, "door", path))
	if info, err := os.Stat(path); err != nil || info.Mode() != os.ModeSocket|0o660 {
		t.Errorf("%v, %v", info, err)
	}
	target := at(t, "plain")
	for i, decision := range []string{"executed", "replayed"} {
		passed(t, through(t, path, testkit.Request(target, "{}", key("1"), "X-Forwarded-For: 203.0.113.7",
			"X-Forwarded-Proto: https")), 200, "done", decision)
		if n := len(shared.up.Received(target)); n != 1 {
			t.Errorf("after %d: %d requests reached the service", i, n)
		}
	}
	// Whoever came over the socket has no address: what the front says stays the last word.
	if got := shared.up.Received(target)[0].Header; got.Get("X-Forwarded-For") != "203.0.113.7" ||
		got.Get("X-Forwarded-Proto") != "https" {
		t.Errorf("%v", got)
	}
	target = at(t, "plain") + "-bare"
	passed(t, through(t, path, testkit.Request(target, "{}", key("2"))), 200, "done", "executed")
	if got, there := shared.up.Received(target)[0].Header["X-Forwarded-For"]; there {
		t.Errorf("X-Forwarded-For: %v", got)
	}
	leave(t, h.Process)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestASocketThatADeadProcessLeftIsTakenOverAndOneInUseIsNot(t *testing.T) {
	t.Parallel()
	path := wiretest.SocketPath(t)
	first := own(t, behind(t, "dead", path))
	second := testkit.StartServe(t, hooklockProgram, behind(t, "second", path))
	if code := second.ExitCode(t); code != 1 ||
		!strings.Contains(second.Stderr.String(), "listen: listen on unix://"+path+": address already in use") {
		t.Errorf("exit code %d: %s", code, second.Stderr)
	}
	first.Kill()
	<-first.Done()
	third := own(t, behind(t, "third", path))
	passed(t, through(t, path, testkit.Request(at(t, "plain"), "{}", key("1"))), 200, "done", "executed")
	leave(t, third.Process)
}

func TestAFileThatIsNoSocketIsNotRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "precious")
	write(t, path, "data")
	h := testkit.StartServe(t, hooklockProgram, behind(t, "file", path))
	if code := h.ExitCode(t); code != 1 || !strings.Contains(h.Stderr.String(), "address already in use") {
		t.Errorf("exit code %d: %s", code, h.Stderr)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "data" {
		t.Errorf("%q, %v", text, err)
	}
}
