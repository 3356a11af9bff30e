package telemetry

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/attribute"
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
	Parked    func() idem.ParkedCount // over all replicas
	Kept      func() KeptCounts       // of requests.keep
	// accepted events whose route this process does not have
	Unrouted func() int
	// what is paused, with how many parked executions wait for each
	Paused func() []idem.PauseState
	Routes func() []RouteHealth // the standing of routes with their senders
	Shed   func() int64         // arrivals that this process has not stored
	Audits func() int64         // audits that it has not stored
	// of limits, that executions of this process have or wait for
	Slots func() []idem.SlotCount
	// items that need attention, by kind; it returns nil if another replica counts them
	Attention func() map[string]int
}

// Watch exports w. Call it once.
func (t *Telemetry) Watch(w Watched) error {
	m := &maker{meter: t.sdk.meter}
	t.makeCrowd(m, "hooklock.lock.active", "{lock}", "Locks that this process holds, until their end is in etcd.",
		"Age of the oldest of them.", w.Active)
	t.makeCrowd(m, "hooklock.lock.held", "{lock}",
		"Locks in etcd of holds, of the lock API, and after an unknown outcome, as seen up to 15 s ago."+everywhere,
		"Age of the oldest of their executions.", w.Held)
	t.makeCrowd(m, "hooklock.lock.waiting", "{request}",
		"Deliveries that wait for a lock, or for the answer of a duplicate.",
		"How long the oldest of them has waited.", w.Waiting)
	m.addGauges(
		observed{"hooklock.session.ttl", "s", "The setting etcd.session_ttl.",
			func(see see) { see(w.TTL.Seconds()) }},
		observed{"hooklock.session.ttl.remaining", "s",
			"Time until the session expires without a renewal; 0 without a session.",
			func(see see) { see(w.Remaining().Seconds()) }},
	)
	m.addSums(
		observed{"hooklock.memory.used", "By", "Memory of bodies and answers.", oneSeries(w.Memory.Used)},
		observed{"hooklock.memory.limit", "By", "The setting limits.memory, or its default.",
			oneSeries(w.Memory.Limit)},
	)
	m.addCounters(
		observed{"hooklock.memory.refused", "{body}",
			"Bodies without room in memory (503), and answers (streamed, not kept).", oneSeries(w.Memory.Refused)},
		observed{"hooklock.arrivals.shed", "{delivery}", "Deliveries that are missing in the history of their event: " +
			"too many waited to be written, or refused events came too fast.", oneSeries(w.Shed)},
		observed{"hooklock.audits.shed", "{audit}",
			"Audits that are in the log alone: too many waited to be written.", oneSeries(w.Audits)},
	)
	t.watchParked(m, w.Parked, w.Unrouted)
	watchKept(m, w.Kept)
	t.watchPaused(m, w.Paused)
	watchRoutes(m, w.Routes)
	watchSlots(m, w.Slots)
	m.addGauges(observed{"hooklock.attention.items", "{item}",
		"What needs attention, as the page and hooklock status " +
			"list it, counted each minute by one of the replicas for all.", func(see see) {
			for kind, n := range w.Attention() {
				see(float64(n), attribute.String("kind", kind))
			}
		}})
	return m.joinedError()
}

// everywhere ends the description of a metric that each replica exports for all of them.
const everywhere = " Of all replicas."

// makeCrowd exports a count, and the age of the oldest.
func (t *Telemetry) makeCrowd(m *maker, name, unit, description, oldest string, look func() (int, time.Time)) {
	m.addSums(observed{name, unit, description, oneSeries(func() int { n, _ := look(); return n })})
	m.addGauges(observed{name + ".oldest", "s", oldest, t.ageOf(func() time.Time { _, since := look(); return since })})
}

// ageOf looks at how long ago a time is; 0 for the zero time.
func (t *Telemetry) ageOf(since func() time.Time) func(see) {
	return func(see see) {
		age := time.Duration(0)
		if at := since(); !at.IsZero() {
			age = max(0, t.options.Now().Sub(at))
		}
		see(age.Seconds())
	}
}

