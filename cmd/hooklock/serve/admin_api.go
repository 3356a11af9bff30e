package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"hooklock/admin"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/etcdlock"
	"hooklock/proxy/wire"
)

// The API's view of the ledger, and the ledger.
var _ admin.Ledger = (*etcdlock.Control)(nil)

// openAdmin opens the admin API with health and metrics, and the health listener.
func (s *Service) openAdmin(ctx context.Context) (err error) {
	if len(s.config.Admin.Tokens) == 0 {
		s.takeLocalToken(admin.LocalToken(s.config.DataDir))
	}
	o := admin.Options{
		Ready: s.checkReady, Metrics: s.telemetry.Page(), Ledger: s.Store.Control, Access: s.accessOf(s.config),
		Log: s.Log.Logger, Audit: s.Log.Reserve,
		UpstreamTimeout: s.config.Upstream.Timeout, RequestTimeout: s.config.Etcd.RequestTimeout,
		Report: s.report.Report, Suggest: s.suggestRoutes, Request: s.keptRequest, Process: s,
		Stale:     s.inForce.whyStale,
		Profiling: s.config.Admin.Pprof,
	}
	o.Space = s.space.spaceLine
	if a := s.archive.Load(); a != nil {
		o.Archive = archived{a}
	}
	if s.embedded != nil {
		o.Space = func(context.Context) string { return "embedded etcd: " + s.embedded.Space().String() }
		o.Backup = s.embedded.Snapshot
	}
	s.api = admin.New(o)
	s.runBeside("jobs", s.api.RunJobs)
	t, err := wiring.AdminTLS(&s.config.Admin.TLS, s.Log.Logger)
	if err != nil {
		return err
	}
	if s.admin, err = s.serveHTTP(ctx, "admin.listen", s.config.Admin.Listen, t, s.api); err != nil {
		return err
	}
	if s.config.Health.Listen != "" {
		_, err = s.serveHTTP(ctx, "health.listen", s.config.Health.Listen, nil, admin.Health(o))
	}
	return err
}

// takeLocalToken sets the generated token for changes, if no tokens are configured: the
// configuration then allows only a listener of this machine. Deliveries do not need the token: if
// it cannot be stored, the API refuses changes. A reload that cannot read it leaves the one before.
// It reports whether the token replaces another one.
func (s *Service) takeLocalToken(token string, err error) (replaced bool) {
	switch {
	case err != nil && s.localToken != "":
		s.Log.Warn("config.warning", "problem", "the generated token stays: "+err.Error())
		return false
	case err != nil:
		s.Log.Warn("admin.read_only", "reason", err.Error(), "help",
			"configure admin.tokens, or give hooklock a data_dir that it can write to")
	}
	replaced = s.localToken != "" && s.localToken != token
	s.localToken = token
	return replaced
}

// accessOf returns the tokens of the API: the configured ones, or else the generated one for
// changes, with reads for all.
func (s *Service) accessOf(c *config.Config) admin.Access {
	a := admin.Access{Hosts: c.Admin.Hosts, Open: len(c.Admin.Tokens) == 0, UserHeader: c.Admin.UserHeader}
	for _, text := range c.Admin.UserHeaderFrom {
		if network, err := config.ParseNetwork(text); err == nil { // validated
			a.UserHeaderFrom = append(a.UserHeaderFrom, network)
		}
	}
	if a.Open && s.localToken != "" {
		a.Tokens = []admin.Token{{Name: "admin", Digest: admin.Digest(s.localToken), Read: true, Write: true,
			Bodies: true}}
	}
	for i := range c.Admin.Tokens {
		t := &c.Admin.Tokens[i]
		if t.Token.IsZero() {
			continue // unused
		}
		a.Tokens = append(a.Tokens, admin.Token{
			Name: t.Name, Digest: admin.Digest(t.Token.Reveal()), Workflows: t.Workflows,
			Read: slices.Contains(t.Scopes, config.ScopeRead), Write: slices.Contains(t.Scopes, config.ScopeWrite),
			Bodies: slices.Contains(t.Scopes, config.ScopeBodies),
		})
	}
	return a
}

