package telemetry

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// once keeps values by keys from closed sets, because making a value costs more than using it.
// Nothing is ever dropped.
type once[K comparable, V any] struct {
	new   func(K) V
	known atomic.Pointer[map[K]V]
	mu    sync.Mutex // held while adding
}

func newOnce[K comparable, V any](of func(K) V) *once[K, V] {
	o := &once[K, V]{new: of}
	o.known.Store(&map[K]V{})
	return o
}

func (o *once[K, V]) valueOf(k K) V {
	if v, ok := (*o.known.Load())[k]; ok {
		return v
	}
	o.makeValues(k)
	return (*o.known.Load())[k]
}

// makeValues makes the values of keys, many at once, because the table is copied each time.
func (o *once[K, V]) makeValues(keys ...K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := maps.Clone(*o.known.Load())
	for _, k := range keys {
		if _, ok := known[k]; !ok {
			known[k] = o.new(k)
		}
	}
	o.known.Store(&known)
}

// histograms are the label sets of one histogram. K is a comparable value with the labels.
type histograms[K comparable] struct {
	*once[K, []metric.RecordOption]
}

func newHistograms[K comparable](labels func(K) []attribute.KeyValue) *histograms[K] {
	return &histograms[K]{newOnce(func(k K) []metric.RecordOption {
		return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(labels(k)...))}
	})}
}

// counter is a counter of many series, each of which is a number in memory that is only read on
// collection. A counter of the SDK costs ten times as much with each count, because it looks at
// every label anew. The price is exemplars; the histograms have them.
type counter struct{ *once[labels, *count] }

// labels are the values of the labels of a counter, in the order of their names.
type labels [3]string

type count struct {
	atomic.Int64
	labels metric.ObserveOption
}

func newCounter(m *maker, name, unit, description string, names ...string) *counter {
	c := &counter{newOnce(func(values labels) *count {
		all := make([]attribute.KeyValue, len(names))
		for i, name := range names {
			all[i] = attribute.String(name, values[i])
		}
		return &count{labels: metric.WithAttributeSet(attribute.NewSet(all...))}
	})}
	_, err := m.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description),
		metric.WithInt64Callback(c.observeAll))
	m.errs = append(m.errs, err)
	return c
}

func (c *counter) observeAll(_ context.Context, o metric.Int64Observer) error {
	for _, n := range *c.known.Load() {
		o.Observe(n.Load(), n.labels)
	}
	return nil
}

func (c *counter) add(values labels) { c.valueOf(values).Add(1) }
