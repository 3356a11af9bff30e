package serve

import (
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"hooklock/cmd/hooklock/cli"
	"hooklock/config"
	"hooklock/proxy/wire"
)

const (
	// ownFiles are the open files besides connections of clients: those of the embedded etcd,
	// connections to etcd and to a collector, the configuration, and refused connections until
	// their answer is sent.
	ownFiles = 128
	// fewestFiles is the least limit for a start: an idle process with the embedded etcd has 18
	// open, and at 16 each accept failed.
	fewestFiles = 64
	// maxAdminConnections bounds the open connections of the admin listener, and of the health
	// listener.
	maxAdminConnections = 2000
	// adminShare is the greatest part of the open files for each of them.
	adminShare = 32
)

// connectionBounds are the limits of the connections of each listener.
type connectionBounds struct {
	Senders, Admin int
	Warning        string // set if there is less room than limits.max_connections asks for
}

// boundsFor divides the open files of the process. A connection of a sender counts twice, because a
// delivery needs another one to the upstream. A limit of 0 is none.
func boundsFor(c *config.Config, limit uint64) connectionBounds {
	wanted := c.Limits.MaxConnections
	b := connectionBounds{Senders: wanted, Admin: maxAdminConnections}
	if limit == 0 {
		return b
	}
	files, admins := int(min(limit, math.MaxInt32)), 1 //nolint:gosec // it fits
	if c.Health.Listen != "" {
		admins++
	}
	b.Admin = max(1, min(maxAdminConnections, files/adminShare))
	b.Senders = max(1, min(wanted, (files-ownFiles-admins*b.Admin)/2))
	if b.Senders < wanted {
		apart := 2*wanted + ownFiles
		needed := min(apart+admins*maxAdminConnections, apart*adminShare/(adminShare-admins)+1)
		b.Warning = fmt.Sprintf("limits.max_connections: %d connections need %d open files and the limit is %d, so "+
			"%d are taken at one time; "+
			"raise it (ulimit -n, LimitNOFILE=), or lower the setting", wanted, needed, files, b.Senders)
	}
	return b
}

// checkLimit returns an error for a limit under which the process could not serve. A limit of 0 is
// none.
func checkLimit(limit uint64) error {
	if limit == 0 || limit >= fewestFiles {
		return nil
	}
	return fmt.Errorf("the process may have %d open files and needs %d to serve; raise the limit (ulimit -n, "+
		"LimitNOFILE=)", limit, fewestFiles)
}

// openFiles returns how many files the process may open, or 0 if there is no limit or it is not
// known.
func openFiles() uint64 {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil || r.Cur == unix.RLIM_INFINITY {
		return 0
	}
	return uint64(r.Cur) //nolint:gosec,unconvert // it is signed on FreeBSD, and not negative
}

// troubleEvery is the interval of log lines about refused connections.
const troubleEvery = time.Minute

// watchListener exports the metrics of l, and logs refused connections: at once, and then once in
// each troubleEvery.
func (s *Service) watchListener(name string, l *wire.Listener, most int) {
	s.telemetry.WatchListener(name, most, l.Counts)
	s.runBeside(name+" watch", func(ctx context.Context) {
		var said wire.Counts
		for {
			select {
			case <-l.Trouble():
			case <-ctx.Done():
				return
			}
			said = s.tellTrouble(name, said, l.Counts(), most)
			if !cli.Pause(ctx, troubleEvery) {
				s.tellTrouble(name, said, l.Counts(), most)
				return
			}
		}
	})
}

// tellTrouble logs what happened since the last line, and returns the counts of now.
func (s *Service) tellTrouble(name string, said, now wire.Counts, most int) wire.Counts {
	if refused, closed := now.Refused-said.Refused, now.ClosedIdle-said.ClosedIdle; refused > 0 || closed > 0 {
		s.Log.Warn("connections.full", "listener", name, "refused", refused, "closed_idle", closed, "open", now.Open,
			"limit", most)
	}
	if failed := now.Failed - said.Failed; failed > 0 {
		s.Log.Warn("accept.failed", "listener", name, "failures", failed, "error", now.Failure.Error())
	}
	return now
}
