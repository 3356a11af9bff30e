package telemetry

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"hooklock/idem"
	"hooklock/idem/worker"
	"hooklock/proxy"
)

// parkEnds are the ends of parked executions, as values of a label.
var parkEnds = []string{string(worker.EventDone), string(worker.EventBlocked), string(worker.EventDeadLetter),
	string(worker.EventSuperseded), string(worker.EventLost)}

// parkReasons are the reasons to park, as values of a label.
var parkReasons = append(idem.ParkOn("").Choices(), string(idem.ParkPaused), string(idem.ParkSenderLimit))

// parkLines are the log events of parked executions.
var parkLines = map[worker.EventKind]struct {
	event proxy.EventName
	level slog.Level
}{
	worker.EventRetry:      {proxy.EventRetry, slog.LevelInfo},
	worker.EventLeftAlone:  {proxy.EventLeftAlone, slog.LevelWarn},
	worker.EventDone:       {proxy.EventDone, slog.LevelInfo},
	worker.EventBlocked:    {proxy.EventBlocked, slog.LevelWarn},
	worker.EventDeadLetter: {proxy.EventDeadLetter, slog.LevelWarn},
	worker.EventSuperseded: {proxy.EventSuperseded, slog.LevelInfo},
	worker.EventLost:       {proxy.EventCarried, slog.LevelWarn},
}

// OnParkedEvent counts and logs an event of a parked execution that no delivery reports any more.
func (t *Telemetry) OnParkedEvent(e worker.Event) {
	l := e.Lock
	switch e.What {
	case worker.EventRetry:
	case worker.EventLeftAlone:
		t.is.leftAlone.add(labels{t.knownRoute(l.Route)})
	default:
		t.is.parkEnds.add(labels{t.knownRoute(l.Route), string(e.What)})
	}
	if e.Code == idem.CodeAttemptsExhausted {
		t.is.exhausted.add(labels{t.knownRoute(l.Route)})
	}
	line := parkLines[e.What]
	attrs := []slog.Attr{
		slog.String("route", l.Route), slog.String("workflow", l.Scope.Workflow),
		slog.String("key", l.Scope.Key.Short()),
		slog.String("execution", string(l.Execution)),
		slog.String("trace_id", idem.ParseTrace(l.TraceParent).TraceID()),
	}
	attrs = t.appendEvent(attrs, l.EventID, l.Labels)
	if p := l.Parked; p != nil {
		attrs = append(attrs, slog.String("on", string(p.On)), slog.Int("tries", p.Tries),
			slog.Float64("age_ms", inMilliseconds(max(0, t.options.Now().Sub(p.Since)))))
		if e.What == worker.EventRetry && p.Last != nil {
			attrs = appendText(attrs, "outcome", string(p.Last.Outcome))
			attrs = append(attrs, slog.Time("next_attempt", p.NextAttempt.UTC()))
		}
	}
	attrs = appendText(appendText(attrs, "code", e.Code), "reason", e.Why)
	if e.Err != nil {
		attrs = append(attrs, slog.String("error", e.Err.Error()))
	}
	t.options.Log.LogAttrs(context.Background(), line.level, string(line.event), attrs...)
}

// The results of a try.
var tryResults = []string{trySuccess, tryFailed, string(idem.Unknown), string(idem.NotExecuted)}

const (
	trySuccess = "success"
	tryFailed  = "failed"
)

func tryResult(r *proxy.Report) string {
	switch {
	case r.Outcome != idem.Executed:
		return string(r.Outcome)
	case !idem.Is2xx(r.UpstreamStatus):
		return tryFailed
	}
	return trySuccess
}

// watchParked exports what is parked over all replicas, and the accepted events that this process
// cannot run, because it has no route of that name.
func (t *Telemetry) watchParked(m *maker, look func() idem.ParkedCount, unrouted func() int) {
	m.addSums(
		observed{"hooklock.parked.unrouted", "{event}", "Accepted events whose route this replica does not have. " +
			"Take the minimum over replicas: above 0, no replica runs them.", oneSeries(unrouted)},
		observed{"hooklock.parked.events", "{event}", "Accepted events that have not ended." + everywhere,
			oneSeries(func() int { return look().Events })},
		observed{"hooklock.parked.size", "By", "Stored requests of parked events." + everywhere,
			oneSeries(func() int64 { return look().Bytes })},
		observed{"hooklock.parked.blocked", "{workflow}", "Workflows whose first parked event is blocked." + everywhere,
			oneSeries(func() int { return look().Blocked })},
		observed{"hooklock.parked.dead_letters", "{event}",
			"Parked events that ended without success, with their requests." + everywhere,
			oneSeries(func() int { return look().DeadLetters })},
	)
	m.addGauges(observed{"hooklock.parked.oldest", "s", "Age of the oldest parked event." + everywhere,
		t.ageOf(func() time.Time { return look().Oldest })})
}

// KeptCounts are what is kept of requests.keep over all replicas, and what this process could not
// keep, or no longer.
type KeptCounts struct{ Events, Bytes, Dropped, Removed int64 }

// watchKept exports what is kept of events that have run.
func watchKept(m *maker, look func() KeptCounts) {
	m.addSums(
		observed{"hooklock.kept.events", "{request}", "Requests of requests.keep that are stored." + everywhere,
			oneSeries(func() int64 { return look().Events })},
		observed{"hooklock.kept.size", "By", "Their bytes." +
			everywhere, oneSeries(func() int64 { return look().Bytes })},
	)
	m.addCounters(
		observed{"hooklock.kept.dropped", "{request}", "Requests of requests.keep that the store did not take in time.",
			oneSeries(func() int64 { return look().Dropped })},
		observed{"hooklock.kept.removed", "{request}", "Those deleted before their time, because of limits.kept.",
			oneSeries(func() int64 { return look().Removed })},
	)
}

// Try implements proxy.Tracer.
func (t *Telemetry) Try(r *proxy.Report, accepted idem.TraceContext) proxy.Trace {
	link := spanContextOf(accepted)
	if t.never.neverRecords(trace.SpanContext{}) || !link.IsValid() {
		return nil
	}
	ctx, span := t.tracer.Start(context.Background(), "try "+(*t.patterns.Load())[r.Route],
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithLinks(trace.Link{SpanContext: link,
			Attributes: []attribute.KeyValue{attribute.String("hooklock.execution.id", string(r.Execution))}}))
	if !span.IsRecording() {
		return nil
	}
	return &delivery{telemetry: t, ctx: ctx, span: span}
}

// The operations on requests of parked events.
const (
	KeepRequest  = "keep"
	FetchRequest = "fetch"
)

// OnRequestFailed counts and logs that a request could not be stored or read.
func (t *Telemetry) OnRequestFailed(operation string, id idem.ExecutionID, err error) {
	t.is.requestFails.add(labels{operation})
	t.options.Log.Warn("requests.failed", "operation", operation, "execution", string(id), "error", err.Error())
}
