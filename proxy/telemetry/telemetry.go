package telemetry

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"hooklock/idem"
	"hooklock/idem/naming"
	"hooklock/proxy"
)

// Options are what a Telemetry works with.
type Options struct {
	Log *slog.Logger
	// Env reads the standard OTEL_* variables. The SDK reads some of them by itself, from the
	// process; Setenv hides from it, there, the values that it could not use. nil means an
	// environment without variables.
	Env    func(string) string
	Setenv func(name, value string) error
	// Version of this program, and an Instance that is unique to this process.
	Version, Instance string
	// UpstreamHost and UpstreamPort are the address of the upstream, as configured. Of one on a
	// unix socket the host is its path.
	UpstreamHost, UpstreamPort string
	Now                        func() time.Time // nil means time.Now
}

// Telemetry is the proxy.Observer and proxy.Tracer of production.
type Telemetry struct {
	options  Options
	clean    scrubber
	sdk      *sdk
	is       *instruments
	tracer   trace.Tracer // nil: nothing is traced
	follow   bool
	never    sampling
	eventIDs atomic.Bool                       // whether lines have the event ID; see SetEventIDs
	oneIn    atomic.Int64                      // of routine lines; see SetSampling
	patterns atomic.Pointer[map[string]string] // of routes, by name
	routes   atomic.Pointer[[]*proxy.Route]    // that are in force
	stale    atomic.Bool                       // the last configuration was refused

	listeners listeners

	fields sync.Pool // of *[]slog.Attr, for lines of deliveries

	server     *histograms[serverKey]
	client     *histograms[clientKey]
	operations *histograms[operationKey]
	spanNames  *once[spanName, string]
}

type spanName struct{ method, pattern string }

var (
	_ proxy.Observer = (*Telemetry)(nil)
	_ proxy.Tracer   = (*Telemetry)(nil)
)

// Open starts what the environment asks for. Its errors are those of malformed variables; an
// endpoint that does not answer is none.
func Open(ctx context.Context, o Options) (*Telemetry, error) {
	o.setDefaults()
	w, clean := wishesOf(o.Env), newScrubber(o.Env)
	for _, p := range append(w.problems, mendVariables(&w, o.Env, o.Setenv)...) {
		o.Log.Warn("telemetry.config", "problem", p)
	}
	s, err := newSDK(ctx, o, w, clean)
	if err != nil {
		return nil, clean.scrubError(err)
	}
	t := &Telemetry{options: o, clean: clean, sdk: s, tracer: s.tracer, follow: w.follow, never: w.never}
	t.fields.New = func() any { return &[]slog.Attr{} }
	t.patterns.Store(&map[string]string{})
	t.routes.Store(&[]*proxy.Route{})
	t.oneIn.Store(1)
	t.spanNames = newOnce(func(k spanName) string { return k.method + " " + k.pattern })
	t.server, t.client, t.operations = newHistograms(t.serverLabels), newHistograms(t.clientLabels),
		newHistograms(t.operationLabels)
	m := &maker{meter: s.meter}
	t.is = m.makeInstruments()
	t.makeInfo(m)
	t.listeners.makeConnections(m)
	if err := m.err(); err != nil {
		return nil, err
	}
	t.beginSeries()
	return t, nil
}

