package telemetry

import (
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"

	"hooklock/proxy/wire"
)

// listeners are the listeners whose connections are shown.
type listeners struct {
	mu  sync.Mutex
	all []listener
}

type listener struct {
	name   string
	most   int64
	counts func() wire.Counts
}

// WatchListener exports the connections of a listener from now on. name is its setting; most is its
// limit of connections.
func (t *Telemetry) WatchListener(name string, most int, counts func() wire.Counts) {
	t.listeners.mu.Lock()
	defer t.listeners.mu.Unlock()
	t.listeners.all = append(t.listeners.all, listener{name, int64(most), counts})
}

// observeEach observes a number of each listener.
func (l *listeners) observeEach(number func(listener) int64) func(see) {
	return func(see see) {
		l.mu.Lock()
		all := slices.Clone(l.all)
		l.mu.Unlock()
		for _, one := range all {
			see(float64(number(one)), attribute.String("listener", one.name))
		}
	}
}

// makeConnections makes the metrics of the listeners.
func (l *listeners) makeConnections(m *maker) {
	m.addSums(
		observed{"hooklock.connections.open", "{connection}", "Open connections.",
			l.observeEach(func(l listener) int64 { return int64(l.counts().Open) })},
		observed{"hooklock.connections.idle", "{connection}", "Open connections without a request.",
			l.observeEach(func(l listener) int64 { return int64(l.counts().Idle) })},
		observed{"hooklock.connections.limit", "{connection}", "Connections that a listener takes: " +
			"limits.max_connections, or fewer if open files do not suffice.",
			l.observeEach(func(l listener) int64 { return l.most })},
	)
	m.addCounters(
		observed{"hooklock.connections.refused", "{connection}", "Connections that got 503 too_many_connections or " +
			"were closed, because all were in a request.",
			l.observeEach(func(l listener) int64 { return l.counts().Refused })},
		observed{"hooklock.connections.closed_idle", "{connection}", "Idle connections that were closed for new ones.",
			l.observeEach(func(l listener) int64 { return l.counts().ClosedIdle })},
		observed{"hooklock.accept.failures", "{accept}", "Connections that the system could not give to a listener, " +
			"for lack of descriptors or memory.",
			l.observeEach(func(l listener) int64 { return l.counts().Failed })},
	)
}
