// Package connect connects to names of which some addresses may be silent.
package connect

import (
	"context"
	"net"
	"time"
)

// Dialer is a net.Dialer for names. That gives a silent address 2 s at least before it dials the
// next one of its family, which may be all the time there is. This one begins the next address
// beside those that are silent, as RFC 8305 says. Of its fields, LocalAddr and FallbackDelay have
// no effect on names.
type Dialer struct{ net.Dialer }

// nextAddress is after how long the next address of a name is begun, at most.
const nextAddress = 300 * time.Millisecond

// DialContext returns the first connection that is made within Timeout and the time of ctx. Each
// address of a name gets a part of that time. The error is that of the first address.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if network != "tcp" || err != nil || net.ParseIP(host) != nil {
		return d.Dialer.DialContext(ctx, network, address)
	}
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	resolver := d.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	found, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	silent := nextAddress
	if end, ok := ctx.Deadline(); ok {
		silent = max(min(silent, time.Until(end)/time.Duration(max(len(found), 1))), time.Millisecond)
	}
	addresses := make([]string, len(found))
	for i, ip := range found {
		addresses[i] = net.JoinHostPort(ip.Unmap().String(), port)
	}
	return connectFirst(ctx, addresses, silent, func(ctx context.Context, address string) (net.Conn, error) {
		return d.Dialer.DialContext(ctx, network, address)
	})
}

// connectFirst dials addresses, of which there is one at least, until one connects. The next one is
// begun when the one before has failed, or has been silent for that long. It closes all other
// connections.
func connectFirst(
	ctx context.Context, addresses []string, silent time.Duration, dial func(context.Context, string) (net.Conn, error),
) (won net.Conn, failed error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type dialled struct {
		conn net.Conn
		err  error
	}
	results := make(chan dialled)
	begun, running := 0, 0
	timer := time.NewTimer(silent)
	defer timer.Stop()
	begin := func() {
		if won != nil || begun == len(addresses) {
			return
		}
		address := addresses[begun]
		begun, running = begun+1, running+1
		timer.Reset(silent)
		go func() {
			conn, err := dial(ctx, address)
			results <- dialled{conn, err}
		}()
	}
	for begin(); running > 0; {
		select {
		case r := <-results:
			running--
			switch {
			case r.err == nil && won == nil:
				won = r.conn
				cancel()
			case r.err == nil:
				_ = r.conn.Close()
			default:
				if failed == nil {
					failed = r.err
				}
				begin()
			}
		case <-timer.C:
			begin()
		}
	}
	if won != nil {
		return won, nil
	}
	return nil, failed
}
