package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// metrics is the meter of this process and the page that shows it.
type metrics struct {
	provider *sdkmetric.MeterProvider
	meter    metric.Meter
	handler  http.Handler
}

// watch shows what is only known when somebody looks.
func (m *metrics) watch(waiting func() int, remaining func() time.Duration) error {
	_, err := m.meter.Int64ObservableGauge("hooklock.lock.waiting", metric.WithUnit("{request}"),
		metric.WithDescription("Deliveries that wait for a lock, or for the answer of a copy, in this process."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(waiting()))
			return nil
		}))
	if err != nil {
		return fmt.Errorf("make metric: %w", err)
	}
	_, err = m.meter.Float64ObservableGauge("hooklock.session.ttl.remaining", metric.WithUnit("s"),
		metric.WithDescription("How long the session may still act without another renewal; 0 when there is none."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(remaining().Seconds())
			return nil
		}))
	if err != nil {
		return fmt.Errorf("make metric: %w", err)
	}
	return nil
}

func newMetrics() (*metrics, error) {
	registry := prometheus.NewRegistry()
	// Without WithoutScopeInfo every series carries three labels about the library that made it.
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("make metrics page: %w", err)
	}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(resource.NewSchemaless(
		attribute.String("service.name", "hooklock"), attribute.String("service.version", buildVersion()))))
	return &metrics{
		provider: provider, meter: provider.Meter("hooklock"),
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}),
	}, nil
}
