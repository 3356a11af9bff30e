package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// see is told the values of a metric when metrics are collected, each with its labels.
type see func(value float64, labels ...attribute.KeyValue)

// observed is a metric that is read on collection.
type observed struct {
	name, unit, description string
	look                    func(see)
}

// oneSeries returns the look at a metric with one series.
func oneSeries[N int | int64](value func() N) func(see) {
	return func(see see) { see(float64(value())) }
}

// wholeCallback returns the callback of a metric with whole numbers.
func (m *observed) wholeCallback() metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		m.look(func(value float64, labels ...attribute.KeyValue) {
			o.Observe(int64(value), metric.WithAttributes(labels...))
		})
		return nil
	}
}

// addCounters exports numbers that only rise.
func (m *maker) addCounters(all ...observed) {
	for _, c := range all {
		_, err := m.meter.Int64ObservableCounter(c.name, metric.WithUnit(c.unit), metric.WithDescription(c.description),
			metric.WithInt64Callback(c.wholeCallback()))
		m.errs = append(m.errs, err)
	}
}

// addSums exports numbers that rise and fall, and that may be added up.
func (m *maker) addSums(all ...observed) {
	for _, c := range all {
		_, err := m.meter.Int64ObservableUpDownCounter(c.name, metric.WithUnit(c.unit),
			metric.WithDescription(c.description), metric.WithInt64Callback(c.wholeCallback()))
		m.errs = append(m.errs, err)
	}
}

// addFlags exports whole numbers, such as 1 for yes.
func (m *maker) addFlags(all ...observed) {
	for _, c := range all {
		_, err := m.meter.Int64ObservableGauge(c.name, metric.WithUnit(c.unit), metric.WithDescription(c.description),
			metric.WithInt64Callback(c.wholeCallback()))
		m.errs = append(m.errs, err)
	}
}

// addGauges exports numbers with a fraction, such as seconds.
func (m *maker) addGauges(all ...observed) {
	for _, c := range all {
		_, err := m.meter.Float64ObservableGauge(c.name, metric.WithUnit(c.unit), metric.WithDescription(c.description),
			metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
				c.look(func(value float64, labels ...attribute.KeyValue) {
					o.Observe(value, metric.WithAttributes(labels...))
				})
				return nil
			}))
		m.errs = append(m.errs, err)
	}
}

// joinedError returns what went wrong.
func (m *maker) joinedError() error {
	if err := errors.Join(m.errs...); err != nil {
		return fmt.Errorf("make metrics: %w", err)
	}
	return nil
}
