package telemetry

import (
	"context"
	"log/slog"

	"hooklock/idem"
	"hooklock/proxy/asking"
)

// outcomesAsked are the outcomes that a question can have.
var outcomesAsked = []string{string(idem.Executed), string(idem.NotExecuted), string(idem.Unknown)}

// OnAsked counts and logs that the service was asked what became of an event of unknown outcome.
func (t *Telemetry) OnAsked(e asking.Event) {
	t.is.asked.add(labels{t.knownRoute(e.Route), string(e.Said.Outcome)})
	attrs := []slog.Attr{slog.String("route", e.Route)}
	if r := e.Record; r != nil {
		attrs = t.appendEvent(append(attrs, slog.String("workflow", r.Scope.Workflow),
			slog.String("key", r.Scope.Key.Short())), r.EventID, r.Labels)
	}
	attrs = append(attrs, slog.String("execution", string(e.Execution)), slog.String("outcome", string(e.Said.Outcome)),
		slog.Int("status", e.Said.Status), slog.Int("times", e.Said.Times),
		slog.Bool("corrected", e.Record != nil && e.Said.Outcome != idem.Unknown))
	level := slog.LevelInfo
	if e.Said.Outcome == idem.Unknown {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("reason", e.Said.Detail), slog.String("advice", adviceAsked))
	}
	t.options.Log.LogAttrs(context.Background(), level, "execution.asked", attrs...)
}

const adviceAsked = "the service did not say what became of this event, which waits for a person: look there, then " +
	"let it run with hooklock forget, or leave it"