// setDefaults sets what is not given.
func (o *Options) setDefaults() {
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	if o.Setenv == nil {
		o.Setenv = func(string, string) error { return nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// beginSeries shows the series that are of no route with 0, before anything has happened.
func (t *Telemetry) beginSeries() {
	t.sdk.zeros.of = []zeroed{t.is.overhead.zerosOfRoutes(), t.is.wait.zerosOfRoutes(), t.is.hold.zerosOfRoutes(),
		t.is.recordSize.zerosOfRoutes(),
		t.zerosOfRefusals()}
	t.is.losses.makeValues(string(proxy.LossSession), string(proxy.LossUnheard), string(proxy.LossReleased))
	t.is.reloads.makeValues(reloaded, refused)
	t.is.messages.makeValues(taken, failed)
	t.is.requestFails.makeValues(KeepRequest, FetchRequest)
	for _, outcome := range outcomes { // of routes that only other processes have, and of locks of the lock API
		t.is.executions.makeValues(resultKey{"", outcome})
	}
	t.is.deliveries.makeValues(deliveryKey{decision: string(idem.DecisionRejected)},
		deliveryKey{decision: string(idem.DecisionInternalError)})
}

// Page serves the metrics, as Prometheus text or as OpenMetrics, which has trace IDs as exemplars.
func (t *Telemetry) Page() http.Handler { return t.sdk.page }

// Tracer returns t if traces are asked for, else nil.
func (t *Telemetry) Tracer() proxy.Tracer {
	if t.tracer == nil {
		return nil
	}
	return t
}

// Close sends what is left, until ctx ends. Its error says what was lost.
func (t *Telemetry) Close(ctx context.Context) error {
	return t.clean.scrubError(t.sdk.closeUntil(ctx))
}

// SetRoutes makes the series of these routes, with 0 if nothing has happened yet. Series of removed
// routes stay until the process ends.
func (t *Telemetry) SetRoutes(routes []*proxy.Route) {
	patterns := maps.Clone(*t.patterns.Load())
	var deliveries []deliveryKey
	var acquisitions, lookups, executions, tries, ends, accepted, ordered, asked []resultKey
	var parts []partKey
	var signatures []schemeKey
	var names []string
	for _, r := range routes {
		patterns[r.Name] = r.Pattern.String()
		names = append(names, r.Name)
		deliveries = append(deliveries, deliveryKeys(r)...)
		acquisitions = append(acquisitions, resultKeys(r, true, acquisitionsOf(r))...)
		executions = append(executions, resultKeys(r, true, outcomes)...)
		tries = append(tries, resultKeys(r, r.Policy.Park != nil, tryResults)...)
		ends = append(ends, resultKeys(r, r.Policy.Park != nil, parkEnds)...)
		accepted = append(accepted, resultKeys(r, r.Policy.Park != nil, parkReasons)...)
		lookups = append(lookups, resultKeys(r, r.Policy.Idempotency, lookupResults)...)
		asked = append(asked, resultKeys(r, r.Ask != nil, outcomesAsked)...)
		ordered = append(ordered, resultKeys(r, r.Policy.Order != nil, orderResults)...)
		for _, result := range partResults {
			if result != proxy.PartPlaceholder {
				parts = append(parts, partKey{r.Name, naming.PartWorkflow, string(result)})
			}
			if r.Keys.ReadsEventID() {
				parts = append(parts, partKey{r.Name, naming.PartEventID, string(result)})
			}
		}
		if r.Verify.Verifier != nil {
			for _, result := range signatureResults {
				signatures = append(signatures, schemeKey{r.Name, r.Verify.Scheme, result})
			}
		}
	}
	t.patterns.Store(&patterns)
	t.routes.Store(&routes)
	t.sdk.zeros.setRoutes(slices.Sorted(maps.Keys(patterns)))
	t.is.deliveries.makeValues(deliveries...)
	t.is.asked.makeValues(asked...)
	t.is.acquisitions.makeValues(acquisitions...)
	t.is.lookups.makeValues(lookups...)
	t.is.executions.makeValues(executions...)
	t.is.unrecorded.makeValues(names...)
	t.is.changed.makeValues(names...)
	t.is.twins.makeValues(names...)
	t.is.lost.makeValues(names...)
	t.is.leftAlone.makeValues(names...)
	t.is.exhausted.makeValues(names...)
	t.is.tries.makeValues(tries...)
	t.is.parkEnds.makeValues(ends...)
	t.is.accepted.makeValues(accepted...)
	t.is.extractions.makeValues(parts...)
	t.is.ordered.makeValues(ordered...)
	t.is.signatures.makeValues(signatures...)
}

// resultKeys returns a key for each result of r, none if r cannot get them.
func resultKeys[T ~string](r *proxy.Route, may bool, results []T) (keys []resultKey) {
	for _, result := range results {
		if may {
			keys = append(keys, resultKey{r.Name, string(result)})
		}
	}
	return keys
}

// acquisitionsOf returns the results that a delivery of r can get when it asks for a lock. Without
// locks and limits the store can still be unavailable.
func acquisitionsOf(r *proxy.Route) []string {
	if r.Policy.Strategy == idem.NoLock && !r.Keys.Limited() {
		return []string{string(idem.DecisionStoreUnavailable)}
	}
	return acquisitionResults
}

// deliveryKeys returns the decisions that deliveries of r can get.
func deliveryKeys(r *proxy.Route) []deliveryKey {
	woulds := []idem.Decision{idem.DecisionStoreUnavailable, idem.DecisionRejected}
	if r.Verify.Preset != nil {
		woulds = append(woulds, idem.DecisionExecuted) // a handshake
	}
	if r.Observe {
		woulds = slices.DeleteFunc(slices.Clone(decisions), func(d idem.Decision) bool {
			return d == idem.DecisionBypassed
		})
	}
	var keys []deliveryKey
	for _, d := range decisions {
		if d != idem.DecisionBypassed && (r.Policy.Order != nil ||
			d != idem.DecisionSuperseded && d != idem.DecisionStale ||
			r.Policy.Strategy == idem.Latest && d == idem.DecisionSuperseded) {
			keys = append(keys, deliveryKey{r.Name, string(d), ""})
		}
	}
	for _, would := range woulds {
		keys = append(keys, deliveryKey{r.Name, string(idem.DecisionBypassed), string(would)})
	}
	return keys
}
