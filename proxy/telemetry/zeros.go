package telemetry

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// routeHistogram is a histogram with one series for each route.
type routeHistogram struct {
	metric.Float64Histogram
	*histograms[string]                    // of the routes that were measured
	shape               metricdata.Metrics // without data
	bounds              []float64
}

func newRouteHistogram(m *maker, name, unit, description string, bounds []float64) *routeHistogram {
	h, err := m.meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(description),
		metric.WithExplicitBucketBoundaries(bounds...))
	m.errs = append(m.errs, err)
	return &routeHistogram{h, newHistograms(routeLabel),
		metricdata.Metrics{Name: name, Description: description, Unit: unit}, bounds}
}

func (h *routeHistogram) recordValue(ctx context.Context, route string, value float64) {
	h.Record(ctx, value, h.valueOf(route)...)
}

// zerosOfRoutes returns those of the routes that were not measured.
func (h *routeHistogram) zerosOfRoutes() zeroed {
	return zeroed{h.shape, h.bounds, func(routes []string) (missing [][]attribute.KeyValue) {
		measured := *h.known.Load()
		for _, route := range routes {
			if _, ok := measured[route]; !ok {
				missing = append(missing, routeLabel(route))
			}
		}
		return missing
	}}
}

func routeLabel(route string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("route", route)}
}

// zerosOfRefusals returns the zeros of etcd's answer that it is full, at each member that was
// called. An alert waits for the first one.
func (t *Telemetry) zerosOfRefusals() zeroed {
	i := t.is.operations
	shape := metricdata.Metrics{Name: i.Name(), Description: i.Description(), Unit: i.Unit()}
	return zeroed{shape, etcdBounds, func([]string) (missing [][]attribute.KeyValue) {
		measured := *t.operations.known.Load()
		zeros := map[operationKey]bool{}
		for k := range measured {
			for _, name := range []string{"txn", "put", "lease_grant"} {
				zeros[operationKey{name, k.host, k.port, "RESOURCE_EXHAUSTED"}] = true
			}
		}
		for k := range zeros {
			if _, ok := measured[k]; !ok {
				missing = append(missing, t.operationLabels(k))
			}
		}
		return missing
	}}
}

// zeroed is a histogram with series that show no measurement yet: those with the labels that
// missing returns.
type zeroed struct {
	shape   metricdata.Metrics // without data
	bounds  []float64
	missing func(routes []string) [][]attribute.KeyValue
}

// zeros are the series of histograms without measurements. The SDK cannot make one without a value,
// and without them the first wait of a route is no increase.
type zeros struct {
	of     []zeroed
	routes atomic.Pointer[[]string]
}

var _ sdkmetric.Producer = (*zeros)(nil)

// setRoutes sets the routes that have series.
func (z *zeros) setRoutes(routes []string) { z.routes.Store(&routes) }

// Produce implements sdkmetric.Producer. The SDK calls it after its own series, and a series is
// known as measured before its first value is recorded: no series is exported twice.
func (z *zeros) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	routes := z.routes.Load()
	if routes == nil {
		return nil, nil
	}
	all := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: scope}}
	for _, h := range z.of {
		data := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
		for _, labels := range h.missing(*routes) {
			data.DataPoints = append(data.DataPoints, metricdata.HistogramDataPoint[float64]{
				Attributes: attribute.NewSet(labels...), Bounds: h.bounds,
				BucketCounts: make([]uint64, len(h.bounds)+1),
			})
		}
		if len(data.DataPoints) > 0 {
			m := h.shape
			m.Data = data
			all.Metrics = append(all.Metrics, m)
		}
	}
	return []metricdata.ScopeMetrics{all}, nil
}
