package doctor

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hooklock/cmd/hooklock/remote"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/etcdlock/diagnose"
	"hooklock/proxy/connect"
	"hooklock/proxy/wire"
)

const (
	// trialAnswer bounds the wait for an answer to a request of doctor.
	trialAnswer = 10 * time.Second
	// trialSilence is how long the trial waits for more than the answer.
	trialSilence = 500 * time.Millisecond
)

// reuseFinding says what the running hooklock has found out about connections to its upstream. It
// returns false if that is not known.
func reuseFinding(ctx context.Context, c *config.Config) (f diagnose.Finding, says bool) {
	api, _, err := ownAPI(c)
	if err != nil {
		return f, false
	}
	defer api.Close()
	s, err := api.Status(ctx)
	if err != nil || s.UpstreamReuse.Setting == "" {
		return f, false
	}
	f = diagnose.Finding{Check: "upstream connections", Result: diagnose.OK,
		Found: remote.ReuseText(&s.UpstreamReuse, s.At)}
	switch r := &s.UpstreamReuse; {
	case r.Ended != "":
		f.Result, f.Advice = diagnose.Warning,
			"say upstream.reuse_after_body: false if that comes again after a restart"
	case r.Setting == "auto" && r.Known == "":
		f.Advice = "hooklock doctor --upstream PATH finds out whether reuse_after_body: true is right"
	}
	return f, true
}

// trial is one connection to the upstream, for requests of doctor.
type trial struct {
	net.Conn
	br     *bufio.Reader
	head   string
	server string // what it says of itself
}

// trialFinding sends requests with a body, and empty lines, to path, which the user has named as
// harmless.
func trialFinding(ctx context.Context, c *config.Config, path string) diagnose.Finding {
	f := diagnose.Finding{Check: "upstream " + path, Result: diagnose.Failed,
		Advice: "name a path that takes a POST, with --upstream"}
	if u, err := url.ParseRequestURI(path); err != nil || !strings.HasPrefix(path, "/") ||
		strings.HasPrefix(path, "//") || u.Host != "" || strings.ContainsAny(path, " \r\n") {
		f.Found = fmt.Sprintf("%q is no path", path)
		return f
	}
	t, err := openTrial(ctx, c, path)
	if err != nil {
		f.Found = err.Error()
		return f
	}
	defer t.Close()
	first, closes, err := t.postRequest()
	switch {
	case err != nil:
		f.Found = "the first request: " + err.Error()
	case closes:
		f.Result, f.Advice = diagnose.OK, "leave upstream.reuse_after_body as it is"
		f.Found = "the service closes each connection after its answer, so there is none to keep"
	case first == http.StatusNotFound || first == http.StatusMethodNotAllowed:
		f.Result = diagnose.Warning
		f.Found = fmt.Sprintf("it answers %d, which says nothing of the handlers that get webhooks", first)
	default:
		lines := t.sendSecond(first, "\r\n")
		plain := lines
		if lines != "" { // it may have refused the line, which deliveries do not have: once more without
			plain = onceMore(ctx, c, path)
		}
		t.judgeReuse(&f, c.Upstream.ReuseAfterBody, first, plain, lines)
	}
	return f
}

// onceMore returns what a service does instead of answering two requests on a new connection alike,
// or "".
func onceMore(ctx context.Context, c *config.Config, path string) string {
	t, err := openTrial(ctx, c, path)
	if err != nil {
		return err.Error()
	}
	defer t.Close()
	first, closes, err := t.postRequest()
	if err != nil || closes {
		return "closed the connection"
	}
	return t.sendSecond(first, "")
}

// sendSecond sends the second request behind what is before it, and returns what the service does
// instead of answering as to the first one, or "". Bytes of the first request that it left unread
// precede both.
func (t *trial) sendSecond(first int, before string) string {
	_, _ = io.WriteString(t, before) // what fails has been closed, as post finds
	second, _, err := t.postRequest()
	if err != nil {
		return fmt.Sprintf("answered %d to the first and failed at the second (%v)", first, err)
	}
	if second != first {
		return fmt.Sprintf("answered %d to the first and %d to the second", first, second)
	}
	if said := t.readUnasked(); said != "" {
		return "then " + said
	}
	return ""
}

