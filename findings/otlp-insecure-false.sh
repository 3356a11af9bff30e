#!/usr/bin/env bash
# Guess: OTEL_EXPORTER_OTLP_INSECURE=false beside an endpoint that says http:// changes nothing.
#   The specification of OpenTelemetry lets the variable count only where no scheme is given.
# Software: go.opentelemetry.io/otel otlptracegrpc and otlptracehttp v1.47.0.
# Seen: the exporter starts a TLS handshake with the plain http:// endpoint. No span arrives.
# Why it matters: traces of webhooks vanish after a setting that only repeats the default.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/trace"
)

// firstByte exports one span and returns the first byte that the collector's socket gets.
func firstByte(create func(context.Context) (*otlptrace.Exporter, error)) byte {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer listener.Close()
	os.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	first := make(chan byte, 1)
	go func() {
		conn, err := listener.Accept()
		check(err)
		defer conn.Close()
		b := make([]byte, 1)
		_, err = conn.Read(b)
		check(err)
		first <- b[0]
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	exporter, err := create(ctx)
	check(err)
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter))
	_, span := provider.Tracer("finding").Start(ctx, "span")
	span.End()
	go provider.ForceFlush(ctx)
	return <-first
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
}

func main() {
	grpc := func(ctx context.Context) (*otlptrace.Exporter, error) { return otlptracegrpc.New(ctx) }
	http := func(ctx context.Context) (*otlptrace.Exporter, error) { return otlptracehttp.New(ctx) }
	const handshake = 0x16
	same := true
	for name, create := range map[string]func(context.Context) (*otlptrace.Exporter, error){"grpc": grpc, "http": http} {
		os.Unsetenv("OTEL_EXPORTER_OTLP_INSECURE")
		unset := firstByte(create)
		os.Setenv("OTEL_EXPORTER_OTLP_INSECURE", "false")
		set := firstByte(create)
		fmt.Printf("otlptrace%s v1.47.0: first byte %#x when unset, %#x with INSECURE=false (0x16 is TLS)\n",
			name, unset, set)
		same = same && unset == 'P' && set == handshake
	}
	if !same {
		os.Exit(1)
	}
}
GO
o=go.opentelemetry.io/otel; e=$o/exporters/otlp/otlptrace
go get $o@v1.47.0 $o/sdk@v1.47.0 $e@v1.47.0 $e/otlptracegrpc@v1.47.0 $e/otlptracehttp@v1.47.0 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