func watchSlots(m *maker, slots func() []idem.SlotCount) {
	each := func(of func(idem.SlotCount) int) func(see) {
		return func(see see) {
			for _, n := range slots() {
				see(float64(of(n)), attribute.String("limit", n.LimitName))
			}
		}
	}
	m.addSums(
		observed{"hooklock.slots.taken", "{slot}",
			"Slots that executions of this process hold, by the name in limits.shared, or lock.limit.",
			each(func(n idem.SlotCount) int { return n.Taken })},
		observed{"hooklock.slots.waiting", "{execution}", "Executions of this process that wait for a slot only.",
			each(func(n idem.SlotCount) int { return n.Waiting })},
	)
}

// WatchLog exports how many lines of the log were lost. Call it once.
func (t *Telemetry) WatchLog(lost func() int64) error {
	m := &maker{meter: t.sdk.meter}
	m.addCounters(observed{"hooklock.log.lines.dropped", "{line}",
		"Lines of the log that were lost because standard error took no more.", oneSeries(lost)})
	return m.joinedError()
}

// WatchUpstream exports how connections to the upstream are reused that carried a body. Call it
// once.
func (t *Telemetry) WatchUpstream(look func() wire.ReuseState) error {
	m := &maker{meter: t.sdk.meter}
	m.addFlags(
		observed{"hooklock.upstream.reuse.ended", "", "1 once the service answered a kept connection as one does " +
			"that reads bodies wrongly, so that each delivery opens a new one.",
			oneSeries(func() int64 { return oneIf(look().Ended != "") })},
		observed{"hooklock.upstream.known", "", "1 while the service says that it is a server which is known to read " +
			"or drop each body, so that its connections are kept.",
			oneSeries(func() int64 { return oneIf(look().Known != "") })},
	)
	m.addCounters(observed{"hooklock.upstream.reused", "{request}",
		"Answered deliveries with a body on a connection that had carried one before (upstream.reuse_after_body).",
		oneSeries(func() int64 { return int64(look().Reused) })}) //nolint:gosec // it fits
	return m.joinedError()
}

// oneIf is the value of a gauge that says yes or no.
func oneIf(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// makeInfo exports the version of this program, and the configuration in force.
func (t *Telemetry) makeInfo(m *maker) {
	revision := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	m.addFlags(
		observed{"hooklock.build.info", "", "1, with the version of this program.", func(see see) {
			see(1, attribute.String("version", t.options.Version), attribute.String("revision", revision),
				attribute.String("go_version", runtime.Version()))
		}},
		observed{"hooklock.route.info", "", "1 for each configured route.", func(see see) {
			for _, r := range *t.routes.Load() {
				see(1, attribute.String("route", r.Name), attribute.String("mode", r.Mode()))
			}
		}},
		observed{"hooklock.config.last_reload.successful", "",
			"1 while the latest configuration is in force, 0 while it was refused.",
			oneSeries(func() int64 { return oneIf(!t.stale.Load()) })},
	)
}

// Operation counts one request to etcd. name, host, port and code come from closed sets: etcd's
// requests, the configured members, and the codes of gRPC; code is empty if it did not fail.
func (t *Telemetry) Operation(name, host, port string, took time.Duration, code string) {
	t.is.operations.Inst().Record(context.Background(), took.Seconds(),
		t.operations.valueOf(operationKey{name, host, port, code})...)
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
	t.is.reloads.add(labels{result})
}

// OnNotified counts a message about what needs attention: taken by its receiver, or not.
func (t *Telemetry) OnNotified(isTaken bool) {
	result := failed
	if isTaken {
		result = taken
	}
	t.is.messages.add(labels{result})
}

// OnReaped counts and logs the execution of a dead process that this one has ended. Its route is a
// label only if this process has it, too: the lock may be of another configuration.
func (t *Telemetry) OnReaped(l *idem.Lock) {
	t.is.executions.add(labels{t.knownRoute(l.Route), buried})
	attrs := t.appendEvent([]slog.Attr{
		slog.String("route", l.Route), slog.String("workflow", l.Scope.Workflow),
		slog.String("key", l.Scope.Key.Short()), slog.String("execution", string(l.Execution)),
		slog.Int("attempt", l.Attempt), slog.String("trace_id", idem.ParseTrace(l.TraceParent).TraceID()),
		slog.String("holder", l.Holder),
		slog.Float64("held_ms", inMilliseconds(t.options.Now().Sub(l.StartedAt))),
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
	t.is.lost.add(labels{t.knownRoute(e.Route)})
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