// revokeTokens ends the tokens that c no longer has, although the rest of c needs a restart: a
// removed token must not stay valid. They may still ask for a reload, which is how the file is
// repaired. It returns a message about it.
func (s *Service) revokeTokens(c *config.Config) error {
	a, next := s.accessOf(s.config), s.accessOf(c)
	var said []error
	for i, t := range a.Tokens {
		if slices.ContainsFunc(next.Tokens, func(n admin.Token) bool { return n.Digest == t.Digest }) {
			continue
		}
		a.Tokens[i] = admin.Token{Name: t.Name, Digest: t.Digest, Reload: true}
		name := fmt.Sprintf("token %s", t.Name)
		if a.Open {
			name = "the generated token"
		}
		said = append(said, fmt.Errorf("admin.tokens: %s is accepted no more, except for a reload; the tokens of "+
			"this file are accepted after the restart", name))
	}
	s.api.SetAccess(a)
	return errors.Join(said...)
}

// serveHTTP serves h at address until stop, over TLS if t is not nil.
func (s *Service) serveHTTP(ctx context.Context, setting, address string, t *tls.Config, h http.Handler) (net.Listener,
	error) {
	ln, err := wiring.Listen(ctx, setting, address)
	if err != nil {
		return nil, err
	}
	bounded := s.boundListener(ln, t)
	server := &http.Server{
		Handler: noteRequests(bounded, h), ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		// A request that waits extends its own deadlines.
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 60 * time.Second,
		IdleTimeout:    75 * time.Second,
		MaxHeaderBytes: 32 << 10,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateIdle {
				bounded.Resting(c)
			}
		},
	}
	if closing, ok := h.(interface{ Close() }); ok {
		server.RegisterOnShutdown(closing.Close)
	}
	s.watchListener(setting, bounded, s.bounds.Admin)
	s.onStop(setting, func(ctx context.Context) error { return closeHTTP(ctx, server) })
	s.runListener(func() error {
		serving := net.Listener(bounded)
		if t != nil {
			serving = tls.NewListener(serving, t)
		}
		if err := server.Serve(serving); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve %s: %w", setting, err)
		}
		return nil
	})
	return ln, nil
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// noteRequests tells l of each request that h is answering. Every other connection may make room
// for a new one: one that has sent nothing, half of a head or body, or nothing more for a while. So
// a probe finds room, however many strangers hold connections.
func noteRequests(l *wire.Listener, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connKey{}).(net.Conn)
		switch {
		case ok && r.ContentLength != 0: // net/http waits for what h leaves of the body, before it sends the answer
			with := *r
			with.Body = &arriving{ReadCloser: r.Body, serving: func() bool { return l.Serving(c) }}
			r = &with
		case ok && !l.Serving(c):
			panic(http.ErrAbortHandler) // a change would be made whose answer cannot be read
		}
		h.ServeHTTP(w, r)
	})
}

// arriving is a body whose connection makes room for others until all of it is there.
type arriving struct {
	io.ReadCloser
	serving func() bool // false: it has made room
}

// Read returns io.ErrUnexpectedEOF instead of the end if its connection has made room: the answer
// could not be read.
func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err == io.EOF && !a.serving() {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// boundListener limits the connections of ln. Over TLS a connection above the limit is closed
// without an answer, which could not be read before the handshake.
func (s *Service) boundListener(ln net.Listener, t *tls.Config) *wire.Listener {
	o := wire.ListenerOptions{MaxConns: s.bounds.Admin, Told: true}
	if t == nil {
		o.Refusal = admin.Overloaded()
	}
	return wire.NewListener(ln, o)
}

// answerPatience is how long a stop waits for answers of the admin API. It is not part of
// shutdown_timeout, which is for deliveries: requests that wait have been told to end by then, so
// it is enough for one request to etcd.
const answerPatience = 5 * time.Second

// closeHTTP stops a server of the admin API. A request without an answer in time is cut off.
func closeHTTP(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	if server.Shutdown(ctx) == nil {
		return nil
	}
	return server.Close()
}
