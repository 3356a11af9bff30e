package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hooklock/admin"
	"hooklock/admin/client"
	"hooklock/admin/notify"
	"hooklock/admin/report"
	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/etcdlock"
	"hooklock/etcdlock/embedded"
	"hooklock/etcdlock/link"
	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/idem/worker"
	"hooklock/proxy"
	"hooklock/proxy/memory"
	"hooklock/proxy/requests"
	"hooklock/proxy/suggest"
	"hooklock/proxy/telemetry"
	"hooklock/proxy/wire"
)

// Service is a running Hooklock. Start makes it, Stop ends it.
type Service struct {
	Log *ServerLog
	// config is replaced by a reload, while deliveries run: only the signal loop may read it.
	config *config.Config

	embedded  *embedded.Server // nil if etcd.endpoints are configured
	Store     *etcdlock.Store
	guard     *guard.Guard
	handler   *proxy.Handler
	upstream  atomic.Pointer[wire.Upstream] // of deliveries; nil before openProxy
	requests  *requests.Keeper
	archive   atomic.Pointer[requests.Archive] // nil: no store is set, or it is not open yet
	worker    *worker.Worker
	server    *proxy.Server
	telemetry *telemetry.Telemetry
	report    *report.Tally
	learner   *suggest.Recorder // nil: nothing is learned from deliveries

	// base is the context of executions, and of deliveries that pass through.
	base     context.Context
	stopBase context.CancelCauseFunc

	given net.Listener // by the supervisor; nil: none
	door  net.Listener // the listener for senders
	admin net.Listener
	api   *admin.API

	notifier *notify.Notifier
	// attention is how many items of each kind need attention, which one replica counts for all of
	// them; nil: another one does, or nothing was counted yet.
	attention atomic.Pointer[map[string]int]
	space     clusterSpace
	// localToken is the generated token of the API; "" if tokens are configured, or if it cannot be
	// stored.
	localToken string

	// What operators see of the process: its name, and what it has seen.
	replica, upstreamURL string
	startedAt            time.Time
	ttl                  time.Duration
	requestTimeout       time.Duration // etcd.request_timeout, which no reload changes
	endpoints            []string
	inForce              inForce
	contacts             *contacts
	session              sessionNote
	reloads              chan reloadRequest
	// the description of the routes; nil before they are loaded
	rules      atomic.Pointer[[]client.RouteRules]
	routeNames atomic.Pointer[[]string] // of its routes, and former ones
	routes     atomic.Pointer[map[string]*proxy.Route]
	perEvent   map[string]bool // by route: its lock covers the event alone; for reloads, one at a time

	live     chan struct{} // closed when the first session is open
	opened   sync.Once
	routing  atomic.Bool // routes are loaded and the door is open
	draining atomic.Bool

	memory  memory.Limit // of the process
	budget  *wire.Budget
	bounds  connectionBounds
	limits  atomic.Pointer[limits] // as the last reload has them
	serving sync.WaitGroup
	failed  chan error // the error of a listener
	closers []closer   // in the order of starting; Stop runs them backwards
}

type closer struct {
	name  string
	close func(context.Context) error
}

// Start opens everything, or nothing. path names the file of loaded. door is the listener for
// senders; nil: Start opens the one of the configuration.
func Start(ctx context.Context, path string, loaded *config.Loaded, log *ServerLog, door net.Listener) (*Service,
	error) {
	c, files := loaded.Config, openFiles()
	if err := checkLimit(files); err != nil {
		return nil, err
	}
	s := &Service{
		Log: log, config: c, given: door, failed: make(chan error, 3), live: make(chan struct{}),
		bounds:      boundsFor(c, files),
		upstreamURL: c.Upstream.URL, startedAt: time.Now(), ttl: c.Etcd.SessionTTL,
		requestTimeout: c.Etcd.RequestTimeout, endpoints: c.Etcd.Endpoints,
		inForce: inForce{file: path}, contacts: newContacts(c.Etcd.Endpoints), reloads: make(chan reloadRequest),
	}
	s.inForce.setLoaded(loaded)
	if s.bounds.Warning != "" {
		log.Warn("config.warning", "problem", s.bounds.Warning)
	}
	if door != nil {
		// if the start fails before it is used
		s.onStop("given socket", func(context.Context) error { _ = door.Close(); return nil })
	}
	s.memory = memory.Find()
	s.budget = wire.NewBudget(0)
	s.setLimits(c)
	s.base, s.stopBase = context.WithCancelCause(context.WithoutCancel(ctx))
	s.learner = suggest.NewRecorder(int(c.Limits.Suggestions))
	for _, step := range []func(context.Context) error{s.openTelemetry, s.openStore, s.openRequests, s.openAdmin,
		s.openNotify, s.openProxy} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
	}
	s.Log.Info("started", "version", cli.BuildVersion(), "listen", s.door.Addr().String(), "admin",
		s.admin.Addr().String(),
		"upstream", c.Upstream.URL, "routes", len(c.Routes), "embedded_etcd", len(c.Etcd.Endpoints) == 0,
		"socket_given", door != nil)
	return s, nil
}

