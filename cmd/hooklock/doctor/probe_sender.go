package doctor

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"hooklock/cmd/hooklock/cli"
	"hooklock/etcdlock/diagnose"
)

// slowEnough is how long the answer to a sender that has closed its half takes, so that a front has
// noticed it.
const slowEnough = 300 * time.Millisecond

// halfClosed sends a delivery, closes its half of the connection, as HTTP/1.1 lets a sender do, and
// refuses that delivery. Some fronts take the sender for gone, and answer it all the same: with
// 200, the sender takes a delivery for done that was refused, or was lost on its way.
func (p *probe) halfClosed(ctx context.Context) diagnose.Finding {
	f := diagnose.Finding{Check: "front, half-closed", Result: diagnose.OK,
		Found: "a sender that closes its half of the connection is not told that a refused delivery succeeded"}
	name := p.nonce + "-half-closed"
	p.listener.setAnswer(name, func(w http.ResponseWriter, _ *http.Request) {
		cli.Pause(ctx, slowEnough)
		writeProblem(w, http.StatusServiceUnavailable, name)
	})
	status, err := p.sendHalfClosed(ctx, name)
	if err == nil && status/100 == 2 {
		f.Result = diagnose.Warning
		f.Found = fmt.Sprintf("a sender that closes its half of the connection after its request gets status %d by "+
			"the front itself, whatever becomes of the delivery", status)
		f.Advice = "if one of your senders does that (nc -N, some written by hand), lead it to Hooklock without " +
			"this front (Caddy 2.6.2 does so)"
	}
	return f
}

// sendHalfClosed returns the status of the answer; an error says that there was none, which tells a
// sender enough.
func (p *probe) sendHalfClosed(ctx context.Context, name string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, oneProbe)
	defer cancel()
	port := p.url.Port()
	if port == "" {
		port = p.url.Scheme // a name that the dialer knows
	}
	address := net.JoinHostPort(p.url.Hostname(), port)
	var conn net.Conn
	var err error
	if p.url.Scheme == "https" {
		conn, err = (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url.String(), strings.NewReader("{}"))
	if err != nil {
		return 0, err
	}
	r.Header.Set(probeHeader, name)
	r.Header.Set("User-Agent", "hooklock-doctor")
	if err := r.Write(conn); err != nil {
		return 0, err
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		if err := half.CloseWrite(); err != nil {
			return 0, err
		}
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}
