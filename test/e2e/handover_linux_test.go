package e2e

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"hooklock/proxy/wiretest"
	"hooklock/test/testkit"
)

// holder is what a socket unit of systemd is: it has a listening socket, and gives it to whom it
// starts.
type holder struct {
	addr   string
	socket *os.File
}

func hold(t *testing.T) *holder {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	socket, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	return &holder{ln.Addr().String(), socket}
}

// start is own with the socket; it does not wait.
func (h *holder) start(t *testing.T, config string, env ...string) *testkit.Hooklock {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "sidecar.yaml")
	write(t, path, config)
	p := testkit.Start(t, testkit.Command{Program: hooklockProgram, Args: []string{"serve", "--config", path}, Dir: dir,
		Env: env, Socket: h.socket})
	return &testkit.Hooklock{Process: p, Config: path}
}

func TestASocketThatIsGivenIsWhereSendersComeIn(t *testing.T) {
	t.Parallel()
	socket := hold(t)
	h := socket.start(t, shared.config(ownPrefix()[1:], ""))
	h.AwaitReady(t)
	if h.Addr != socket.addr {
		t.Errorf("it listens on %s, and %s was given", h.Addr, socket.addr)
	}
	passed(t, testkit.Post(t, socket.addr, at(t, "plain"), "{}", key("1")), 200, "done", "executed")
	leave(t, h.Process)
}

func TestASocketThatCannotBeListenedOnIsRefused(t *testing.T) {
	t.Parallel()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	h := (&holder{socket: file}).start(t, shared.config("no-socket", ""))
	if code := h.ExitCode(t); code != 78 || !strings.Contains(h.Stderr.String(), "ListenStream=") {
		t.Errorf("exit code %d: %s", code, h.Stderr)
	}
	two := hold(t).start(t, shared.config("two-sockets", ""), "LISTEN_FDS=2")
	if code := two.ExitCode(t); code != 78 || !strings.Contains(two.Stderr.String(), "has 2 sockets") {
		t.Errorf("exit code %d: %s", code, two.Stderr)
	}
}

// With an embedded etcd there is one process at a time: the next one can start when the last
// delivery of the one before has ended.
func TestConnectionsWaitWhileTheOnlyReplicaIsReplaced(t *testing.T) {
	t.Parallel()
	socket, config, path := hold(t), embedded(t.TempDir(), ""), at(t, "plain")
	work := shared.holds(t, path)
	old := socket.start(t, config)
	old.AwaitReady(t)
	slow := testkit.GoPost(t, socket.addr, path, "{}", key("slow"))
	work.await(t)
	old.Signal(t, syscall.SIGTERM)
	old.Stderr.AwaitRecord(t, "stopping", nil)
	var waiting []<-chan *testkit.Answer
	for n := range 20 { // who comes before the door is closed is served by the old one
		waiting = append(waiting, testkit.GoPost(t, socket.addr, fmt.Sprintf("%s-%d", path, n), "{}", key("1")))
	}
	work.answer <- testkit.OK("ended")
	passed(t, testkit.Receive(t, "the answer of the slow one", slow), 200, "ended", "executed")
	ended(t, old)
	next := socket.start(t, config)
	for _, answer := range waiting {
		passed(t, testkit.Receive(t, "the answer to one who waited", answer), 200, "done", "executed")
	}
	leave(t, next.Process)
}

// load is senders that deliver one event after the other, half of them on kept connections.
type load struct {
	addr, path string
	stop       chan struct{}
	ended      sync.Once
	senders    sync.WaitGroup
	sent       atomic.Int64 // events
	done       atomic.Int64 // answers 200, executed

	mu    sync.Mutex
	wrong []string
}

func (l *load) begin(senders int) {
	for n := range senders {
		l.senders.Go(func() { l.send(n%2 == 0) })
	}
}

func (l *load) end() {
	l.ended.Do(func() { close(l.stop) })
	l.senders.Wait()
}

func (l *load) send(kept bool) {
	var c *line
	for {
		select {
		case <-l.stop:
			c.close()
			return
		default:
		}
		if c.over() {
			c.close()
			nc, err := net.DialTimeout("tcp", l.addr, testkit.Patience)
			if err != nil {
				l.fail("refused: %v", err)
				return
			}
			c = &line{Conn: nc, br: bufio.NewReader(nc)}
		}
		n := l.sent.Add(1)
		text, err := c.post(fmt.Sprintf("%s-%d", l.path, n))
		if err != nil || text != "200 executed" {
			l.fail("event %d: %s, %v", n, text, err)
			return
		}
		l.done.Add(1)
		c.last = c.last || !kept
	}
}

func (l *load) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// line is a connection of a sender.
type line struct {
	net.Conn
	br   *bufio.Reader
	last bool // the answer said that there is no next one
}

func (c *line) close() {
	if c != nil {
		_ = c.Close()
	}
}

