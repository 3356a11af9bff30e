package serve

import (
	"fmt"
	"net"

	"hooklock/cmd/hooklock/cli"

	"github.com/coreos/go-systemd/v22/activation"
)

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
