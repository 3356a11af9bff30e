package telemetry

import (
	"context"
	"log/slog"
	"strconv"
	"strings"

	"hooklock/idem"
	"hooklock/proxy"
)

// SetSampling keeps the lines of one in so many of the deliveries that went well, and of the lock
// events that belong to them; 0 keeps none. Failures always have a line. All replicas keep the same
// ones, because the trace ID decides.
func (t *Telemetry) SetSampling(oneIn int) { t.oneIn.Store(int64(oneIn)) }

// keepsRoutineLines reports whether the routine lines of a delivery are kept.
func (t *Telemetry) keepsRoutineLines(r *proxy.Report) bool {
	oneIn := t.oneIn.Load()
	if oneIn <= 1 {
		return oneIn == 1
	}
	n, err := strconv.ParseUint(r.TraceID[max(0, len(r.TraceID)-15):], 16, 64) // its end is random in all versions
	return err != nil || n%uint64(oneIn) == 0
}

// isRoutine reports whether a delivery needs no attention.
func isRoutine(r *proxy.Report) bool {
	decision := r.Decision
	if decision == idem.DecisionBypassed {
		decision = r.Would
	}
	return decision.Row().Routine && !r.Changed && !r.Redirected() && r.Err == nil && r.Status < 400 &&
		(r.Attempt == 0 || r.Recorded)
}

// logDelivery writes the line of a delivery.
func (t *Telemetry) logDelivery(ctx context.Context, r *proxy.Report) {
	// a delivery that was forwarded because etcd is away needs attention, too
	level := max(r.Decision.Row().Level, r.Would.Row().Level)
	if r.Redirected() {
		level = max(level, slog.LevelWarn)
	}
	if !t.options.Log.Enabled(ctx, level) || isRoutine(r) && !t.keepsRoutineLines(r) {
		return
	}
	fields := t.fields.Get().(*[]slog.Attr)
	attrs := append((*fields)[:0], slog.String("decision", string(r.Decision)), slog.String("route", r.Route),
		slog.Int("status", r.Status))
	attrs = appendText(attrs, "would", string(r.Would))
	attrs = appendText(attrs, "code", r.Code)
	attrs = appendText(attrs, "path", r.Path)
	attrs = appendText(attrs, "signature", r.Signature)
	attrs = appendText(attrs, "signature_part", r.SignaturePart)
	attrs = appendText(attrs, "stale", r.Stale)
	attrs = appendText(attrs, "differs", strings.Join(r.Differs, ","))
	if r.Changed {
		attrs = append(attrs, slog.Bool("changed", true))
	}
	if r.Redirected() {
		attrs = append(attrs, slog.Bool("redirected", true))
	}
	attrs = appendText(attrs, "twin_of", r.TwinOf)
	if r.EventIDPart == proxy.PartPlaceholder {
		attrs = append(attrs, slog.Bool("placeholder", true))
	}
	attrs = appendClosed(t.appendNames(attrs, r), r)
	attrs = append(attrs, slog.Float64("duration_ms", inMilliseconds(r.Total)))
	if !r.UpstreamFrom.IsZero() {
		attrs = append(attrs, slog.Float64("upstream_ms", inMilliseconds(r.Upstream)))
	}
	if r.Stages.Wait.For > 0 {
		attrs = append(attrs, slog.Float64("wait_ms", inMilliseconds(r.Stages.Wait.For)))
	}
	if r.Hold > 0 {
		attrs = append(attrs, slog.Float64("hold_ms", inMilliseconds(r.Hold)))
	}
	if r.Err != nil && r.Code == "" {
		attrs = append(attrs, slog.String("error", r.Err.Error()))
	}
	t.writeLine(ctx, level, "delivery", fields, attrs)
}

// writeLine writes a line of attrs, which are in fields, and returns these to the pool. slog's own
// methods would look for its place in the source, which no line has, and copy attrs, which no
// handler here keeps. It ignores errors: the writer of the log counts what it loses.
func (t *Telemetry) writeLine(ctx context.Context, level slog.Level, event string, fields *[]slog.Attr,
	attrs []slog.Attr) {
	r := slog.NewRecord(t.options.Now(), level, event, 0)
	r.AddAttrs(slog.Attr{Value: slog.GroupValue(attrs...)})
	_ = t.options.Log.Handler().Handle(ctx, r)
	clear(attrs)
	*fields = attrs[:0]
	t.fields.Put(fields)
}

