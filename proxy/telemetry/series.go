package telemetry

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// once keeps what is made of a key from closed sets, because making it costs more than using it. Nothing is ever dropped.
type once[K comparable, V any] struct {
	new   func(K) V
	known atomic.Pointer[map[K]V]
	mu    sync.Mutex // who adds
}

func newOnce[K comparable, V any](of func(K) V) *once[K, V] {
	o := &once[K, V]{new: of}
	o.known.Store(&map[K]V{})
	return o
}

func (o *once[K, V]) of(k K) V {
	if v, ok := (*o.known.Load())[k]; ok {
		return v
	}
	o.know(k)
	return (*o.known.Load())[k]
}

// know makes the values of keys, many at once, because the table is copied each time.
func (o *once[K, V]) know(keys ...K) {
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

// series are the label sets of one instrument. K is a comparable value with what the labels say.
type series[K comparable] struct{ *once[K, *labelled] }

// labelled is one label set, as instruments take it.
type labelled struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func newSeries[K comparable](labels func(K) []attribute.KeyValue) *series[K] {
	return &series[K]{newOnce(func(k K) *labelled {
		set := metric.WithAttributeSet(attribute.NewSet(labels(k)...))
		return &labelled{add: []metric.AddOption{set}, record: []metric.RecordOption{set}}
	})}
}

// zero makes the series of keys appear before anything happened.
func (s *series[K]) zero(c metric.Int64Counter, keys ...K) {
	s.know(keys...)
	for _, k := range keys {
		c.Add(context.Background(), 0, s.of(k).add...)
	}
}
