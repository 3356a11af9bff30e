package telemetry

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/dbconv"

	"hooklock/idem"
	"hooklock/proxy"
)

// Watched is what is only known when somebody looks.
type Watched struct {
	Active    func() int           // locks that this process holds
	Waiting   func() int           // deliveries that wait in this process
	Remaining func() time.Duration // how long the session may still act
}

// Watch shows it with each look at the metrics. Call it once.
func (t *Telemetry) Watch(w Watched) error {
	meter := t.sdk.meter
	_, active := meter.Int64ObservableUpDownCounter("hooklock.lock.active", metric.WithUnit("{lock}"),
		metric.WithDescription("Locks that this process holds, those included whose end is not in etcd yet."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(w.Active()))
			return nil
		}))
	_, waiting := meter.Int64ObservableUpDownCounter("hooklock.lock.waiting", metric.WithUnit("{request}"),
		metric.WithDescription("Deliveries that wait for a lock, or for the answer of a copy, in this process."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(w.Waiting()))
			return nil
		}))
	_, remaining := meter.Float64ObservableGauge("hooklock.session.ttl.remaining", metric.WithUnit("s"),
		metric.WithDescription("How long the session may still act without another renewal; 0 when there is none."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(w.Remaining().Seconds())
			return nil
		}))
	if err := errors.Join(active, waiting, remaining); err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	return nil
}

// WatchLog shows with each look at the metrics how many lines of the log were lost. Call it once.
func (t *Telemetry) WatchLog(lost func() int64) error {
	_, err := t.sdk.meter.Int64ObservableCounter("hooklock.log.lines.dropped", metric.WithUnit("{line}"),
		metric.WithDescription("Lines of the log that were lost because standard error took no more; deliveries do not wait for it."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(lost())
			return nil
		}))
	if err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	return nil
}

// showConfig shows what is in force.
func (t *Telemetry) showConfig() error {
	_, routes := t.sdk.meter.Int64ObservableGauge("hooklock.route.info", metric.WithDescription("1 for each configured route, with its mode: enforce or observe."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for _, r := range *t.routes.Load() {
				o.Observe(1, r)
			}
			return nil
		}))
	_, last := t.sdk.meter.Int64ObservableGauge("hooklock.config.last_reload.successful",
		metric.WithDescription("1 while the configuration as it was last written is in force; 0 while it was refused and an older one is."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if t.stale.Load() {
				o.Observe(0)
			} else {
				o.Observe(1)
			}
			return nil
		}))
	if err := errors.Join(routes, last); err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	return nil
}

// countBuild shows which program this is.
func (t *Telemetry) countBuild() error {
	revision := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	set := metric.WithAttributeSet(attribute.NewSet(
		attribute.String("version", t.o.Version), attribute.String("revision", revision), attribute.String("go_version", runtime.Version())))
	_, err := t.sdk.meter.Int64ObservableGauge("hooklock.build.info", metric.WithDescription("1, with the version of this program."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(1, set)
			return nil
		}))
	if err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	return nil
}

// Operation counts one request to etcd. name, host, port and code come from closed sets: etcd's requests, the configured members, and the
// codes of gRPC; code is empty when it did not fail.
func (t *Telemetry) Operation(name, host, port string, took time.Duration, code string) {
	t.is.operations.Inst().Record(context.Background(), took.Seconds(), t.operations.of(operationKey{name, host, port, code})...)
}

func (t *Telemetry) operationLabels(k operationKey) []attribute.KeyValue {
	labels := append([]attribute.KeyValue{
		semconv.DBSystemNameKey.String(string(dbconv.SystemNameAttr("etcd"))), semconv.DBOperationName(k.name),
	}, addressOf(k.host, k.port)...)
	if k.code != "" {
		labels = append(labels, semconv.ErrorTypeKey.String(k.code))
	}
	return labels
}

// Reloaded counts a changed configuration that was taken over, or refused.
func (t *Telemetry) Reloaded(taken bool) {
	result := refused
	if taken {
		result = reloaded
	}
	t.stale.Store(!taken)
	t.is.reloads.add(result)
}

// Buried counts and logs the execution of a dead process that this one has ended. Its route is a label only where this process has it, too:
// the lock may be of another configuration.
func (t *Telemetry) Buried(l *idem.Lock) {
	t.is.executions.add(resultKey{t.ours(l.Route), buried})
	t.o.Log.Warn("lock.expired", "route", l.Route, "workflow", l.Scope.Workflow, "key", l.Scope.Key.Short(), "execution", string(l.Execution),
		"attempt", l.Attempt, "trace_id", traceIDOf(l.TraceParent), "holder", l.Holder, "held_ms", milliseconds(t.o.Now().Sub(l.StartedAt)))
}

// Ended counts and logs the end of a held execution that this process has written down because somebody asked for it. The delivery that began
// it has its own line, and said nothing of the end.
func (t *Telemetry) Ended(record *idem.Record) {
	r := &proxy.Report{
		Route: t.ours(record.Route), Workflow: record.Scope.Workflow, Key: record.Scope.Key.Short(), Execution: record.Execution, Attempt: record.Attempt,
		TraceID: traceIDOf(record.TraceParent), Outcome: record.Outcome, Recorded: true, RecordSize: record.Size,
		Held: record.FinishedAt.Sub(record.StartedAt),
	}
	t.countEnd(context.Background(), r)
	r.Route = record.Route
	t.Event(proxy.EventReleased, r)
	if r.Outcome == idem.Unknown {
		t.Event(proxy.EventUnknown, r)
	}
}

// ours is the route where this process has it, else empty: the ledger may tell of another configuration.
func (t *Telemetry) ours(route string) string {
	if _, known := (*t.patterns.Load())[route]; !known {
		return ""
	}
	return route
}

// traceIDOf is the trace ID of a traceparent, empty where there is none.
func traceIDOf(traceParent string) string {
	if fields := strings.Split(traceParent, "-"); len(fields) == 4 {
		return fields[1]
	}
	return ""
}
