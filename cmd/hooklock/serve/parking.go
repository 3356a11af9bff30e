package serve

import (
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
	"hooklock/proxy/parked"
	"hooklock/proxy/telemetry"
)

// openRequests opens where the requests of parked executions are kept.
func (s *Service) openRequests(context.Context) error {
	o, err := wiring.ParkStore(s.config, s.Log.Logger)
	if err != nil {
		return err
	}
	if s.requests, err = parked.Open(o); err != nil {
		return cli.Misuse(fmt.Errorf("park_store: %w", err))
	}
	s.onStop("park store", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, s.config.Etcd.RequestTimeout) // as whoever asked it has waited
		defer cancel()
		return s.requests.Close(ctx)
	})
	return nil
}

// carry runs what is parked, by this process and by those that are gone. It is stopped behind the door and before the ledger.
func (s *Service) carry() {
	s.carrier = idem.NewCarrier(idem.CarrierOptions{
		Guard: s.guard, Policy: s.handler.Policy, Running: func() int { return int(s.parkedRunning.Load()) },
		Try: s.handler.Try, Told: s.telemetry.Told, Drop: s.dropRequest,
	})
	sweeping, stop := context.WithCancel(context.Background())
	s.onStop("carrier", func(ctx context.Context) error {
		stop()
		return s.carrier.Close(ctx)
	})
	s.serving.Go(s.carrier.Run)
	if sweeper := s.requests.Sweeper(s.Store.Unkept, time.Now); sweeper != nil {
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
}

// unrouted counts the accepted events, over all replicas, whose route this one does not have, by route.
func (s *Service) unrouted() map[string]int {
	names := s.routeNames.Load()
	if names == nil { // it starts
		return nil
	}
	return s.Store.ParkedRoutes(func(route string) bool { return !slices.Contains(*names, route) })
}

// unroutedEvents is how many they are.
func (s *Service) unroutedEvents() (n int) {
	for _, events := range s.unrouted() {
		n += events
	}
	return n
}

// warnUnrouted logs which accepted events have no route any more, and returns it as a reload says it.
func (s *Service) warnUnrouted() (said []string) {
	counts := s.unrouted()
	for _, route := range slices.Sorted(maps.Keys(counts)) {
		s.Log.Warn("parked.no_route", "route", route, "events", counts[route])
		said = append(said, fmt.Sprintf("route %s: %d accepted events wait, and no route runs them; former_names: [%s] on a route does", route, counts[route], route))
	}
	return said
}

// dropRequest deletes what is kept outside of etcd of an execution that has ended. What it cannot delete, the sweeper does.
func (s *Service) dropRequest(id idem.ExecutionID, bytes int64) {
	ctx, cancel := context.WithTimeout(context.Background(), s.requestTimeout)
	defer cancel()
	if err := s.requests.Delete(ctx, id, bytes); err != nil {
		s.Log.Warn("requests.left", "execution", string(id), "error", err.Error())
	}
}

// requestStore is where requests are kept, whose failures are told. What is given up because its time is over, is one, too; what is called off, because the
// service has answered meanwhile, is none.
type requestStore struct {
	*parked.Keeper
	told func(operation string, id idem.ExecutionID, err error)
}

// Keep implements proxy.Requests.
func (r requestStore) Keep(ctx context.Context, id idem.ExecutionID, request *parked.Request) ([]byte, error) {
	value, err := r.Keeper.Keep(ctx, id, request)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		r.told(telemetry.KeepRequest, id, err)
	}
	return value, err
}

// Fetch implements proxy.Requests.
func (r requestStore) Fetch(ctx context.Context, id idem.ExecutionID, value []byte) (*parked.Request, error) {
	request, err := r.Keeper.Fetch(ctx, id, value)
	if err != nil {
		r.told(telemetry.FetchRequest, id, err)
	}
	return request, err
}

// rekeep makes of what etcd has kept of a request what it keeps for the execution in which that runs again.
func (s *Service) rekeep(ctx context.Context, from, to idem.ExecutionID, value []byte) (again idem.Kept, err error) {
	if again.Value, err = s.requests.Rekeep(ctx, from, to, value); err == nil {
		again.Bytes, err = s.requests.Size(again.Value)
	}
	if errors.Is(err, parked.ErrNotKept) {
		err = fmt.Errorf("%w: %w", idem.ErrNoRequest, err)
	}
	return again, err
}

// keptRequest reads the request of an execution of which etcd has kept that.
func (s *Service) keptRequest(ctx context.Context, id idem.ExecutionID, kept []byte) (head, body []byte, err error) {
	r, err := s.requests.Fetch(ctx, id, kept)
	if err != nil {
		return nil, nil, err
	}
	return r.Head, r.Body, nil
}

// setLimits takes over how many slots limits have.
func (s *Service) setLimits(c *config.Config) {
	limits := wiring.Limits(c)
	s.limits.Store(&limits)
}

// limit is how many slots a limit has, as the last reload has it; 0 = there is none.
func (s *Service) limit(route string, slot idem.Slot) int {
	return (*s.limits.Load())(route, slot)
}

// setParked takes over what may be parked.
func (s *Service) setParked(c *config.Config) {
	s.parkedEvents.Store(int64(c.Limits.Parked.Events))
	s.parkedBytes.Store(int64(c.Limits.Parked.Bytes))
	s.parkedRunning.Store(int64(c.Limits.Parked.Running))
}

// parkLimits are what may be parked, as the last reload has it: nothing where what etcd takes ends with this process.
func (s *Service) parkLimits() idem.ParkLimits {
	if s.embedded != nil && s.embedded.Space().Deleted {
		return idem.ParkLimits{}
	}
	return idem.ParkLimits{Events: int(s.parkedEvents.Load()), Bytes: s.parkedBytes.Load()}
}
