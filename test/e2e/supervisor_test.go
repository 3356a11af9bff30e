package e2e

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hooklock/test/testkit"
)

// systemd is the other end of sd_notify(3).
type systemd struct {
	env  string
	told chan map[string]string // one datagram each
}

// newSystemd listens on address: a path, or @ and a name.
func newSystemd(t *testing.T, address string) *systemd {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	s := &systemd{env: "NOTIFY_SOCKET=" + address, told: make(chan map[string]string, 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 4096)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			message := map[string]string{}
			for line := range strings.Lines(string(buffer[:n])) {
				name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
				message[name] = value
			}
			s.told <- message
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	return s
}

// next is the next message that is no sign of life.
func (s *systemd) next(t *testing.T) map[string]string {
	t.Helper()
	for {
		message := testkit.Receive(t, "a message to systemd", s.told)
		if message["WATCHDOG"] == "" {
			return message
		}
	}
}

// sockets are both kinds of address that systemd may give.
func sockets(t *testing.T) map[string]string {
	dir, err := os.MkdirTemp("", "n") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return map[string]string{"path": filepath.Join(dir, "notify"),
		"abstract": fmt.Sprintf("@hooklock-test-%d", os.Getpid())}
}

func TestSystemdIsToldOfReadyReloadAndStop(t *testing.T) {
	t.Parallel()
	for name, address := range sockets(t) {
		t.Run(name, func(t *testing.T) {
			boss := newSystemd(t, address)
			config := shared.config("notify-"+name, "")
			h := own(t, config, boss.env)
			if got := boss.next(t); got["READY"] != "1" || got["STATUS"] != "serving" {
				t.Fatalf("at the start: %v", got)
			}

			before := monotonic(t)
			h.Signal(t, syscall.SIGHUP)
			if got := boss.next(t); got["RELOADING"] != "1" || micros(t, got["MONOTONIC_USEC"]) < before ||
				micros(t, got["MONOTONIC_USEC"]) > monotonic(t) {
				t.Errorf("at SIGHUP, after %d: %v", before, got)
			}
			if got := boss.next(t); got["READY"] != "1" || !strings.Contains(got["STATUS"], "taken over") {
				t.Errorf("after the reload: %v", got)
			}

			write(t, h.Config, config+"\nnonsense: 1\n")
			refused := map[string]string{}
			testkit.Until(t, "the refusal is told", func() bool {
				refused = boss.next(t)
				return strings.Contains(refused["STATUS"], "refused")
			})
			if refused["READY"] != "1" {
				t.Errorf("a refused configuration is no end: %v", refused)
			}

			h.Signal(t, syscall.SIGTERM)
			// shutdown_timeout 5 s, etcd's 10 s, and 10 s to spare
			if got := boss.next(t); got["STOPPING"] != "1" || got["EXTEND_TIMEOUT_USEC"] != "25000000" {
				t.Errorf("at SIGTERM: %v", got)
			}
			ended(t, h)
		})
	}
}

func TestTheWatchdogIsServedUntilTheEnd(t *testing.T) {
	t.Parallel()
	boss := newSystemd(t, sockets(t)["path"])
	h := own(t, shared.config("watchdog", ""), boss.env, "WATCHDOG_USEC=200000")
	work := newHeld(t)
	path := at(t, "plain")
	shared.on(t, path, work.handle)
	answer := testkit.GoPost(t, h.Addr, path, "{}", key("1"))
	work.await(t)
	signs := func(n int) {
		t.Helper()
		for n > 0 {
			if testkit.Receive(t, "a sign of life", boss.told)["WATCHDOG"] == "1" {
				n--
			}
		}
	}
	signs(3)
	h.Signal(t, syscall.SIGTERM)
	for boss.next(t)["STOPPING"] != "1" { //nolint:revive // READY comes before
	}
	signs(3)
	work.answer <- testkit.OK("done")
	passed(t, testkit.Receive(t, "the answer", answer), 200, "done", "executed")
	ended(t, h)
}

func TestAWatchdogThatIsMeantForAnotherProcessIsNotAnswered(t *testing.T) {
	t.Parallel()
	boss := newSystemd(t, sockets(t)["path"])
	h := own(t, shared.config("not-watched", ""), boss.env, "WATCHDOG_USEC=2000", "WATCHDOG_PID=1")
	passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")), 200, "done", "executed")
	h.Signal(t, syscall.SIGTERM)
	for {
		message := testkit.Receive(t, "a message to systemd", boss.told)
		if message["WATCHDOG"] != "" {
			t.Fatal("it was answered")
		}
		if message["STOPPING"] != "" {
			break
		}
	}
	ended(t, h)
}

func TestAStartWithoutEtcdIsOverAllTheSame(t *testing.T) {
	t.Parallel()
	boss := newSystemd(t, sockets(t)["path"])
	config := strings.NewReplacer(shared.etcd.Endpoint, "http://127.0.0.1:1", "request_timeout: 10s",
		"request_timeout: 1s").Replace(shared.config("no-etcd", ""))
	h := testkit.StartServe(t, hooklockProgram, config, boss.env)
	if got := boss.next(t); got["READY"] != "1" || !strings.Contains(got["STATUS"], "no session yet") {
		t.Errorf("got %v", got)
	}
	leave(t, h.Process)
}

func TestASupervisorThatIsAwayChangesNothing(t *testing.T) {
	t.Parallel()
	h := own(t, shared.config("unheard", ""), "NOTIFY_SOCKET="+filepath.Join(t.TempDir(), "away"))
	passed(t, testkit.Post(t, h.Addr, at(t, "plain"), "{}", key("1")), 200, "done", "executed")
	h.Stderr.AwaitRecord(t, "supervisor.unreachable", nil)
}

func TestASupervisorThatHangsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	address := sockets(t)["path"]
	// it never reads: its queue fills
	boss, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer boss.Close()
	h := own(t, shared.config("hung", ""), "NOTIFY_SOCKET="+address, "WATCHDOG_USEC=2000")
	h.Stderr.AwaitRecord(t, "supervisor.unreachable", nil)
	h.Signal(t, syscall.SIGTERM)
	ended(t, h)
}

// ended waits for the end of a process that was asked to end.
func ended(t *testing.T, h *testkit.Hooklock) {
	t.Helper()
	if code := h.ExitCode(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, tail(h.Stderr.String()))
	}
}

func monotonic(t *testing.T) int64 {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil && !errors.Is(err, unix.EINTR) {
		t.Fatal(err)
	}
	return time.Duration(now.Nano()).Microseconds()
}

func micros(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
