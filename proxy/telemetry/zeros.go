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
	*histograms[string] // of the routes that were measured
	zero                func(route string) metricdata.HistogramDataPoint[float64]
	shape               metricdata.Metrics // without data
}

func newRouteHistogram(m *maker, name, unit, description string, bounds []float64) *routeHistogram {
	h, err := m.meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
	m.errs = append(m.errs, err)
	labels := labelsOf("route")
	return &routeHistogram{
		Float64Histogram: h, histograms: newHistograms(labels),
		shape: metricdata.Metrics{Name: name, Description: description, Unit: unit},
		zero: func(route string) metricdata.HistogramDataPoint[float64] {
			return metricdata.HistogramDataPoint[float64]{
				Attributes: attribute.NewSet(labels(route)...), Bounds: bounds, BucketCounts: make([]uint64, len(bounds)+1),
			}
		},
	}
}

func (h *routeHistogram) measure(ctx context.Context, route string, value float64) {
	h.Record(ctx, value, h.of(route)...)
}

// zeros are the series of histograms in which nothing was measured yet. The SDK has no way to make one without a value, and without them the
// first wait of a route is no increase.
type zeros struct {
	histograms []*routeHistogram
	routes     atomic.Pointer[[]string]
}

var _ sdkmetric.Producer = (*zeros)(nil)

// know sets the routes that have series.
func (z *zeros) know(routes []string) { z.routes.Store(&routes) }

// Produce implements sdkmetric.Producer. The SDK asks it after its own series, and a route is known to be measured before its first value is
// recorded: no series is there twice.
func (z *zeros) Produce(context.Context) ([]metricdata.ScopeMetrics, error) {
	routes := z.routes.Load()
	if routes == nil {
		return nil, nil
	}
	all := metricdata.ScopeMetrics{Scope: instrumentation.Scope{Name: scope}}
	for _, h := range z.histograms {
		measured := *h.known.Load()
		data := metricdata.Histogram[float64]{Temporality: metricdata.CumulativeTemporality}
		for _, route := range *routes {
			if _, ok := measured[route]; !ok {
				data.DataPoints = append(data.DataPoints, h.zero(route))
			}
		}
		if len(data.DataPoints) > 0 {
			m := h.shape
			m.Data = data
			all.Metrics = append(all.Metrics, m)
		}
	}
	return []metricdata.ScopeMetrics{all}, nil
}