func (s *Service) onStop(name string, f func(context.Context) error) {
	s.closers = append(s.closers, closer{name, f})
}

func (s *Service) openTelemetry(ctx context.Context) error {
	o, err := wiring.TelemetryOptions(s.config, s.Log.Logger)
	if err != nil {
		return err
	}
	s.replica = o.Instance
	s.report = report.New(o.Instance, nil, nil)
	if s.telemetry, err = telemetry.Open(ctx, o); err != nil {
		return cli.Misuse(fmt.Errorf("telemetry: %w", err))
	}
	if err := s.telemetry.WatchLog(s.Log.writer.Lost); err != nil {
		return err
	}
	s.onStop("telemetry", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, min(s.config.ShutdownTimeout/telemetryShare, telemetryMost))
		defer cancel()
		if err := s.telemetry.Close(ctx); err != nil { // not worth a failure
			s.Log.Warn("telemetry.lost", "error", err.Error())
		}
		return nil
	})
	return nil
}

// What sending the last metrics and spans may take of shutdown_timeout.
const (
	telemetryShare = 8
	telemetryMost  = 5 * time.Second
)

// openStore opens the ledger, with the embedded etcd if no endpoints are configured.
func (s *Service) openStore(context.Context) error {
	o, err := wiring.StoreOptions(s.config, s.Log.Logger)
	if err != nil {
		return err
	}
	if len(s.config.Etcd.Endpoints) == 0 {
		eo := wiring.EmbeddedOptions(s.config, s.Log.Logger)
		eo.Flush = s.Log.flushLines
		_, missing := os.Stat(wiring.ProcessDir(s.config)) // each process makes it below
		if s.embedded, err = embedded.Start(eo); err != nil {
			return fmt.Errorf("start embedded etcd: %w", err)
		}
		s.onStop("embedded etcd", func(context.Context) error { return s.embedded.Close() })
		s.sayFound(eo.Dir, missing == nil)
		o.Client = s.embedded.Client()
		o.Alone = true // the process before is dead, and its locks need not wait until its session expires
	}
	o.Dir = wiring.ProcessDir(s.config)
	cache := guard.NewCache(0)
	o.OnReset = cache.Reset
	o.OnForget = func(id idem.ExecutionID) {
		cache.Forget(id)
		if a := s.archive.Load(); a != nil {
			a.Forget(id)
		}
	}
	o.Rekeep, o.Archived, o.Erase = s.convertReference, s.archivedAgain, s.eraseRequest
	o.Limit = func(route string, slot idem.Slot) int { return s.limits.Load().slots(route, slot) }
	o.OnReaped, o.OnEnded, o.OnReduced = s.telemetry.OnReaped, s.telemetry.OnEnded, s.telemetry.OnReduced
	o.OnPause = s.telemetry.OnPause
	o.Counted, o.Describe = s.report.Take, s.describeProcess
	o.Follow, o.OnLost = s.followingOf, s.telemetry.OnLost
	o.OnOperation = func(op link.Operation) {
		s.contacts.recordOperation(op)
		s.telemetry.Operation(op.Name, op.Host, op.Port, op.Took, op.Code)
	}
	o.OnSession = func(e etcdlock.SessionEvent) {
		s.session.noteEvent(e)
		if e.Opened {
			s.opened.Do(func() { close(s.live) })
			s.Log.Info("session.opened", "session", e.Session, "adopting", e.Adopted)
			return
		}
		s.Log.Warn("session.lost", "session", e.Session, "reason", fmt.Sprint(e.Reason))
	}
	if s.Store, err = etcdlock.Open(o); err != nil {
		return cli.Misuse(fmt.Errorf("etcd: %w", err))
	}
	s.space.look = s.Store.Space
	s.onStop("store", func(ctx context.Context) error {
		end, _ := ctx.Deadline()
		// so that its own error names what does not answer
		ctx, cancel := context.WithTimeout(ctx, max(time.Until(end)-s.Store.LastWords(), time.Second))
		defer cancel()
		return s.Store.Close(ctx)
	})
	s.guard = guard.New(guard.Options{Ledger: s.Store.Ledger, Base: s.base,
		RequestTimeout: s.config.Etcd.RequestTimeout, Cache: cache,
		MaxWaiting: func() int { return s.limits.Load().Waiting }, Parks: s.Store.Ledger, ParkLimits: s.parkLimits})
	return s.telemetry.Watch(telemetry.Watched{
		Active: s.Store.Active, Held: s.Store.Held, Waiting: s.guard.Waiting, TTL: s.config.Etcd.SessionTTL,
		Remaining: s.Store.SessionTTLRemaining,
		Memory:    s.budget, Parked: s.parkedCount, Kept: s.keptCounts, Unrouted: s.unroutedEvents,
		Paused: s.Store.PausedHere, Routes: s.routeHealth, Shed: s.Store.ShedArrivals, Audits: s.Store.ShedAudits,
		Slots: s.Store.SlotsHere, Attention: s.attentionCount,
	})
}

