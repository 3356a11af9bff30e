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
	"strings"
	"time"

	"hooklock/admin/client"
	"hooklock/cmd/hooklock/remote"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/etcdlock/diagnose"
	"hooklock/proxy/wire"
)

const (
	// trialAnswer bounds the wait for an answer to a request of doctor.
	trialAnswer = 10 * time.Second
	// trialSilence is how long the trial waits for more than the answer.
	trialSilence = 500 * time.Millisecond
)

// reuseFinding says what the running hooklock has found out about connections to its upstream. It returns false if that is not known.
func reuseFinding(ctx context.Context, c *config.Config) (f diagnose.Finding, says bool) {
	token, _ := readingToken(c)
	api, err := client.New(client.Options{URL: remote.AdminURL(c), Token: token, Timeout: 3 * time.Second, TLS: wiring.OwnTrust(c)})
	if err != nil {
		return f, false
	}
	defer api.Close()
	s, err := api.Status(ctx)
	if err != nil || s.UpstreamReuse.Setting == "" {
		return f, false
	}
	f = diagnose.Finding{Check: "upstream connections", Result: diagnose.OK, Found: remote.ReuseText(&s.UpstreamReuse, s.At)}
	if s.UpstreamReuse.Ended != "" {
		f.Result, f.Advice = diagnose.Warning, "hooklock doctor --upstream PATH finds out whether reuse_after_body: true is right"
	}
	return f, true
}

// trial is one connection to the upstream, for requests of doctor.
type trial struct {
	net.Conn
	br   *bufio.Reader
	head string
}

// trialFinding sends two requests with a body on one connection to path, which the user has named as harmless, and an empty line behind them.
func trialFinding(ctx context.Context, c *config.Config, path string) diagnose.Finding {
	f := diagnose.Finding{Check: "upstream " + path, Result: diagnose.Failed, Advice: "name a path that takes a POST, with --upstream"}
	if u, err := url.ParseRequestURI(path); err != nil || !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || u.Host != "" || strings.ContainsAny(path, " \r\n") {
		f.Found = fmt.Sprintf("%q is no path", path)
		return f
	}
	t, err := openTrial(ctx, c, path)
	if err != nil {
		f.Found = err.Error()
		return f
	}
	defer t.Close()
	first, closes, err := t.post()
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
		t.judgeSecond(&f, c.Upstream.ReuseAfterBody, first)
	}
	return f
}

// judgeSecond sends the second request. Bytes of the first one that the service left unread precede its head.
func (t *trial) judgeSecond(f *diagnose.Finding, setting config.Reuse, first int) {
	second, _, err := t.post()
	said := ""
	if err == nil && second == first {
		said = t.listen()
	}
	if err != nil || second != first || said != "" {
		f.Result, f.Advice = diagnose.OK, "reuse_after_body: true would be wrong; auto finds it out, too"
		if setting == config.ReuseAlways {
			f.Result, f.Advice = diagnose.Failed, "say upstream.reuse_after_body: auto; with true, an event can get the answer to the body of another one"
		}
		what := fmt.Sprintf("answered %d to the first and %d to the second", first, second)
		if err != nil {
			what = fmt.Sprintf("answered %d to the first and failed at the second (%v)", first, err)
		} else if said != "" {
			what = "then " + said
		}
		f.Found = "of two requests on one connection, the service " + what + ": it does not read bodies to their end, or closes connections without a word"
		return
	}
	f.Result, f.Found = diagnose.OK, fmt.Sprintf("the service answered %d to two requests on one connection, so its handler reads bodies", first)
	_, _ = io.WriteString(t, "\r\n") // what fails has been closed, as listen finds
	said = t.listen()
	switch {
	case said == "":
		f.Found += ", and it ignores an empty line"
		f.Advice = "upstream.reuse_after_body: auto keeps its connections"
	case setting == config.ReuseAuto:
		f.Result = diagnose.Warning
		fallthrough
	default:
		f.Found += "; at an empty line it " + said
		f.Advice = "upstream.reuse_after_body: true is right for this service, if each handler that gets webhooks reads bodies as this one does; auto keeps none of its connections"
	}
}

func openTrial(ctx context.Context, c *config.Config, path string) (*trial, error) {
	o, host, err := wiring.UpstreamOptions(c, nil)
	if err != nil {
		return nil, err
	}
	const body = `{"hooklock":"doctor"}`
	t := &trial{head: fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: hooklock-doctor\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
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
	dialer := &net.Dialer{}
	if o.TLS == nil {
		return dialer.DialContext(ctx, o.Network, o.Addr)
	}
	secured := tls.Dialer{NetDialer: dialer, Config: o.TLS}
	return secured.DialContext(ctx, o.Network, o.Addr)
}

// post sends the request and reads the answer to its end. closes: the connection ends behind it.
func (t *trial) post() (status int, closes bool, err error) {
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
	return resp.StatusCode, resp.Close, nil
}

// listen returns what the service sends unasked, or "".
func (t *trial) listen() string {
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
