package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"hooklock/cmd/hooklock/cli"
	"hooklock/cmd/hooklock/wiring"
	"hooklock/config"
	"hooklock/idem"
	"hooklock/idem/guard"
	"hooklock/idem/worker"
	"hooklock/proxy/asking"
	"hooklock/proxy/requests"
	"hooklock/proxy/telemetry"
)

// openRequests opens the request store.
func (s *Service) openRequests(context.Context) error {
	o, err := wiring.ParkStore(s.config, s.Log.Logger)
	if err != nil {
		return err
	}
	if s.requests, err = requests.Open(o); err != nil {
		return cli.Misuse(fmt.Errorf("park_store: %w", err))
	}
	s.onStop("park store", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, s.config.Etcd.RequestTimeout) // the timeout of the request has passed
		defer cancel()
		return s.requests.Close(ctx)
	})
	s.openArchive()
	return nil
}

// startWorker starts the worker that runs parked executions, also those of dead processes, and what
// asks the service about events of unknown outcome. They stop after the door and before the ledger.
func (s *Service) startWorker(service asking.Service) {
	asker := asking.New(asking.Options{
		Ledger: s.Store.Questions(), Service: service, Rule: s.handler.AskRule, Asks: s.handler.Asks,
		RequestTimeout: s.requestTimeout, OnAnswer: s.telemetry.OnAsked, Now: time.Now,
	})
	s.worker = worker.New(worker.Options{
		Guard: s.guard, Ledger: s.Store.Ledger, RequestTimeout: s.requestTimeout,
		Policy: s.handler.Policy, Running: func() int { return s.limits.Load().Parked.Running },
		Try: s.handler.Try, Ask: asker.Once, OnEvent: s.telemetry.OnParkedEvent, Drop: s.dropRequest,
	})
	sweeping, stop := context.WithCancel(context.Background())
	s.onStop("carrier", func(ctx context.Context) error {
		stop()
		return s.worker.Close(ctx)
	})
	s.serving.Go(s.worker.Run)
	if sweeper := s.requests.Sweeper(s.Store.WithoutRequest, time.Now); sweeper != nil {
		s.serving.Go(func() {
			sweeper.Run(sweeping, func(deleted int, err error) {
				switch {
				case err != nil:
					s.Log.Warn("requests.sweep", "error", err.Error())
				case deleted > 0:
					s.Log.Info("requests.swept", "deleted", deleted)
				}
			})
		})
	}
	s.runBeside("asker", asker.Run) // an answer that has come is written down before the store closes
}

// countUnrouted counts the accepted events of all replicas whose route this replica does not have,
// by route.
func (s *Service) countUnrouted() map[string]int {
	names := s.routeNames.Load()
	if names == nil { // before the routes are loaded
		return nil
	}
	return s.Store.ParkedRoutes(func(route string) bool { return !slices.Contains(*names, route) })
}

// unroutedEvents returns their number.
func (s *Service) unroutedEvents() (n int) {
	for _, events := range s.countUnrouted() {
		n += events
	}
	return n
}

// warnUnrouted logs accepted events without a route, and returns the warnings for a reload.
func (s *Service) warnUnrouted() (said []string) {
	counts := s.countUnrouted()
	for _, route := range slices.Sorted(maps.Keys(counts)) {
		s.Log.Warn("parked.no_route", "route", route, "events", counts[route])
		said = append(said, wiring.NoRoute(route, counts[route]))
	}
	return said
}

// dropRequest deletes the stored request of an ended execution outside of etcd. The sweeper deletes
// what it cannot.
func (s *Service) dropRequest(id idem.ExecutionID, bytes int64) {
	ctx, cancel := context.WithTimeout(context.Background(), s.requestTimeout)
	defer cancel()
	if err := s.requests.Delete(ctx, id, bytes); err != nil {
		s.Log.Warn("requests.left", "execution", string(id), "error", err.Error())
	}
}

// eraseRequest deletes the stored request of an execution outside of etcd, at the request of a
// person; value is what etcd had of it. It has its own time, because a store may be slower than
// etcd. The sweeper deletes what it cannot.
func (s *Service) eraseRequest(ctx context.Context, id idem.ExecutionID, value []byte) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.requestTimeout)
	defer cancel()
	err := s.requests.Drop(ctx, id, value)
	if err != nil {
		s.Log.Warn("requests.left", "execution", string(id), "error", err.Error())
	}
	return err
}

// requestStore is a request store that logs failures. A timeout is a failure; a cancelled call,
// because the service has answered meanwhile, is not.
type requestStore struct {
	*requests.Keeper
	told func(operation string, id idem.ExecutionID, err error)
}

// Keep implements proxy.Requests.
func (r requestStore) Keep(ctx context.Context, id idem.ExecutionID, request *requests.Request) ([]byte, error) {
	value, err := r.Keeper.Keep(ctx, id, request)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		r.told(telemetry.KeepRequest, id, err)
	}
	return value, err
}

// Fetch implements proxy.Requests.
func (r requestStore) Fetch(ctx context.Context, id idem.ExecutionID, value []byte) (*requests.Request, error) {
	request, err := r.Keeper.Fetch(ctx, id, value)
	if err != nil {
		r.told(telemetry.FetchRequest, id, err)
	}
	return request, err
}

// convertReference converts the reference to a stored request for the execution that runs it again.
func (s *Service) convertReference(ctx context.Context, from, to idem.ExecutionID,
	value []byte) (again idem.StoredRequest,
	err error) {
	if again.Value, err = s.requests.Rekeep(ctx, from, to, value); err == nil {
		again.Bytes, err = s.requests.Size(again.Value)
	}
	if errors.Is(err, requests.ErrNotKept) {
		err = fmt.Errorf("%w: %w", idem.ErrNoRequest, err)
	}
	return again, err
}

// keptRequest reads the stored request of an execution.
func (s *Service) keptRequest(ctx context.Context, id idem.ExecutionID, kept []byte) (head, body []byte, err error) {
	r, err := s.requests.Fetch(ctx, id, kept)
	if err != nil {
		return nil, nil, err
	}
	return r.Head, r.Body, nil
}

// limits are limits of the configuration that a reload replaces.
type limits struct {
	config.Limits
	slots func(route string, slot idem.Slot) int // of a limit; 0 = there is no such limit
}

// setLimits takes over the limits of c.
func (s *Service) setLimits(c *config.Config) {
	s.limits.Store(&limits{c.Limits, wiring.Limits(c)})
	s.budget.SetLimit(cmp.Or(int64(c.Limits.Memory), s.memory.Bodies()))
	if least := int64(c.Limits.LeastMemory()); s.budget.Limit() < least {
		s.Log.Warn("config.warning", "problem", fmt.Sprintf("limits.memory: the %s leaves %d bytes for bodies, so "+
			"that one as long as limits.request_body never has room; "+
			"give the process more memory, or lower limits.request_body", s.memory.From, s.budget.Limit()))
	}
}

// parkLimits returns the limits of parked requests: nothing if the data of etcd ends with this
// process.
func (s *Service) parkLimits() guard.ParkLimits {
	if s.embedded != nil && s.embedded.Space().Deleted {
		return guard.ParkLimits{}
	}
	parked := &s.limits.Load().Parked
	return guard.ParkLimits{Events: parked.Events, Bytes: int64(parked.Bytes)}
}

// parkedCount counts what is parked, over all processes.
func (s *Service) parkedCount() idem.ParkedCount { return s.Store.Parked(idem.Scope{}) }
