package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/dbconv"

	"hooklock/idem"
	"hooklock/proxy"
	"hooklock/proxy/wire"
)

// Watched are the values that are read on collection.
type Watched struct {
	// locks that this process holds, and when the oldest was taken; zero: there is none
	Active func() (n int, since time.Time)
	// locks that no process owns, and when the oldest was taken; zero: there is none
	Held func() (n int, since time.Time)
	// deliveries that wait in this process, and since when the oldest does; zero: none does
	Waiting   func() (n int, since time.Time)
	TTL       time.Duration           // etcd.session_ttl
	Remaining func() time.Duration    // how long the session may still act
	Memory    *wire.Budget            // of bodies and answers
	Parked    func() idem.ParkedCount // over all replicas; nil: nothing is parked
	Kept      func() KeptCounts       // of requests.keep; nil: none is
	// accepted events whose route this process does not have; nil: there are none
	Unrouted func() int
	// what is paused, with how many parked executions wait for each; nil: nothing ever is
	Paused func() []idem.PauseState
	Routes func() []RouteHealth // the standing of routes with their senders; nil: it is not known
	Shed   func() int64         // arrivals that this process has not stored
	Audits func() int64         // audits that it has not stored
	// of limits, that executions of this process have or wait for; nil: there are no limits
	Slots func() []idem.SlotCount
	// items that need attention, by kind; nil, or it returns nil: another replica counts them
	Attention func() map[string]int
}

// Watch exports w. Call it once.
func (t *Telemetry) Watch(w Watched) error {
	err := errors.Join(
		t.showCrowd("hooklock.lock.active", "{lock}", "Locks that this process holds, until their end is in etcd.",
			"Age of the oldest of them.", w.Active),
		t.showCrowd("hooklock.lock.held", "{lock}",
			"Locks in etcd of holds, of the lock API, and after an unknown outcome, as seen up to 15 s ago."+everywhere,
			"Age of the oldest of their executions.", w.Held),
		t.showCrowd("hooklock.lock.waiting", "{request}",
			"Deliveries that wait for a lock, or for the answer of a duplicate.",
			"How long the oldest of them has waited.", w.Waiting),
		t.showSeconds("hooklock.session.ttl", "The setting etcd.session_ttl.", func() time.Duration { return w.TTL }),
		t.showSeconds("hooklock.session.ttl.remaining",
			"Time until the session expires without a renewal; 0 without a session.", w.Remaining),
		t.watchMemory(w.Memory),
		t.watchParked(w.Parked),
		t.watchKept(w.Kept),
		t.watchUnrouted(w.Unrouted),
		t.watchPaused(w.Paused),
		t.watchRoutes(w.Routes),
		t.showCount("hooklock.arrivals.shed", "{delivery}", "Deliveries that are missing in the history of their "+
			"event: too many waited to be written, or refused events came too fast.",
			w.Shed),
		t.showCount("hooklock.audits.shed", "{audit}",
			"Audits that are in the log alone: too many waited to be written.", w.Audits),
		t.watchSlots(w.Slots),
		t.watchAttention(w.Attention),
	)
	if err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	return nil
}

// everywhere ends the description of a metric that each replica exports for all of them.
const everywhere = " Of all replicas."

// showCrowd exports a count, and the age of the oldest.
func (t *Telemetry) showCrowd(name, unit, description, oldest string, look func() (int, time.Time)) error {
	_, err := t.sdk.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			n, _ := look()
			o.Observe(int64(n))
			return nil
		}))
	return errors.Join(err, t.showSeconds(name+".oldest", oldest, func() time.Duration {
		_, since := look()
		if since.IsZero() {
			return 0
		}
		return max(0, t.options.Now().Sub(since))
	}))
}

func (t *Telemetry) watchSlots(slots func() []idem.SlotCount) error {
	show := func(name, unit, description string, of func(idem.SlotCount) int) error {
		_, err := t.sdk.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit),
			metric.WithDescription(description),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				if slots == nil {
					return nil
				}
				for _, n := range slots() {
					o.Observe(int64(of(n)), metric.WithAttributes(attribute.String("limit", n.LimitName)))
				}
				return nil
			}))
		return err
	}
	return errors.Join(
		show("hooklock.slots.taken", "{slot}",
			"Slots that executions of this process hold, by the name in limits.shared, or lock.limit.",
			func(n idem.SlotCount) int { return n.Taken }),
		show("hooklock.slots.waiting", "{execution}", "Executions of this process that wait for a slot only.",
			func(n idem.SlotCount) int { return n.Waiting }),
	)
}

