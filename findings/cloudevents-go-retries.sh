#!/usr/bin/env bash
# Guess: a client of the CloudEvents SDK with retries sends again after 500 and not after 404.
# Software: github.com/cloudevents/sdk-go/v2 v2.16.2.
# Seen: the reverse. 404, like 413, 425, 429 and 502 to 504, is sent again; 500 and 409 are not.
# Why it matters: a receiver that answers 500 or 409 to ask for another try loses the event, and
#   one that answers 404 to end it gets it again.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
)

func main() {
	same := true
	for _, c := range []struct {
		status int
		sent   int32
	}{{500, 1}, {409, 1}, {404, 4}, {413, 4}, {503, 4}} {
		var sent atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent.Add(1)
			w.WriteHeader(c.status)
		}))
		client, err := cloudevents.NewClientHTTP(cloudevents.WithTarget(server.URL))
		if err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
		event := cloudevents.NewEvent()
		event.SetID("1")
		event.SetType("order.paid")
		event.SetSource("/shop")
		ctx := cloudevents.ContextWithRetriesConstantBackoff(context.Background(), 10*time.Millisecond, 3)
		result := client.Send(ctx, event)
		fmt.Printf("cloudevents v2.16.2: %d: sent %d times with 3 retries, acknowledged %v\n",
			c.status, sent.Load(), cloudevents.IsACK(result))
		same = same && sent.Load() == c.sent
		server.Close()
	}
	if !same {
		os.Exit(1)
	}
}
GO
go get github.com/cloudevents/sdk-go/v2@v2.16.2 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