// sayFound logs a start without records, because nothing else would show that they are missing.
// used says that a process has used the folder in which dir is.
func (s *Service) sayFound(dir string, used bool) {
	switch found := s.embedded.Found(); {
	case found == embedded.Nothing && !used:
		s.Log.Info("etcd.new", "dir", dir, "advice",
			"it starts without records; if this is not a first start, data_dir was deleted or changed, "+
				"and events that ran before run again when they are repeated")
	case found != embedded.Records:
		s.Log.Warn("etcd.new", "dir", dir, "advice", "a hooklock has used this folder before, and its records are "+
			"gone: events that ran before run again when they are "+
			"repeated, and what was parked is lost; if that is not intended, stop, and restore a backup with "+
			"hooklock embedded restore")
	}
}

// openProxy opens the proxy from the senders to the upstream.
func (s *Service) openProxy(ctx context.Context) error {
	rules, err := wiring.NewRules(s.config)
	if err != nil {
		return err
	}
	o, host, err := wiring.UpstreamOptions(s.config, s.Log.Logger)
	if err != nil {
		return err
	}
	reuse := wiring.Reuse(s.config.Upstream.ReuseAfterBody)
	if o.ReuseAfterBody = reuse; reuse == wire.ReuseAlways {
		o.ReuseAfterBody = wire.ReuseKnown // what a stranger may send was not meant by that
	}
	unmatched := wire.NewUpstream(o)
	o.ReuseAfterBody, o.OnReuseEnded = reuse, s.logReuseEnd
	upstream := wire.NewUpstream(o)
	s.upstream.Store(upstream)
	if err := s.telemetry.WatchUpstream(upstream.ReuseState); err != nil {
		return errors.Join(err, upstream.Close(), unmatched.Close())
	}
	s.onStop("upstream", func(context.Context) error { return errors.Join(upstream.Close(), unmatched.Close()) })
	if s.learner != nil {
		s.runBeside("suggestions", s.learner.Run)
	}
	s.runBeside("memory", memory.NewKeeper(s.budget, s.memory, s.Log.Logger).Run)
	s.setRoutes(rules.Table.Routes)
	s.telemetry.SetSampling(s.config.Log.Sample)
	s.telemetry.SetEventIDs(s.config.Log.EventID)
	s.handler = proxy.NewHandler(proxy.HandlerOptions{
		Gate: s.guard, Upstream: upstream, Unmatched: unmatched, UpstreamHost: host, Timeout: s.config.Upstream.Timeout,
		Base:          s.base,
		StreamTimeout: s.config.Limits.StreamTimeout, Budget: s.budget,
		Requests: requestStore{s.requests, s.telemetry.OnRequestFailed}, Arrivals: s.Store.Ledger,
		Archive: s.archiveRequest, Paused: s.Store.Ledger.Paused,
		NearLimit: s.report.NearLimit, Recorder: s.learner,
		Observer: proxy.Observers{s.telemetry, findings{s.report}, s.contacts}, Tracer: s.telemetry.Tracer(),
		Log: s.Log.Logger,
	}, rules)
	s.startWorker(wiring.Service(&o, host))
	s.server = proxy.NewServer(proxy.ServerOptions{
		Handler: s.handler, MaxHead: int(s.config.Limits.RequestHeader), IdleTimeout: s.config.Limits.IdleTimeout,
		MaxConnections: s.bounds.Senders, Log: s.Log.Logger,
		WritePace: wire.Pace{Bytes: int(s.config.Limits.Progress), Time: s.config.Limits.WriteTimeout},
	})
	t, err := wiring.ServerTLS("listen.tls", &s.config.Listen.TLS, s.Log.Logger)
	if err != nil {
		return err
	}
	if s.door = s.given; s.door == nil {
		if s.door, err = wiring.Listen(ctx, "listen", s.config.Listen.Address); err != nil {
			return err
		}
	}
	// fasthttp does not know its listener before Serve runs: when the start fails at the next step,
	// Shutdown may find nothing to close.
	s.onStop("listen", func(context.Context) error { _ = s.door.Close(); return nil })
	inner := s.door
	if t != nil {
		inner = tls.NewListener(inner, t)
	}
	bounded := s.server.Listener(inner)
	s.watchListener("listen", bounded, s.bounds.Senders)
	s.onStop("proxy", func(ctx context.Context) error { return s.drainDeliveries(ctx, s.server) })
	s.runListener(func() error {
		if !s.awaitSession() {
			return nil
		}
		return s.server.Serve(bounded)
	})
	s.routing.Store(true)
	return nil
}

