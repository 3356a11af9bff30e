package main

import (
	"fmt"
	"net/http"

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
