#!/usr/bin/env bash
# Guess: OTEL_SDK_DISABLED=true, which the specification of OpenTelemetry defines for every
#   language, stops a Go program's spans.
# Software: go.opentelemetry.io/otel/sdk v1.47.0.
# Seen: the variable is ignored. Spans record and reach the exporter.
# Why it matters: traces with the addresses of webhooks leave a site that has switched them off.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func main() {
	exporter := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
	_, span := provider.Tracer("finding").Start(context.Background(), "deliver")
	records := span.IsRecording()
	span.End()
	exported := len(exporter.GetSpans())
	fmt.Printf("otel/sdk v1.47.0: OTEL_SDK_DISABLED=%s: span records: %v, exported: %d\n",
		os.Getenv("OTEL_SDK_DISABLED"), records, exported)
	if !records || exported != 1 {
		os.Exit(1)
	}
}
GO
go get go.opentelemetry.io/otel/sdk@v1.47.0 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
OTEL_SDK_DISABLED=true timeout 50 ./finding