// logReuseEnd logs once why connections to the upstream are not used again behind a body.
func (s *Service) logReuseEnd(why string) {
	s.Log.Warn("upstream.reuse_ended", "reason",
		"on a connection that had carried a request with a body before, the service "+why,
		"advice", "each delivery opens a new connection from now on, as with upstream.reuse_after_body: false; say "+
			"that if it comes again after a restart")
}

// awaitSession waits for the first session, because a delivery before it would be refused.
// Connections wait in the socket, for as long as a decision may take. In a given socket they wait
// as long as the supervisor does, or are accepted by another process that has it. It returns false
// if the process ends first.
func (s *Service) awaitSession() bool {
	patience := s.requestTimeout
	if s.given != nil {
		patience = startPatience
	}
	ctx, cancel := context.WithTimeout(s.base, patience)
	defer cancel()
	select {
	case <-s.live:
	case <-ctx.Done():
	}
	return s.base.Err() == nil
}

// runBeside runs f until a stop, which ends its context and waits for it: what was opened before is
// closed afterwards, and f may be asking it.
func (s *Service) runBeside(name string, f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.onStop(name, func(ctx context.Context) error {
		cancel()
		select {
		case <-done:
		case <-ctx.Done():
		}
		return nil
	})
	s.serving.Go(func() { defer close(done); f(ctx) })
}

// runListener runs a listener. Stop waits for its end.
func (s *Service) runListener(run func() error) {
	s.serving.Go(func() {
		if err := run(); err != nil {
			s.failed <- err
		}
	})
}

// checkReady returns why this process should get no deliveries now, or nil.
func (s *Service) checkReady() error {
	if s.draining.Load() {
		return errors.New("shutting down")
	}
	if !s.routing.Load() {
		return errors.New("routes are not loaded yet")
	}
	return s.Store.Ready()
}

// sendElsewhere makes the process unready and ends each connection with its next answer; deliveries
// are still taken.
func (s *Service) sendElsewhere() {
	s.draining.Store(true)
	if s.guard != nil {
		s.guard.Drain()
	}
	if s.worker != nil {
		s.worker.Drain()
	}
	if s.server != nil {
		s.server.Drain()
	}
}

// drainDeliveries takes no more deliveries and lets the running ones end, for shutdown_timeout.
// Then it cancels the rest, which are recorded as unknown.
func (s *Service) drainDeliveries(ctx context.Context, server interface{ Shutdown(context.Context) error }) error {
	timed, cancel := context.WithTimeout(ctx, s.config.ShutdownTimeout)
	defer cancel()
	err := server.Shutdown(timed)
	s.stopBase(guard.ErrShutdown)
	if err == nil {
		return nil
	}
	s.Log.Warn("shutdown.timeout", "problem",
		"shutdown_timeout passed: executions that still run are stopped and recorded as unknown")
	rest, cancel := context.WithTimeout(ctx, s.config.Etcd.RequestTimeout+2*time.Second)
	defer cancel()
	err = server.Shutdown(rest)
	if n, _ := s.Store.Active(); n == 0 {
		return nil // only requests that have not been read completely are left
	}
	return err
}

// Stop ends everything, in the order that loses nothing: the listener first, the store last.
func (s *Service) Stop() error {
	s.sendElsewhere()
	if s.door != nil {
		cli.Pause(context.Background(), s.config.ShutdownDelay)
	}
	var errs []error
	// of all together, see stopPatience
	end := time.Now().Add(s.config.ShutdownTimeout + s.config.Etcd.RequestTimeout + 5*time.Second)
	stop := func(c closer) {
		ctx, cancel := context.WithTimeout(context.Background(), max(time.Until(end), time.Second))
		defer cancel()
		if err := c.closeBounded(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", c.name, err))
		}
	}
	for _, c := range slices.Backward(s.closers) {
		stop(c)
	}
	s.stopBase(guard.ErrShutdown)
	stop(closer{"what runs beside", func(context.Context) error { s.serving.Wait(); return nil }})
	return errors.Join(errs...)
}

// lastMoment is how long a closer may take after the end of its context.
const lastMoment = 500 * time.Millisecond

// closeBounded calls close and waits for its end, for a bounded time: a call to a disk that hangs
// may never return.
func (c closer) closeBounded(ctx context.Context) error {
	done := make(chan error, 1)
	go func() { done <- c.close(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	timer := time.NewTimer(lastMoment)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return errors.New("it hangs, and was abandoned: check its disk and file system")
	}
}