// judgeReuse says what two requests on one connection have shown. plain is what the service did
// instead of answering both alike; lines is the same with an empty line between them. Two more
// lines follow: a service that takes one for a request is no good neighbour of other clients
// either.
func (t *trial) judgeReuse(f *diagnose.Finding, setting config.Reuse, first int, plain, lines string) {
	if plain != "" {
		f.Result, f.Advice = diagnose.OK, "reuse_after_body: true would be wrong"
		if setting == config.ReuseAlways {
			f.Result, f.Advice = diagnose.Failed,
				"say upstream.reuse_after_body: auto; with true, an event can get the answer to the body of another one"
		}
		f.Found = "of two requests on one connection, the service " + plain +
			": it does not read bodies to their end, or closes connections without a word"
		return
	}
	f.Result, f.Found = diagnose.OK, fmt.Sprintf("the service answered %d to two requests on one connection, so its "+
		"handler reads bodies", first)
	for n := 1; n <= 2 && lines == ""; n++ {
		_, _ = io.WriteString(t, "\r\n")
		if said := t.readUnasked(); said != "" {
			lines = fmt.Sprintf("%s at empty line %d behind them", said, n)
		}
	}
	if lines != "" {
		f.Found += "; with empty lines, which deliveries do not have, it " + lines
	}
	switch does := wire.KnownServer(t.server); {
	case does != "":
		f.Advice = "upstream.reuse_after_body: auto keeps its connections, " + does
	case setting == config.ReuseAlways:
		f.Advice = "reuse_after_body: true is right if each handler that gets webhooks reads bodies as this one does"
	default:
		name := "a service that does not say what it is"
		if t.server != "" {
			name = "a service that says " + strconv.Quote(t.server)
		}
		f.Advice = "auto keeps none of its connections, nothing is known of " + name +
			"; reuse_after_body: true is right if each handler that gets webhooks reads bodies as this one does"
	}
}

func openTrial(ctx context.Context, c *config.Config, path string) (*trial, error) {
	o, host, err := wiring.UpstreamOptions(c, nil)
	if err != nil {
		return nil, err
	}
	const body = `{"hooklock":"doctor"}`
	t := &trial{head: fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: hooklock-doctor\r\nContent-Type: "+
		"application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, host, len(body), body)}
	if t.Conn, err = dialTrial(ctx, &o); err != nil {
		return nil, err
	}
	t.br = bufio.NewReader(t.Conn)
	return t, nil
}

func dialTrial(ctx context.Context, o *wire.Options) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.ConnectTimeout)
	defer cancel()
	var dialer connect.Dialer
	conn, err := dialer.DialContext(ctx, o.Network, o.Addr)
	if err != nil || o.TLS == nil {
		return conn, err
	}
	secured := tls.Client(conn, o.TLS)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}

// postRequest sends the request and reads the answer to its end. closes: the connection ends behind
// it.
func (t *trial) postRequest() (status int, closes bool, err error) {
	if err := t.SetDeadline(time.Now().Add(trialAnswer)); err != nil {
		return 0, false, err
	}
	if _, err := io.WriteString(t, t.head); err != nil {
		return 0, false, err
	}
	resp, err := http.ReadResponse(t.br, nil)
	if err != nil {
		return 0, false, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, false, err
	}
	t.server = resp.Header.Get("Server")
	return resp.StatusCode, resp.Close, nil
}

// readUnasked returns what the service sends unasked, or "".
func (t *trial) readUnasked() string {
	_ = t.SetReadDeadline(time.Now().Add(trialSilence))
	line, err := t.br.ReadString('\n')
	var nerr net.Error
	switch line = strings.TrimSpace(line); {
	case line != "":
		return fmt.Sprintf("sent %q", line)
	case errors.As(err, &nerr) && nerr.Timeout():
		return ""
	default:
		return "closed the connection"
	}
}
