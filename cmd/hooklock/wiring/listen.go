package wiring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"hooklock/cmd/hooklock/cli"
	"hooklock/config"
)

// socketMode lets the owner and the group connect. The folder of the socket restricts it further.
const socketMode = 0o660

// Listen opens a listener at host:port or unix:///path. Its errors say which setting to change. An
// address that is in use or does not exist yet is no mistake of the configuration: it may be free
// the next time.
func Listen(ctx context.Context, setting, address string) (net.Listener, error) {
	ln, err := listenAt(ctx, address)
	if err == nil {
		return ln, nil
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	advice := "choose another address, or stop the program that uses it"
	if errors.Is(err, syscall.EACCES) {
		advice = "a port below 1024 needs CAP_NET_BIND_SERVICE, a socket a folder that this user may write; or " +
			"choose another address"
	}
	err = fmt.Errorf("%s: listen on %s: %w; %s", setting, address, err, advice)
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EADDRNOTAVAIL) {
		return nil, err
	}
	return nil, cli.Misuse(err)
}

func listenAt(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	path, socket := config.SocketPath(address)
	if !socket {
		return lc.Listen(ctx, "tcp", address)
	}
	if err := removeDead(ctx, path); err != nil {
		return nil, err
	}
	ln, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// removeDead removes a socket of a killed process. It keeps a socket that is in use, and any other
// file.
func removeDead(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return nil //nolint:nilerr // what is wrong, listening says
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return syscall.EADDRINUSE
	case errors.Is(err, syscall.ECONNREFUSED):
		return os.Remove(path)
	}
	return err
}
