package telemetry

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// series are the label sets of one instrument. Making a set costs more than counting, so each is made once. K is a comparable value with
// what the labels say; it must come from closed sets, because nothing is ever dropped.
type series[K comparable] struct {
	labels func(K) []attribute.KeyValue
	known  atomic.Pointer[map[K]*labelled]
	mu     sync.Mutex // who adds
}

// labelled is one label set, as instruments take it.
type labelled struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func newSeries[K comparable](labels func(K) []attribute.KeyValue) *series[K] {
	s := &series[K]{labels: labels}
	s.known.Store(&map[K]*labelled{})
	return s
}

// of is the label set for k.
func (s *series[K]) of(k K) *labelled {
	if l := (*s.known.Load())[k]; l != nil {
		return l
	}
	s.know(k)
	return (*s.known.Load())[k]
}

// know makes the label sets for keys, many at once, because the table is copied each time.
func (s *series[K]) know(keys ...K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := maps.Clone(*s.known.Load())
	for _, k := range keys {
		if known[k] != nil {
			continue
		}
		set := metric.WithAttributeSet(attribute.NewSet(s.labels(k)...))
		known[k] = &labelled{add: []metric.AddOption{set}, record: []metric.RecordOption{set}}
	}
	s.known.Store(&known)
}

// zero makes the series of keys appear before anything happened.
func (s *series[K]) zero(c metric.Int64Counter, keys ...K) {
	s.know(keys...)
	for _, k := range keys {
		c.Add(context.Background(), 0, s.of(k).add...)
	}
}
