package asking

import (
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

	"hooklock/idem"
)

// maxAnswer bounds what is read of an answer; bytes.
const maxAnswer = 1 << 20

// Service is how the upstream is reached. Questions with a whole URL do not use it.
type Service struct {
	Network, Addr string // "tcp" and host:port, or "unix" and a path
	Host          string // of requests
	TLS           *tls.Config
	Connect       time.Duration
}

// client makes questions. It keeps no connection, for that would occupy a worker of the service,
// and follows no redirect: an answer counts as it is.
type client struct {
	service, others *http.Client
	base            string
}

func newClient(s *Service) *client {
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	dialer := &net.Dialer{Timeout: s.Connect}
	c := &client{base: "http://" + s.Host}
	if s.TLS != nil {
		c.base = "https://" + s.Host
	}
	c.service = &http.Client{CheckRedirect: noRedirect, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: s.TLS, MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, s.Network, s.Addr)
		},
	}}
	c.others = &http.Client{CheckRedirect: noRedirect, Transport: &http.Transport{
		DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext,
		MaxResponseHeaderBytes: 64 << 10,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
	}}
	return c
}

// getOutcome asks once. The status is 0 if no whole answer came.
func (c *client) getOutcome(ctx context.Context, rule *Rule, question string) (outcome idem.Outcome, status int,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, idem.QuestionTimeout)
	defer cancel()
	by, target := c.others, question
	if strings.HasPrefix(question, "/") {
		by, target = c.service, c.base+question
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return idem.Unknown, 0, errors.New("the question is no URL")
	}
	request.Header.Set("User-Agent", "hooklock")
	request.Header.Set("Accept", "application/json, */*")
	if rule.Authorization != "" {
		request.Header.Set("Authorization", rule.Authorization)
	}
	answer, err := by.Do(request)
	if err != nil {
		return idem.Unknown, 0, fmt.Errorf("no answer came: %w", withoutURL(err))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return idem.Unknown, 0, fmt.Errorf("the answer broke off: %w", withoutURL(err))
	case len(body) > maxAnswer:
		return idem.Unknown, answer.StatusCode, fmt.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	if outcome = rule.outcomeOf(answer.StatusCode, body); outcome == idem.Unknown {
		return outcome, answer.StatusCode, fmt.Errorf("the service answered %d, which is neither ask.executed nor "+
			"ask.not_executed", answer.StatusCode)
	}
	return outcome, answer.StatusCode, nil
}

func withoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}
