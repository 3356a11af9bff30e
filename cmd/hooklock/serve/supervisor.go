package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"hooklock/cmd/hooklock/cli"
)

// startPatience is how long the start waits for the first session before it reports ready. Without
// etcd there is none, and a restart would not help: deliveries get 503 meanwhile, and unmatched
// paths pass through.
const startPatience = 10 * time.Second

// supervisor reports the state of this process to systemd by sd_notify(3): ready, reloading,
// stopping, and the watchdog's keep-alive. Without a socket it does nothing. It is not safe for
// concurrent use.
type supervisor struct {
	log      *slog.Logger
	socket   *net.UnixAddr // nil: there is none
	isReady  bool
	patience *time.Timer
	ticker   *time.Ticker

	// Late is when READY is sent without a session; Beat is when to call alive. Beat is nil without
	// a watchdog.
	Late <-chan time.Time
	Beat <-chan time.Time
}

// newSupervisor reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID of this process. A socket is a
// path, or a name that begins with @ (Linux's abstract ones). close ends its timers.
func newSupervisor(log *slog.Logger) *supervisor {
	s := &supervisor{log: log, patience: time.NewTimer(startPatience)}
	s.Late = s.patience.C
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" || address[0] != '/' && address[0] != '@' {
		return s
	}
	s.socket = &net.UnixAddr{Name: address, Net: "unixgram"}
	if limit, err := daemon.SdWatchdogEnabled(false); err == nil && limit > 0 {
		s.ticker = time.NewTicker(limit / 2) // as sd_watchdog_enabled(3) advises
		s.Beat = s.ticker.C
	}
	return s
}

func (s *supervisor) close() {
	s.patience.Stop()
	if s.ticker != nil {
		s.ticker.Stop()
	}
}

// reportReady reports the end of the start. It is called again, with another status, when a session
// opens later.
func (s *supervisor) reportReady(status string) {
	s.isReady = true
	s.Late = nil
	s.sendLines(daemon.SdNotifyReady, "STATUS="+status)
}

// beginReload begins a reload, unless the start is not over. The time is what Type=notify-reload
// compares with that of its signal, to tell this reload from an older one.
func (s *supervisor) beginReload() {
	if !s.isReady {
		return
	}
	s.sendLines(daemon.SdNotifyReloading, strings.TrimSuffix(daemon.SdNotifyMonotonicUsec(), "\n"))
}

// endReload ends a reload. A refused configuration is no failure of the process: the old one stays
// in force.
func (s *supervisor) endReload(taken bool) {
	status := "STATUS=serving; the changed configuration was taken over"
	if !taken {
		status = "STATUS=serving with the old configuration; the changed one was refused, see the log"
	}
	if !s.isReady { // the start is not over
		s.sendLines(status)
		return
	}
	s.sendLines(daemon.SdNotifyReady, status)
}

// announceStop asks for the time that a graceful end may take, so that the unit's TimeoutStopSec
// need not know the configuration.
func (s *supervisor) announceStop(within time.Duration) {
	s.Late = nil
	s.sendLines(daemon.SdNotifyStopping, "STATUS=waiting for running deliveries", "EXTEND_TIMEOUT_USEC="+
		strconv.FormatInt(within.Microseconds(), 10))
}

// keepAlive sends the watchdog's keep-alive.
func (s *supervisor) keepAlive() { s.sendLines(daemon.SdNotifyWatchdog) }

// sendLines sends one datagram. A failure is logged and has no other effect. daemon.SdNotify would
// block on a systemd that hangs, and signals with it.
func (s *supervisor) sendLines(lines ...string) {
	if s.socket == nil {
		return
	}
	conn, err := net.DialUnix(s.socket.Net, nil, s.socket)
	if err == nil {
		if err = conn.SetWriteDeadline(time.Now().Add(time.Second)); err == nil { // its queue may be full
			_, err = conn.Write([]byte(strings.Join(lines, "\n") + "\n"))
		}
		err = errors.Join(err, conn.Close())
	}
	if err != nil {
		s.log.Warn("supervisor.unreachable", "error", err.Error())
	}
}

// givenDoor returns the listener that the supervisor has opened, by sd_listen_fds(3), or nil.
// Connections wait in it while no process accepts, and several processes may have it at one time:
// each connection goes to one of them.
func givenDoor() (net.Listener, error) {
	files := activation.Files(true)
	defer func() {
		for _, f := range files {
			_ = f.Close() // the listener has a copy
		}
	}()
	if len(files) == 0 {
		return nil, nil //nolint:nilnil // it opens its own
	}
	if len(files) > 1 {
		return nil, cli.Misuse(fmt.Errorf("LISTEN_FDS has %d sockets; give hooklock one, for listen: admin.listen "+
			"and health.listen are its own", len(files)))
	}
	ln, err := net.FileListener(files[0])
	if err != nil {
		return nil, cli.Misuse(fmt.Errorf("socket of LISTEN_FDS: %w; give hooklock a socket that listens "+
			"(ListenStream= of a systemd socket)", err))
	}
	if path, is := ln.(*net.UnixListener); is {
		path.SetUnlinkOnClose(false) // the supervisor owns it, and another process may have it, too
	}
	return ln, nil
}
