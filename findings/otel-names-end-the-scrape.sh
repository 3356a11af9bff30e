#!/usr/bin/env bash
# Guess: two counters of OpenTelemetry whose names become one in Prometheus ("job.runs" and "job_runs", or "wait"
#   in seconds and "wait.seconds") are refused when the second is made, or one of the two is lost.
# Software: go.opentelemetry.io/otel/exporters/prometheus v0.69.0, otel/sdk/metric v1.47.0,
#   github.com/prometheus/client_golang v1.24.1, defaults.
# Seen: both are made without an error. From the first time on at which both have counted with the same
#   attributes, /metrics answers 500 and no series at all; before, and with different ones, 200 and both.
#   Beyond 2000 sets of attributes a counter puts the rest into otel_metric_overflow="true".
# Why it matters: a library that counts under a name like one's own takes down all metrics of the service, and the
#   alerts with them, on the first event that both count; and of 2001 customers the last has no series.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
)

func main() {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	check(err)
	meter := sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("shop")
	ctx := context.Background()
	counter := func(name, unit string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit))
		check(err)
		return c
	}
	scrape := func() (int, string) {
		answer := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		return answer.Code, answer.Body.String()
	}
	orders := counter("orders", "")
	for i := range 2500 {
		orders.Add(ctx, 1, metric.WithAttributes(attribute.Int("customer", i)))
	}
	wait, seconds := counter("wait", "s"), counter("wait.seconds", "s")
	wait.Add(ctx, 3)
	before, text := scrape()
	series, overflow := strings.Count(text, "\norders_total{"), strings.Contains(text, `orders_total{otel_metric_overflow="true"} 501`)
	seconds.Add(ctx, 4)
	after, text := scrape()
	fmt.Printf("otel v1.47.0: 2500 customers: %d series, overflow of 501: %v\n", series, overflow)
	fmt.Printf("exporters/prometheus v0.69.0: wait (s) alone: %d; with wait.seconds: %d, %s\n", before, after, strings.Join(strings.Fields(text), " "))
	if series != 2000 || !overflow || before != 200 || after != 500 || strings.Contains(text, "orders_total") {
		os.Exit(1)
	}
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
}
GO
o=go.opentelemetry.io/otel
go get $o/exporters/prometheus@v0.69.0 $o/sdk/metric@v1.47.0 github.com/prometheus/client_golang@v1.24.1 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