// over reports whether the next delivery needs another connection. As every sender that keeps
// connections does, it looks whether the other side has closed.
func (c *line) over() bool {
	if c == nil || c.last {
		return true
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.br.Peek(1)
	_ = c.SetReadDeadline(time.Time{})
	return !os.IsTimeout(err)
}

// post is one delivery: status and decision.
func (c *line) post(target string) (string, error) {
	_ = c.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := c.Write([]byte(testkit.Request(target, "{}", key("1")))); err != nil {
		return "", err
	}
	res, err := http.ReadResponse(c.br, nil)
	if err != nil {
		return "", err
	}
	c.last = res.Close
	_, err = c.br.Discard(int(res.ContentLength))
	return fmt.Sprint(res.StatusCode, " ", res.Header.Get("Hooklock-Decision")), err
}

// instance starts hooklock@port as its unit says, with another configuration.
func (h *holder) instance(t *testing.T, port, config string) *testkit.Hooklock {
	t.Helper()
	unit, dropIn := readFile(t, "../../deploy/systemd/hooklock.service"),
		readFile(t, "../../deploy/systemd/instance.conf")
	if !strings.Contains(unit, "\nExecStart=/usr/bin/hooklock serve --config /etc/hooklock/sidecar.yaml\n") ||
		!strings.Contains(dropIn, "\nSockets=hooklock.socket\n") {
		t.Fatal("the units start something else")
	}
	var env []string
	for _, m := range regexp.MustCompile(`(?m)^Environment=(.*)$`).FindAllStringSubmatch(dropIn, -1) {
		env = append(env, strings.ReplaceAll(m[1], "%i", port))
	}
	return h.start(t, config, env...)
}

// replacement are the commands of docs/operations.md, which replace the instance old by next.
func replacement(t *testing.T) (commands [][2]string) {
	t.Helper()
	names := map[string]string{"8078": "next", "8079": "old"}
	for _, m := range regexp.MustCompile(`(?m)^systemctl (start|stop) hooklock@(\d+)$`).FindAllStringSubmatch(
		readFile(t, "../../docs/operations.md"), -1) {
		commands = append(commands, [2]string{m[1], names[m[2]]})
	}
	if len(commands) == 0 {
		t.Fatal("docs/operations.md has no commands")
	}
	return commands
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTheCommandsReplaceAReplicaWithoutAGap does what the commands do, in the place of systemctl:
// start returns when the process is ready, stop when it has ended.
func TestTheCommandsReplaceAReplicaWithoutAGap(t *testing.T) {
	t.Parallel()
	socket, own := hold(t), ownPrefix()[1:]
	path, config := at(t, "plain")+"-"+own, shared.config(own, "shutdown_delay: 2s")
	slow := shared.holds(t, path+"-slow")
	_, port, _ := net.SplitHostPort(testkit.FreePort(t))
	units := map[string]*testkit.Hooklock{"old": socket.instance(t, port, config)}
	units["old"].AwaitReady(t)
	l := &load{addr: socket.addr, path: path, stop: make(chan struct{})}
	l.begin(8)
	t.Cleanup(l.end)
	const rounds = 3
	for round := range rounds {
		l.more(t, 20)
		answer := testkit.GoPost(t, socket.addr, path+"-slow", "{}", key(fmt.Sprint(round)))
		slow.await(t)
		for _, command := range replacement(t) {
			if command[0] == "start" {
				_, port, _ := net.SplitHostPort(testkit.FreePort(t))
				units[command[1]] = socket.instance(t, port, config)
				units[command[1]].AwaitReady(t)
				continue
			}
			units[command[1]].Signal(t, syscall.SIGTERM)
			l.more(t, 50)
			slow.answer <- testkit.OK("slow")
			passed(t, testkit.Receive(t, "the slow answer", answer), 200, "slow", "executed")
			ended(t, units[command[1]])
		}
		l.more(t, 20)
		units["old"] = units["next"]
	}
	l.end()
	leave(t, units["old"].Process)
	l.check(t)
}

// more waits for so many more answers, or for a fault.
func (l *load) more(t *testing.T, n int64) {
	t.Helper()
	from := l.done.Load()
	testkit.Until(t, fmt.Sprintf("%d more answers", n), func() bool { return l.done.Load() >= from+n || l.failed() })
}

// check compares what the senders saw with what the upstream saw.
func (l *load) check(t *testing.T) {
	t.Helper()
	count := map[string]int{}
	for _, r := range shared.up.Received("") {
		if strings.HasPrefix(r.Target, l.path+"-") && r.Target != l.path+"-slow" {
			count[r.Target]++
		}
	}
	repeated := 0
	for _, n := range count {
		repeated += n - 1
	}
	for _, wrong := range l.wrong {
		t.Error(wrong)
	}
	if repeated != 0 || len(count) != int(l.sent.Load()) {
		t.Errorf("of %d events %d reached the upstream, %d times again", l.sent.Load(), len(count), repeated)
	}
	t.Logf("%d deliveries: %d refused or cut off, %d repeated", l.sent.Load(), len(l.wrong), repeated)
}

func (l *load) failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.wrong) > 0
}

func TestASocketOfTheFileSystemMayBeGiven(t *testing.T) {
	t.Parallel()
	path := wiretest.SocketPath(t)
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	file, err := ln.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	h := (&holder{addr: path, socket: file}).start(t, shared.config("given-path", ""))
	h.AwaitReady(t)
	passed(t, through(t, path, testkit.Request(at(t, "plain"), "{}", key("1"))), 200, "done", "executed")
	leave(t, h.Process)
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("it removed what it was given: %v", err)
	}
}