// Event implements proxy.Observer.
func (t *Telemetry) Event(name proxy.EventName, r *proxy.Report) {
	ctx := contextOf(r)
	level := slog.LevelInfo
	if name == proxy.EventTried {
		t.is.tries.add(labels{r.Route, tryResult(r)})
	}
	if name == proxy.EventExhausted {
		t.is.exhausted.add(labels{r.Route})
	}
	switch name {
	case proxy.EventLost, proxy.EventUnknown, proxy.EventCancelled, proxy.EventExhausted:
		level = slog.LevelWarn
	}
	wrong := level > slog.LevelInfo || name == proxy.EventRefused ||
		name == proxy.EventTried && (tryResult(r) != trySuccess || r.Err != nil)
	if !t.options.Log.Enabled(ctx, level) || !wrong && !t.keepsRoutineLines(r) {
		return
	}
	fields := t.fields.Get().(*[]slog.Attr)
	attrs := t.appendNames(append((*fields)[:0], slog.String("route", r.Route)), r)
	switch name {
	case proxy.EventRefused:
		attrs = appendClosed(attrs, r)
	case proxy.EventReleased:
		attrs = append(attrs, slog.Float64("held_ms", inMilliseconds(r.Held)), slog.Bool("recorded", r.Recorded))
		attrs = appendText(attrs, "outcome", string(r.Outcome))
	case proxy.EventLost:
		attrs = append(attrs, slog.String("reason", string(r.Loss)))
	case proxy.EventHeld:
		attrs = append(attrs, slog.Float64("hold_ms", inMilliseconds(r.Hold)), slog.Bool("recorded", r.Recorded))
	case proxy.EventCancelled:
		attrs = appendText(attrs, "by", r.By)
	case proxy.EventTried:
		attrs = appendText(attrs, "stale", r.Stale)
		attrs = append(attrs, slog.Int("status", r.UpstreamStatus),
			slog.Float64("upstream_ms", inMilliseconds(r.Upstream)))
		attrs = appendText(attrs, "outcome", string(r.Outcome))
		if r.Err != nil {
			attrs = append(attrs, slog.String("error", r.Err.Error()))
		}
	}
	t.writeLine(ctx, level, string(name), fields, attrs)
}

// appendClosed adds that the execution in the way has ended.
func appendClosed(attrs []slog.Attr, r *proxy.Report) []slog.Attr {
	if r.ClosedUntil.IsZero() {
		return attrs
	}
	return append(attrs, slog.Time("closed_until", r.ClosedUntil.UTC()))
}

// SetEventIDs sets whether lines have the event ID and the labels, and spans the labels.
func (t *Telemetry) SetEventIDs(shown bool) { t.eventIDs.Store(shown) }

// appendEvent appends the event ID, and the labels, if lines have them.
func (t *Telemetry) appendEvent(attrs []slog.Attr, eventID string, labels idem.Labels) []slog.Attr {
	if !t.eventIDs.Load() {
		return attrs
	}
	attrs = appendText(attrs, "event_id", eventID)
	if len(labels) == 0 {
		return attrs
	}
	values := make([]slog.Attr, len(labels))
	for i, l := range labels {
		values[i] = slog.String(l.Name, l.Value)
	}
	return append(attrs, slog.GroupAttrs("labels", values...))
}

func (t *Telemetry) appendNames(attrs []slog.Attr, r *proxy.Report) []slog.Attr {
	attrs = appendText(attrs, "workflow", r.Workflow)
	attrs = appendText(attrs, "key", r.Key)
	attrs = t.appendEvent(attrs, r.EventID, r.Labels)
	attrs = appendText(attrs, "execution", string(r.Execution))
	if r.Attempt > 0 {
		attrs = append(attrs, slog.Int("attempt", r.Attempt))
	}
	attrs = appendText(attrs, "trace_id", r.TraceID)
	return appendText(attrs, "span_id", r.SpanID)
}

func appendText(attrs []slog.Attr, name, value string) []slog.Attr {
	if value == "" {
		return attrs
	}
	return append(attrs, slog.String(name, value))
}
