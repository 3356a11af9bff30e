#!/usr/bin/env bash
# Guess: a message whose handler returned an error runs when it is delivered again, also with
#   Watermill's Deduplicator among the middlewares: it drops what has been handled.
# Software: github.com/ThreeDotsLabs/watermill v1.5.1, middleware.Deduplicator, zero value, on its
#   gochannel, which delivers again what was not acknowledged.
# Seen: the key counts from the first delivery on, before the handler has run. The handler fails
#   once, the second delivery is dropped as a duplicate and acknowledged: it never runs to its end.
# Why it matters: one failure at the wrong moment, and the event of a webhook is lost, by the part
#   that was to protect it.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
)

// run returns how often the handler ran, and succeeded, for a message whose first run fails.
func run(add ...message.HandlerMiddleware) (runs, done int64) {
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	check(err)
	router.AddMiddleware(add...)
	channel := gochannel.NewGoChannel(gochannel.Config{}, watermill.NopLogger{})
	var ran, succeeded atomic.Int64
	router.AddConsumerHandler("charge", "orders", channel, func(*message.Message) error {
		if ran.Add(1) == 1 {
			return errors.New("the database is locked")
		}
		succeeded.Add(1)
		return nil
	})
	go func() { check(router.Run(context.Background())) }()
	<-router.Running()
	check(channel.Publish("orders", message.NewMessage("evt_1", []byte("order 1"))))
	for deadline := time.Now().Add(3 * time.Second); succeeded.Load() == 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	check(router.Close())
	return ran.Load(), succeeded.Load()
}

func main() {
	runs, done := run()
	fmt.Printf("watermill v1.5.1: without a Deduplicator: ran %d times, succeeded %d\n", runs, done)
	runs2, done2 := run((&middleware.Deduplicator{}).Middleware)
	fmt.Printf("watermill v1.5.1: with a Deduplicator:    ran %d times, succeeded %d\n", runs2, done2)
	if runs != 2 || done != 1 || runs2 != 1 || done2 != 0 {
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
go get github.com/ThreeDotsLabs/watermill@v1.5.1 2>log || { cat log; exit 2; }
go build -o finding . || { exit 2; }
timeout 50 ./finding
