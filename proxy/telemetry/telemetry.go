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
	// process; Setenv hides from it, there, the values that it could not use.
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
	if o.Now == nil {
		o.Now = time.Now
	}
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
	if err := m.joinedError(); err != nil {
		return nil, err
	}
	t.beginSeries()
	return t, nil
}

// beginSeries shows the series that are of no route with 0, before anything has happened.
func (t *Telemetry) beginSeries() {
	t.sdk.zeros.of = []zeroed{t.is.overhead.zerosOfRoutes(), t.is.wait.zerosOfRoutes(), t.is.hold.zerosOfRoutes(),
		t.is.recordSize.zerosOfRoutes(),
		t.zerosOfRefusals()}
	t.is.losses.makeValues(labels{string(proxy.LossSession)}, labels{string(proxy.LossUnheard)},
		labels{string(proxy.LossReleased)})
	t.is.reloads.makeValues(labels{reloaded}, labels{refused})
	t.is.messages.makeValues(labels{taken}, labels{failed})
	t.is.requestFails.makeValues(labels{KeepRequest}, labels{FetchRequest})
	for _, outcome := range outcomes { // of routes that only other processes have, and of locks of the lock API
		t.is.executions.makeValues(labels{"", outcome})
	}
	t.is.deliveries.makeValues(labels{"", string(idem.DecisionRejected)},
		labels{"", string(idem.DecisionInternalError)})
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
	series := map[*counter][]labels{}
	for _, r := range routes {
		patterns[r.Name] = r.Pattern.String()
		t.seriesOf(r, func(c *counter, values labels) { series[c] = append(series[c], values) })
	}
	t.patterns.Store(&patterns)
	t.routes.Store(&routes)
	t.sdk.zeros.setRoutes(slices.Sorted(maps.Keys(patterns)))
	for c, values := range series {
		c.makeValues(values...)
	}
}

// seriesOf calls know with each series of r.
func (t *Telemetry) seriesOf(r *proxy.Route, know func(*counter, labels)) {
	for _, c := range []*counter{t.is.unrecorded, t.is.changed, t.is.twins, t.is.lost, t.is.leftAlone, t.is.exhausted} {
		know(c, labels{r.Name})
	}
	parks := r.Policy.Park != nil
	for _, of := range []struct {
		counter *counter
		may     bool // whether r can get a result
		results []string
	}{
		{t.is.acquisitions, true, acquisitionsOf(r)}, {t.is.executions, true, outcomes},
		{t.is.tries, parks, tryResults}, {t.is.parkEnds, parks, parkEnds}, {t.is.accepted, parks, parkReasons},
		{t.is.lookups, r.Policy.Idempotency, lookupResults}, {t.is.asked, r.Ask != nil, outcomesAsked},
		{t.is.ordered, r.Policy.Order != nil, orderResults},
	} {
		for _, result := range of.results {
			if of.may {
				know(of.counter, labels{r.Name, result})
			}
		}
	}
	for _, result := range partResults {
		if result != proxy.PartPlaceholder {
			know(t.is.extractions, labels{r.Name, naming.PartWorkflow, string(result)})
		}
		if r.Keys.ReadsEventID() {
			know(t.is.extractions, labels{r.Name, naming.PartEventID, string(result)})
		}
	}
	if r.Verify.Verifier != nil {
		for _, result := range signatureResults {
			know(t.is.signatures, labels{r.Name, r.Verify.Scheme, result})
		}
	}
	t.deliveriesOf(r, know)
}

// acquisitionsOf returns the results that a delivery of r can get when it asks for a lock. Without
// locks and limits the store can still be unavailable.
func acquisitionsOf(r *proxy.Route) []string {
	if r.Policy.Strategy == idem.NoLock && !r.Keys.Limited() {
		return []string{string(idem.DecisionStoreUnavailable)}
	}
	return acquisitionResults
}

// deliveriesOf calls know with the decisions that deliveries of r can get.
func (t *Telemetry) deliveriesOf(r *proxy.Route, know func(*counter, labels)) {
	woulds := []idem.Decision{idem.DecisionStoreUnavailable, idem.DecisionRejected}
	if r.Verify.Preset != nil {
		woulds = append(woulds, idem.DecisionExecuted) // a handshake
	}
	if r.Observe {
		woulds = slices.DeleteFunc(slices.Clone(decisions), func(d idem.Decision) bool {
			return d == idem.DecisionBypassed
		})
	}
	for _, d := range decisions {
		if d != idem.DecisionBypassed && (r.Policy.Order != nil ||
			d != idem.DecisionSuperseded && d != idem.DecisionStale ||
			r.Policy.Strategy == idem.Latest && d == idem.DecisionSuperseded) {
			know(t.is.deliveries, labels{r.Name, string(d)})
		}
	}
	for _, would := range woulds {
		know(t.is.deliveries, labels{r.Name, string(idem.DecisionBypassed), string(would)})
	}
}
