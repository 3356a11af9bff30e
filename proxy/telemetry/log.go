package telemetry

import (
	"context"
	"log/slog"
	"math"
	"strconv"

	"hooklock/idem"
	"hooklock/proxy"
)

// SetSampling keeps a line for this share of the routine deliveries, from 0 to 1, and of the lock events that belong to them. What went
// wrong always has its lines. All replicas keep the same ones, because the trace ID decides.
func (t *Telemetry) SetSampling(share float64) {
	if share >= 1 {
		t.sampling.Store(nil)
		return
	}
	bound := uint64(math.MaxUint64)
	if share <= 0 {
		bound = 0
	} else {
		bound = uint64(share * float64(bound))
	}
	keep := func(traceID string) bool {
		n, err := strconv.ParseUint(traceID[max(0, len(traceID)-16):], 16, 64) // the half that is random in all versions
		return err != nil || n < bound
	}
	t.sampling.Store(&keep)
}

func (t *Telemetry) kept(r *proxy.Report) bool {
	keep := t.sampling.Load()
	return keep == nil || (*keep)(r.TraceID)
}

// routine reports whether nobody will ask about a delivery.
func routine(r *proxy.Report) bool {
	switch r.Decision {
	case idem.DecisionExecuted, idem.DecisionReplayed, idem.DecisionAttached, idem.DecisionBypassed:
		return r.Err == nil && r.Status < 400 && (r.Attempt == 0 || r.Recorded)
	}
	return false
}

// logDelivery writes the line of a delivery.
func (t *Telemetry) logDelivery(ctx context.Context, r *proxy.Report) {
	level := slog.LevelInfo
	if r.Decision == idem.DecisionInternalError {
		level = slog.LevelError
	}
	if !t.o.Log.Enabled(ctx, level) || routine(r) && !t.kept(r) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 24), slog.String("decision", string(r.Decision)), slog.String("route", r.Route), slog.Int("status", r.Status))
	attrs = appendText(attrs, "would", string(r.Would))
	attrs = appendText(attrs, "code", r.Code)
	attrs = appendText(attrs, "signature", r.Signature)
	attrs = appendText(attrs, "signature_part", r.SignaturePart)
	attrs = appendNames(attrs, r)
	attrs = append(attrs, slog.Float64("duration_ms", milliseconds(r.Total)))
	if !r.UpstreamFrom.IsZero() {
		attrs = append(attrs, slog.Float64("upstream_ms", milliseconds(r.Upstream)))
	}
	if r.Rooms.Wait.For > 0 {
		attrs = append(attrs, slog.Float64("wait_ms", milliseconds(r.Rooms.Wait.For)))
	}
	if r.Hold > 0 {
		attrs = append(attrs, slog.Float64("hold_ms", milliseconds(r.Hold)))
	}
	if r.Err != nil && r.Code == "" {
		attrs = append(attrs, slog.String("error", r.Err.Error()))
	}
	t.o.Log.LogAttrs(ctx, level, "delivery", attrs...)
}

// Event implements proxy.Observer.
func (t *Telemetry) Event(name proxy.EventName, r *proxy.Report) {
	ctx := contextOf(r)
	level := slog.LevelInfo
	switch name {
	case proxy.EventLost, proxy.EventUnknown, proxy.EventCancelled:
		level = slog.LevelWarn
	}
	if !t.o.Log.Enabled(ctx, level) || level == slog.LevelInfo && name != proxy.EventRefused && !t.kept(r) {
		return
	}
	attrs := appendNames(append(make([]slog.Attr, 0, 14), slog.String("route", r.Route)), r)
	switch name {
	case proxy.EventReleased:
		attrs = append(attrs, slog.Float64("held_ms", milliseconds(r.Held)), slog.Bool("recorded", r.Recorded), slog.String("outcome", string(r.Outcome)))
	case proxy.EventLost:
		attrs = append(attrs, slog.String("reason", string(r.Loss)))
	case proxy.EventHeld:
		attrs = append(attrs, slog.Float64("hold_ms", milliseconds(r.Hold)), slog.Bool("recorded", r.Recorded))
	case proxy.EventCancelled:
		attrs = appendText(attrs, "by", r.By)
	}
	t.o.Log.LogAttrs(ctx, level, string(name), attrs...)
}

func appendNames(attrs []slog.Attr, r *proxy.Report) []slog.Attr {
	attrs = appendText(attrs, "workflow", r.Workflow)
	attrs = appendText(attrs, "key", r.Key)
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