func (t *Telemetry) watchMemory(b *wire.Budget) error {
	meter := t.sdk.meter
	of := func(value func() int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(value())
			return nil
		}
	}
	_, used := meter.Int64ObservableUpDownCounter("hooklock.memory.used", metric.WithUnit("By"),
		metric.WithDescription("Memory of bodies and answers."), metric.WithInt64Callback(of(b.Used)))
	_, limit := meter.Int64ObservableUpDownCounter("hooklock.memory.limit", metric.WithUnit("By"),
		metric.WithDescription("The setting limits.memory, or its default."), metric.WithInt64Callback(of(b.Limit)))
	_, refused := meter.Int64ObservableCounter("hooklock.memory.refused", metric.WithUnit("{body}"),
		metric.WithDescription("Bodies without room in memory (503), and answers (streamed, not kept)."),
		metric.WithInt64Callback(of(b.Refused)))
	return errors.Join(used, limit, refused)
}

func (t *Telemetry) showSeconds(name, description string, look func() time.Duration) error {
	_, err := t.sdk.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(description),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(look().Seconds())
			return nil
		}))
	return err
}

func (t *Telemetry) showCount(name, unit, description string, count func() int64) error {
	_, err := t.sdk.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(count())
			return nil
		}))
	return err
}

// WatchLog exports how many lines of the log were lost. Call it once.
func (t *Telemetry) WatchLog(lost func() int64) error {
	err := t.showCount("hooklock.log.lines.dropped", "{line}",
		"Lines of the log that were lost because standard error took no more.", lost)
	if err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	return nil
}

// WatchUpstream exports how connections to the upstream are reused that carried a body. Call it
// once.
func (t *Telemetry) WatchUpstream(look func() wire.ReuseState) error {
	_, ended := t.sdk.meter.Int64ObservableGauge("hooklock.upstream.reuse.ended",
		metric.WithDescription("1 once the service answered a kept connection as one does that reads bodies "+
			"wrongly, so that each delivery opens a new one."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(oneIf(look().Ended != ""))
			return nil
		}))
	_, known := t.sdk.meter.Int64ObservableGauge("hooklock.upstream.known",
		metric.WithDescription("1 while the service says that it is a server which is known to read or drop each "+
			"body, so that its connections are kept."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(oneIf(look().Known != ""))
			return nil
		}))
	err := errors.Join(ended, known, t.showCount("hooklock.upstream.reused", "{request}",
		"Answered deliveries with a body on a connection that had carried one before (upstream.reuse_after_body).",
		func() int64 { return int64(look().Reused) })) //nolint:gosec // it fits
	if err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	return nil
}

// oneIf is the value of a gauge that says yes or no.
func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// showConfig exports the configuration in force.
func (t *Telemetry) showConfig() error {
	_, routes := t.sdk.meter.Int64ObservableGauge("hooklock.route.info",
		metric.WithDescription("1 for each configured route."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			for _, r := range *t.routes.Load() {
				o.Observe(1, r)
			}
			return nil
		}))
	_, last := t.sdk.meter.Int64ObservableGauge("hooklock.config.last_reload.successful",
		metric.WithDescription("1 while the latest configuration is in force, 0 while it was refused."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(oneIf(!t.stale.Load()))
			return nil
		}))
	if err := errors.Join(routes, last); err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	return nil
}

// countBuild exports the version of this program.
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
		attribute.String("version", t.options.Version), attribute.String("revision", revision),
		attribute.String("go_version", runtime.Version())))
	_, err := t.sdk.meter.Int64ObservableGauge("hooklock.build.info",
		metric.WithDescription("1, with the version of this program."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(1, set)
			return nil
		}))
	if err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	return nil
}

