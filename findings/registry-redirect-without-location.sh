#!/usr/bin/env bash
# Guess: a notification of the registry that is answered 302 without Location has failed and is
#   tried again. One answered 409 is tried again after a pause that grows.
# Software: github.com/docker/distribution v2.8.3, package notifications.
# Seen: the 302 counts as delivered. The 409 gets ten tries (the threshold) within milliseconds,
#   before any backoff.
# Why it matters: a login page's redirect loses the event, and a receiver that says "busy" with
#   409 has used up the ten tries before its first run has ended.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"github.com/docker/distribution/notifications"
	"github.com/sirupsen/logrus"
)

func main() {
	logrus.SetLevel(logrus.PanicLevel)
	arrived := make(chan time.Time, 100)
	status := 302
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- time.Now()
		w.WriteHeader(status)
	}))
	config := notifications.EndpointConfig{Timeout: 5 * time.Second, Threshold: 10, Backoff: time.Hour}
	endpoint := notifications.NewEndpoint("redirect", server.URL, config)
	if err := endpoint.Write(notifications.Event{ID: "one"}); err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	endpoint.Close()
	var metrics notifications.EndpointMetrics
	endpoint.ReadMetrics(&metrics)
	fmt.Printf("distribution v2.8.3: 302 without Location: %d request, %d success, %d failures, %d pending\n",
		len(arrived), metrics.Successes, metrics.Failures, metrics.Pending)
	if len(arrived) != 1 || metrics.Successes != 1 || metrics.Pending != 0 {
		os.Exit(1)
	}
	<-arrived

	status = 409
	endpoint = notifications.NewEndpoint("busy", server.URL, config)
	endpoint.Write(notifications.Event{ID: "two"})
	first := <-arrived
	last := first
	for range 9 {
		select {
		case last = <-arrived:
		case <-time.After(10 * time.Second):
			fmt.Println("distribution v2.8.3: 409: fewer than ten tries within ten seconds")
			os.Exit(1)
		}
	}
	fmt.Printf("distribution v2.8.3: 409: ten tries within %v\n", last.Sub(first).Round(time.Millisecond))
	if last.Sub(first) > 3*time.Second {
		os.Exit(1)
	}
}
GO
go get github.com/docker/distribution@v2.8.3+incompatible 2>log || { cat log; exit 2; }
go mod tidy 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
