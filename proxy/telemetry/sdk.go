package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/runtime"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// scope names our instruments and spans.
const scope = "hooklock"

// sdk is the state of OpenTelemetry: readers, exporters, and an end.
type sdk struct {
	meter    metric.Meter
	tracer   trace.Tracer // nil: nothing is traced
	page     http.Handler
	zeros    *zeros // of the page
	shutdown []func(context.Context) error

	losses     *losses
	stopLosses func() // ends its goroutine, after the rest was said
}

func newSDK(ctx context.Context, o Options, w wishes, clean scrubber) (*sdk, error) {
	registry := prometheus.NewRegistry()
	l := &losses{log: o.Log, now: o.Now, clean: clean}
	takeOverErrors(o.Log, l)
	s := &sdk{losses: l, stopLosses: func() {}, zeros: new(zeros),
		page: promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})}
	if w.off {
		s.meter = metricnoop.Meter{}
		return s, nil
	}
	whoami, err := resourceOf(ctx, o)
	if err != nil {
		o.Log.Warn("telemetry.config", "problem", err.Error())
	}
	s.watchLosses()
	if err := s.openMetrics(ctx, w, registry, whoami); err != nil {
		return nil, errors.Join(err, s.closeUntil(ctx))
	}
	if err := s.openTraces(ctx, w, whoami, queueSize(o.Env)); err != nil {
		return nil, errors.Join(err, s.closeUntil(ctx))
	}
	return s, nil
}

// resourceOf returns the names of the process. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have
// precedence. Its error is about these, and the resource is usable all the same.
func resourceOf(ctx context.Context, o Options) (*resource.Resource, error) {
	r, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithAttributes(
		semconv.ServiceName("hooklock"), semconv.ServiceVersion(o.Version), semconv.ServiceInstanceID(o.Instance)),
		resource.WithFromEnv())
	if err != nil {
		err = fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return r, err
}

func (s *sdk) openMetrics(ctx context.Context, w wishes, registry *prometheus.Registry,
	whoami *resource.Resource) error {
	// CPU, memory, open files and the start, under the names that common rules and dashboards use.
	if err := registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})); err != nil {
		return fmt.Errorf("measure the process: %w", err)
	}
	// Without WithoutScopeInfo every series carries three labels about the library that made it.
	page, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(),
		otelprometheus.WithProducer(s.zeros))
	if err != nil {
		return fmt.Errorf("make metrics page: %w", err)
	}
	options := []sdkmetric.Option{
		sdkmetric.WithReader(page), sdkmetric.WithResource(whoami),
		// our labels are closed sets times the routes; a limit would cut off the last routes
		sdkmetric.WithCardinalityLimit(0),
	}
	if w.metrics != "" {
		exporter, err := newMetricExporter(ctx, w.metrics)
		if err != nil {
			return fmt.Errorf("export metrics: %w", err)
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	s.shutdown = append(s.shutdown, provider.Shutdown)
	s.meter = provider.Meter(scope)
	if err := runtime.Start(runtime.WithMeterProvider(provider)); err != nil {
		return fmt.Errorf("measure the runtime: %w", err)
	}
	return nil
}

func newMetricExporter(ctx context.Context, p protocol) (sdkmetric.Exporter, error) {
	if p == otlpGRPC {
		return otlpmetricgrpc.New(ctx)
	}
	return otlpmetrichttp.New(ctx)
}

func (s *sdk) openTraces(ctx context.Context, w wishes, whoami *resource.Resource, room int) error {
	if w.traces == "" {
		return nil
	}
	exporter, err := newSpanExporter(ctx, w.traces)
	if err != nil {
		return fmt.Errorf("export traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(newQueue(exporter, room, s.losses)),
		sdktrace.WithResource(whoami))
	s.shutdown = append(s.shutdown, provider.Shutdown)
	s.tracer = provider.Tracer(scope)
	return nil
}

func newSpanExporter(ctx context.Context, p protocol) (sdktrace.SpanExporter, error) {
	if p == otlpGRPC {
		return otlptracegrpc.New(ctx)
	}
	// whatever PROTOCOL asks for
	return otlptracehttp.New(ctx, otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf))
}

// watchLosses starts logging losses, also those after which no other loss comes.
func (s *sdk) watchLosses() {
	ctx, cancel := context.WithCancel(context.Background())
	ticker := time.NewTicker(lossesPeriod / 6)
	var running sync.WaitGroup
	running.Go(func() { s.losses.logUntilEnd(ctx, ticker.C) })
	s.stopLosses = func() {
		ticker.Stop()
		cancel()
		running.Wait()
	}
}

// closeUntil sends what is left, everything at once, until ctx ends.
func (s *sdk) closeUntil(ctx context.Context) error {
	errs := make([]error, len(s.shutdown))
	var all sync.WaitGroup
	for i, end := range s.shutdown {
		all.Go(func() { errs[i] = end(ctx) })
	}
	all.Wait()
	s.stopLosses()
	return errors.Join(errs...)
}

// takeOverErrors redirects OpenTelemetry's errors, which have one handler for the process, into our
// log.
func takeOverErrors(log *slog.Logger, l *losses) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { l.countFailed(err, 0) }))
	otel.SetLogger(logr.FromSlogHandler(sdkLog{log}))
}