// Operation counts one request to etcd. name, host, port and code come from closed sets: etcd's
// requests, the configured members, and the codes of gRPC; code is empty if it did not fail.
func (t *Telemetry) Operation(name, host, port string, took time.Duration, code string) {
	t.is.operations.Inst().Record(context.Background(), took.Seconds(),
		t.operations.of(operationKey{name, host, port, code})...)
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

// OnReload counts a changed configuration that was taken over, or refused.
func (t *Telemetry) OnReload(taken bool) {
	result := refused
	if taken {
		result = reloaded
	}
	t.stale.Store(!taken)
	t.is.reloads.add(result)
}

// OnNotified counts a message about what needs attention: taken by its receiver, or not.
func (t *Telemetry) OnNotified(isTaken bool) {
	result := failed
	if isTaken {
		result = taken
	}
	t.is.messages.add(result)
}

// OnReaped counts and logs the execution of a dead process that this one has ended. Its route is a
// label only if this process has it, too: the lock may be of another configuration.
func (t *Telemetry) OnReaped(l *idem.Lock) {
	t.is.executions.add(resultKey{t.knownRoute(l.Route), buried})
	attrs := t.appendEvent([]slog.Attr{
		slog.String("route", l.Route), slog.String("workflow", l.Scope.Workflow),
		slog.String("key", l.Scope.Key.Short()), slog.String("execution", string(l.Execution)),
		slog.Int("attempt", l.Attempt), slog.String("trace_id", idem.ParseTrace(l.TraceParent).TraceID()),
		slog.String("holder", l.Holder),
		slog.Float64("held_ms", milliseconds(t.options.Now().Sub(l.StartedAt))),
	}, l.EventID, l.Labels)
	t.options.Log.LogAttrs(context.Background(), slog.LevelWarn, "lock.expired", attrs...)
}

// OnReduced logs that etcd has refused the record of an execution for its size, so that less of it
// is written. bytes are those of the refused request.
func (t *Telemetry) OnReduced(r *idem.Record, bytes int) {
	attrs := t.appendEvent([]slog.Attr{
		slog.String("route", r.Route), slog.String("workflow", r.Scope.Workflow),
		slog.String("key", r.Scope.Key.Short()), slog.String("execution", string(r.Execution)),
		slog.Int("attempt", r.Attempt), slog.String("trace_id", idem.ParseTrace(r.TraceParent).TraceID()),
		slog.Int("bytes", bytes), slog.String("advice", adviceReduced),
	}, r.EventID, r.Labels)
	t.options.Log.LogAttrs(context.Background(), slog.LevelWarn, "record.reduced", attrs...)
}

const adviceReduced = "etcd took no request of this size, so duplicates get the status of the answer alone: raise " +
	"--max-request-bytes of each etcd member, or lower " +
	"idempotency.replay_body"

// OnEnded counts and logs an end that this process has written down, and that no delivery reports:
// that of a hold, of a lock that was released by force, or one that was not recorded when its
// sender was answered. recorded is false if it never will be.
func (t *Telemetry) OnEnded(record *idem.Record, recorded bool) {
	r := &proxy.Report{
		Route: t.knownRoute(record.Route), Workflow: record.Scope.Workflow, Key: record.Scope.Key.Short(),
		EventID: record.EventID, Labels: record.Labels, Execution: record.Execution, Attempt: record.Attempt,
		TraceID: idem.ParseTrace(record.TraceParent).TraceID(), Outcome: record.Outcome, Recorded: recorded,
		RecordSize: record.Size,
		Held:       record.FinishedAt.Sub(record.StartedAt),
	}
	t.countEnd(context.Background(), r)
	r.Route = record.Route
	t.Event(proxy.EventReleased, r)
	if r.Outcome == idem.Unknown {
		t.Event(proxy.EventUnknown, r)
	}
}

// OnLost counts and logs an event that was refused and did not come again in time.
func (t *Telemetry) OnLost(e idem.LostEvent) {
	t.is.lost.add(t.knownRoute(e.Route))
	attrs := t.appendEvent([]slog.Attr{
		slog.String("route", e.Route), slog.String("workflow", e.Workflow), slog.String("key", e.Key.Short()),
		slog.String("trace_id", e.Arrival.TraceID),
		slog.String("decision", string(e.Arrival.Decision)), slog.Int("status", e.Arrival.Status),
		slog.Time("refused_at", e.Arrival.At),
	}, e.EventID, e.Labels)
	t.options.Log.LogAttrs(context.Background(), slog.LevelWarn, "event.lost", attrs...)
}

// knownRoute returns the route if this process has it, else "": the ledger may have routes of
// another configuration.
func (t *Telemetry) knownRoute(route string) string {
	if _, known := (*t.patterns.Load())[route]; !known {
		return ""
	}
	return route
}
