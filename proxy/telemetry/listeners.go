package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"hooklock/proxy/wire"
)

// listeners are the listeners whose connections are shown.
type listeners struct {
	mu  sync.Mutex
	all []listener
}

type listener struct {
	most   int64
	counts func() wire.Counts
	labels metric.ObserveOption
}

// WatchListener exports the connections of a listener from now on. name is its setting; most is its
// limit of connections.
func (t *Telemetry) WatchListener(name string, most int, counts func() wire.Counts) {
	t.listeners.mu.Lock()
	defer t.listeners.mu.Unlock()
	t.listeners.all = append(t.listeners.all,
		listener{int64(most), counts, metric.WithAttributes(attribute.String("listener", name))})
}

// show observes a number of each listener.
func (l *listeners) show(number func(listener) int64) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		l.mu.Lock()
		all := slices.Clone(l.all)
		l.mu.Unlock()
		for _, one := range all {
			o.Observe(number(one), one.labels)
		}
		return nil
	}
}

// showConnections makes the metrics of the listeners.
func (t *Telemetry) showConnections() error {
	meter, l := t.sdk.meter, &t.listeners
	_, open := meter.Int64ObservableUpDownCounter("hooklock.connections.open", metric.WithUnit("{connection}"),
		metric.WithDescription("Open connections."),
		metric.WithInt64Callback(l.show(func(l listener) int64 { return int64(l.counts().Open) })))
	_, idle := meter.Int64ObservableUpDownCounter("hooklock.connections.idle", metric.WithUnit("{connection}"),
		metric.WithDescription("Open connections without a request."),
		metric.WithInt64Callback(l.show(func(l listener) int64 { return int64(l.counts().Idle) })))
	_, most := meter.Int64ObservableUpDownCounter("hooklock.connections.limit", metric.WithUnit("{connection}"),
		metric.WithDescription("Connections that a listener takes: limits.max_connections, or fewer if open files "+
			"do not suffice."),
		metric.WithInt64Callback(l.show(func(l listener) int64 { return l.most })))
	_, refused := meter.Int64ObservableCounter("hooklock.connections.refused", metric.WithUnit("{connection}"),
		metric.WithDescription("Connections that got 503 too_many_connections or were closed, because all were in a "+
			"request."),
		metric.WithInt64Callback(l.show(func(l listener) int64 { return l.counts().Refused })))
	_, closed := meter.Int64ObservableCounter("hooklock.connections.closed_idle", metric.WithUnit("{connection}"),
		metric.WithDescription("Idle connections that were closed for new ones."),
		metric.WithInt64Callback(l.show(func(l listener) int64 { return l.counts().ClosedIdle })))
	_, failed := meter.Int64ObservableCounter("hooklock.accept.failures", metric.WithUnit("{accept}"),
		metric.WithDescription("Connections that the system could not give to a listener, for lack of descriptors "+
			"or memory."),
		metric.WithInt64Callback(l.show(func(l listener) int64 { return l.counts().Failed })))
	if err := errors.Join(open, idle, most, refused, closed, failed); err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	return nil
}
