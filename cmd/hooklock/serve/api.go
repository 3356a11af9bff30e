package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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

// localAdmin is the name of whoever has the generated token.
const localAdmin = "admin"

// openAdmin opens the admin API, with health and metrics, and the listener that has only these.
func (s *Service) openAdmin(ctx context.Context) (err error) {
	if len(s.config.Admin.Tokens) == 0 {
		s.takeLocalToken(admin.LocalToken(s.config.DataDir))
	}
	o := admin.Options{
		Ready: s.ready, Metrics: s.telemetry.Page(), Ledger: s.Store.Control, Access: s.access(s.config), Log: s.Log.Logger, Audit: s.Log.Reserve,
		UpstreamTimeout: s.config.Upstream.Timeout, RequestTimeout: s.config.Etcd.RequestTimeout, Report: s.report.Report, Request: s.keptRequest, Process: s, Stale: s.inForce.whyStale, Profiling: s.config.Admin.Pprof,
	}
	if s.embedded != nil {
		o.Space = func() string { return s.embedded.Space().String() }
		o.Backup = s.embedded.Snapshot
	}
	s.api = admin.New(o)
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

// takeLocalToken takes what admin.LocalToken says: the token for changes where none is configured; the configuration has been refused then unless the
// listener is for this machine alone. Deliveries do not need the token: where it cannot be kept, the API takes no changes.
func (s *Service) takeLocalToken(token string, err error) {
	if err != nil {
		s.Log.Warn("admin.read_only", "reason", err.Error(), "help", "configure admin.tokens, or give hooklock a data_dir that it can write to")
	}
	s.localToken = token
}

// access says who may use the API: the configured tokens, or else the generated one for changes, and everybody for reads.
func (s *Service) access(c *config.Config) admin.Access {
	a := admin.Access{Hosts: c.Admin.Hosts, Open: len(c.Admin.Tokens) == 0}
	if a.Open && s.localToken != "" {
		a.Tokens = []admin.Token{{Name: localAdmin, Digest: admin.Digest(s.localToken), Read: true, Write: true, Bodies: true}}
	}
	for i := range c.Admin.Tokens {
		t := &c.Admin.Tokens[i]
		if t.Token.IsZero() {
			continue // nobody's
		}
		a.Tokens = append(a.Tokens, admin.Token{
			Name: t.Name, Digest: admin.Digest(t.Token.Reveal()), Workflows: t.Workflows,
			Read: slices.Contains(t.Scopes, config.ScopeRead), Write: slices.Contains(t.Scopes, config.ScopeWrite),
			Bodies: slices.Contains(t.Scopes, config.ScopeBodies),
		})
	}
	return a
}

// revoke ends the tokens that c has no more, although the rest of c needs a restart: whoever takes a token away does not expect that it is still good. They
// may go on to have the file read again, which is how it is mended. It returns what there is to say about it.
func (s *Service) revoke(c *config.Config) error {
	a, next := s.access(s.config), s.access(c)
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
		said = append(said, fmt.Errorf("admin.tokens: %s is accepted no more, except for a reload; the tokens of this file are accepted after the restart", name))
	}
	s.api.SetAccess(a)
	return errors.Join(said...)
}

// serveHTTP serves h at address until stop, over TLS where t is not nil.
func (s *Service) serveHTTP(ctx context.Context, setting, address string, t *tls.Config, h http.Handler) (net.Listener, error) {
	ln, err := wiring.Listen(ctx, setting, address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler: h, ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		// A request that waits for something moves its own deadlines.
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 60 * time.Second, IdleTimeout: 75 * time.Second,
		MaxHeaderBytes: 32 << 10,
	}
	if closing, ok := h.(interface{ Close() }); ok {
		server.RegisterOnShutdown(closing.Close)
	}
	bounded := s.bounded(ln, t)
	s.watchListener(setting, bounded, s.bounds.Admin)
	s.onStop(setting, func(ctx context.Context) error { return closeHTTP(ctx, server) })
	s.serve(func() error {
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

// bounded takes connections for the admin API from ln, until there are too many. Over TLS one that is too many is closed without a word: nobody could read
// an answer before they have shaken hands.
func (s *Service) bounded(ln net.Listener, t *tls.Config) *wire.Listener {
	o := wire.ListenerOptions{MaxConns: s.bounds.Admin}
	if t == nil {
		o.Refusal = admin.Overloaded()
	}
	return wire.NewListener(ln, o)
}

// answerPatience is for how long the end waits for answers of the admin API. It is no part of shutdown_timeout, which is for deliveries: what waits for something
// has been told to end by then, so it is enough for a request to etcd, and who has not read an answer by then may never do so.
const answerPatience = 5 * time.Second

// closeHTTP ends a server of the admin API: what is not answered in time is cut off, and asked again elsewhere.
func closeHTTP(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	if server.Shutdown(ctx) == nil {
		return nil
	}
	return server.Close()
}
