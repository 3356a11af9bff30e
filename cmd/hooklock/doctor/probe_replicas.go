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

const anotherReplica = "what could not be sent may safely go to another replica (" + ofNginx +
	"; HAProxy: option redispatch 1; Traefik: retry), " +
	"and docs/ingress has the lines for each front"

// replicaProbes is the number of requests of each kind while one of two replicas is dead.
const replicaProbes = 12

// checkReplicas stops one of two replicas, and checks whether deliveries go to the other one, and
// once.
func (p *probe) checkReplicas(ctx context.Context) diagnose.Finding {
	f := diagnose.Finding{Check: "front, replicas", Result: diagnose.OK,
		Found: fmt.Sprintf("while one of %d is dead, deliveries go to the others, once", len(p.listener.doors))}
	if len(p.listener.doors) < 2 {
		f.Result, f.Found = diagnose.Skipped, "what happens when one of several replicas is dead: let the front "+
			"lead to two addresses of this machine, and give each with --probe-listen"
		return f
	}
	last := len(p.listener.doors) - 1
	dead := p.listener.doors[last]
	p.listener.doors = p.listener.doors[:last]
	if err := dead.close(); err != nil {
		f.Result, f.Found = diagnose.Failed, err.Error()
		return f
	}
	lost, again, example := 0, 0, ""
	for i := range 2 * replicaProbes {
		method, body := http.MethodGet, []byte(nil)
		if i >= replicaProbes {
			method, body = http.MethodPost, []byte(`{"id":1}`)
		}
		a, came := p.sendProbe(ctx, fmt.Sprint("replica-", i), method, body, nil, takeIt)
		if a.err != nil || a.status != http.StatusOK {
			lost, example = lost+1, a.String()
		}
		if len(came) > 1 {
			again++
		}
	}
	switch {
	case again > 0:
		f.Result, f.Found, f.Advice = diagnose.Failed,
			fmt.Sprintf("while one of two is dead, %d of %d requests arrive twice", again, 2*replicaProbes), noRetries
	case lost > 0:
		f.Result, f.Found, f.Advice = diagnose.Failed,
			fmt.Sprintf("while one of two is dead, %d of %d requests fail (%s)", lost, 2*replicaProbes, example),
			anotherReplica
	}
	return f
}

// odd is a path that a proxy rewrites if it normalises paths.
const odd = "/%e2%80%93%7Eo'neil//x"

// checkSpelling sends a GET with the path odd, and compares it with what arrived.
func (p *probe) checkSpelling(ctx context.Context) diagnose.Finding {
	f := diagnose.Finding{Check: "front, spelling", Result: diagnose.OK, Found: "a path arrives as it was spelled"}
	u := *p.url
	u.Opaque = strings.TrimSuffix(u.EscapedPath(), "/") + odd
	ctx, cancel := context.WithTimeout(ctx, oneProbe)
	defer cancel()
	name := p.nonce + "-spelling"
	p.listener.setAnswer(name, takeIt)
	a := p.sendTo(ctx, u, name, http.MethodGet, nil, nil)
	came := p.listener.arrivalsOf(name)
	if len(came) == 0 {
		f.Result, f.Found = diagnose.Skipped, fmt.Sprintf("a path below this one does not lead here: %v", a)
		return f
	}
	sent, _, _ := strings.Cut(u.Opaque, "?")
	got, _, _ := strings.Cut(came[0].target, "?")
	if got == sent || strings.HasSuffix(got, odd) { // a prefix that is stripped is told of elsewhere
		return f
	}
	f.Result, f.Found = diagnose.Warning, fmt.Sprintf("%s arrives as %s", sent, got)
	f.Advice = "keep webhook URLs to letters, digits, - and _, or let the path through as it came: routes see what " +
		"arrives"
	for i := range p.config.Routes {
		if r := &p.config.Routes[i]; r.Verify.PublicURL != "" {
			f.Result, f.Advice = diagnose.Failed,
				fmt.Sprintf("the sender of route %s signs the URL, and its signature over such a path is not valid: %s",
					r.Name, f.Advice)
			break
		}
	}
	return f
}

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
