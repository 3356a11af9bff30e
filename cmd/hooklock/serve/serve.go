package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
)

// Name is the name of the command serve.
const Name = "serve"

// NewServe is the command serve.
func NewServe(e *cli.Environment) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   Name,
		Short: "run the proxy",
		Long: `Run the proxy. SIGHUP, or a change of the file, reloads the configuration; SIGTERM ends the process when what runs has ended, a second one at
once. SIGUSR1 drains, as hooklock drain does.

A configuration that it cannot start with is exit code 78, so that a supervisor can tell it from a crash, which is 2.`,
		Example: `  hooklock serve --config sidecar.yaml
  HOOKLOCK__ETCD__ENDPOINTS=http://etcd-0:2379,http://etcd-1:2379 hooklock serve`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			early := catchEarlySignals()
			defer early.stopSignals()
			loaded, err := wiring.Load(e, path, nil, true)
			if errors.Is(err, fs.ErrNotExist) {
				return cli.Misuse(fmt.Errorf("%w; write one (README.md shows two lines to begin with), or name "+
					"it with --config", err))
			}
			if err == nil {
				err = wiring.Check(loaded, true)
			}
			if err != nil {
				return err
			}
			log := OpenLog(e, loaded)
			for _, w := range loaded.Warnings {
				log.Warn("config.warning", "problem", w.String())
			}
			return serveUntilSignal(cmd.Context(), e, path, loaded, log, early, func(*Service) {})
		},
	}
	cmd.Flags().StringVar(&path, "config", wiring.DefaultConfig, "configuration file")
	return cmd
}

// earlySignals are the signals that end nothing. Without a handler they would end the process, so
// they are caught before anything of it can be seen, and wait until it serves. One pending of each
// is enough.
type earlySignals struct{ hangups, drains chan os.Signal }

func catchEarlySignals() *earlySignals {
	s := &earlySignals{make(chan os.Signal, 1), make(chan os.Signal, 1)}
	signal.Notify(s.hangups, syscall.SIGHUP)
	signal.Notify(s.drains, syscall.SIGUSR1)
	return s
}

func (s *earlySignals) stopSignals() {
	signal.Stop(s.hangups)
	signal.Stop(s.drains)
}

// serveUntilSignal runs a service until a signal ends it. It calls started when deliveries are
// accepted.
func serveUntilSignal(ctx context.Context, e *cli.Environment, path string, loaded *config.Loaded, log *ServerLog,
	early *earlySignals, started func(*Service)) error {
	// Ends have a channel of their own, because a signal without room is lost: an end must not be,
	// behind pending reloads. Before this, one ends the process at once, even if a file hangs.
	ends := make(chan os.Signal, 2)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(ends)
	door, err := givenDoor()
	if err != nil {
		return err
	}
	s, err := startOrDie(ends, func() (*Service, error) { return Start(ctx, path, loaded, log, door) })
	if err != nil {
		return err
	}
	watcher, changed, stopWatching := s.watchFile(path, loaded.File)
	defer stopWatching()
	supervisor := newSupervisor(log.Logger)
	defer supervisor.close()
	started(s)
	live := s.live
	again := &reloader{service: s, env: e, path: path, watcher: watcher, supervisor: supervisor}
	for {
		hangups, changed, asks := early.hangups, changed, s.reloads
		if again.read != nil { // one at a time
			hangups, changed, asks = nil, nil, nil
		}
		select {
		case <-live:
			live = nil
			supervisor.reportReady("serving")
		case <-supervisor.Late:
			supervisor.reportReady("serving; etcd has given no session yet")
		case <-supervisor.Beat:
			supervisor.keepAlive()
		case <-hangups:
			again.beginReload("SIGHUP", nil)
		case <-early.drains:
			log.Info("draining")
			s.sendElsewhere()
		case sig := <-ends:
			log.Info("stopping", "signal", sig.String())
			return s.stopOrDie(ends, time.Now(), supervisor)
		case <-changed:
			again.beginReload("the file changed", nil)
		case asked := <-asks:
			again.beginReload("", asked)
		case read := <-again.read:
			again.endReload(read)
		case <-again.late:
			again.giveUp()
		case <-again.look:
			again.lookAgain()
		case err := <-s.failed:
			return errors.Join(err, s.stopOrDie(ends, time.Time{}, supervisor))
		case <-ctx.Done():
			return s.stopOrDie(ends, time.Time{}, supervisor)
		}
	}
}

// insistence is how long after the first signal another counts as a second. timeout(1) signals the
// program and then its group, and wrappers forward what a terminal has sent to all: that is one
// request to stop, which must not cut off what runs.
const insistence = time.Second

// startOrDie starts, unless a second signal ends the process at once. After a first one it
// finishes, and puts the signal back to ends.
func startOrDie(ends chan os.Signal, start func() (*Service, error)) (*Service, error) {
	type outcome struct {
		s   *Service
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		s, err := start()
		done <- outcome{s, err}
	}()
	var first os.Signal
	var since time.Time
	for {
		select {
		case o := <-done:
			if first != nil {
				select {
				case ends <- first:
				default: // one is enough
				}
			}
			return o.s, o.err
		case sig := <-ends:
			switch {
			case first == nil:
				first, since = sig, time.Now()
			case time.Since(since) >= insistence:
				return nil, fmt.Errorf("ended at once by a second signal (%s), in the middle of the start", sig)
			}
		}
	}
}

// stopOrDie stops, unless a second signal ends the process at once: then running executions stay in
// the ledger, and are reaped as unknown after the session has expired. since is the time of the
// first signal, or zero if there was none.
func (s *Service) stopOrDie(ends <-chan os.Signal, since time.Time, supervisor *supervisor) error {
	supervisor.announceStop(s.stopPatience())
	done := make(chan error, 1)
	go func() { done <- s.Stop() }()
	for {
		select {
		case err := <-done:
			s.Log.Info("stopped")
			return err
		case <-supervisor.Beat:
			supervisor.keepAlive()
		case sig := <-ends:
			if time.Since(since) >= insistence {
				return fmt.Errorf("ended at once by a second signal (%s); what still ran is unknown", sig)
			}
		}
	}
}

// stopPatience returns how long a supervisor should wait for the end of the process: longer than a
// stop takes.
func (s *Service) stopPatience() time.Duration {
	return s.config.ShutdownDelay + s.config.ShutdownTimeout + s.config.Etcd.RequestTimeout + 10*time.Second
}

// watchFile returns a watcher of the configuration file. If the system has no watch left, which
// depends on all processes of the machine, the service runs without, and reloads on request alone.
// Only a regular file is watched: a pipe would look like an emptied file.
func (s *Service) watchFile(path string, text []byte) (*config.Watcher, <-chan struct{}, func()) {
	changed := make(chan struct{})
	done := make(chan struct{})
	w := config.NewWatcher(path, text, func(_ []byte, err error) {
		if err != nil {
			return // the file is missing for a moment while a ConfigMap is swapped
		}
		select {
		case changed <- struct{}{}:
		case <-done:
		}
	})
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		s.Log.Warn("config.warning", "problem", path+" is a pipe or a device, not a file: it is not watched, and a "+
			"reload finds nothing; give a file with --config")
	} else if err := w.Start(); err != nil {
		s.Log.Warn("config.warning", "problem", fmt.Sprintf("%s is not watched: %s; a changed file is read at "+
			"SIGHUP and hooklock reload alone (raise fs.inotify.max_user_instances)", path, err))
	}
	return w, changed, func() { close(done); w.Stop() }
}
