#!/usr/bin/env bash
# Guess: once JetStream has delivered a message again, because it was not acknowledged in time, what the
#   first worker says of it is refused, or means nothing: the second one holds it now.
# Software: github.com/nats-io/nats-server/v2 v2.15.3, github.com/nats-io/nats.go v1.55.0, a work queue.
# Seen: it counts. A Nak of the first delivery starts a third one at once, beside the second, which is at work.
#   A DoubleAck of the first returns nil and ends the message while the second works; the second's returns
#   nil, too.
# Why it matters: a handler that overruns AckWait and then fails runs its event twice at the same time, and
#   with AckSync each of two workers is told that the event was its own.
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
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const wait = 2 * time.Second

func main() {
	ctx := context.Background()
	options := &server.Options{Port: -1, JetStream: true, StoreDir: "store", NoLog: true, NoSigs: true}
	broker, err := server.NewServer(options)
	check(err)
	broker.Start()
	connection, err := nats.Connect(broker.ClientURL())
	check(err)
	js, err := jetstream.New(connection)
	check(err)
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "HOOKS", Subjects: []string{"hooks"}, Retention: jetstream.WorkQueuePolicy,
	})
	check(err)
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: "workers", AckPolicy: jetstream.AckExplicitPolicy, AckWait: wait,
	})
	check(err)

	// overrun returns both deliveries of a message whose first one was not acknowledged in time.
	overrun := func(event string) (first, second jetstream.Msg) {
		_, err := js.Publish(ctx, "hooks", []byte(event))
		check(err)
		first, err = consumer.Next(jetstream.FetchMaxWait(wait))
		check(err)
		second, err = consumer.Next(jetstream.FetchMaxWait(3 * wait))
		check(err)
		return first, second
	}
	ack := func(message jetstream.Msg) error {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		return message.DoubleAck(ctx)
	}

	first, second := overrun("evt_1")
	check(first.Nak())
	third, err := consumer.Next(jetstream.FetchMaxWait(wait / 2))
	delivered := uint64(0)
	if err == nil {
		metadata, err := third.Metadata()
		check(err)
		delivered = metadata.NumDelivered
	}
	fmt.Println("nats-server v2.15.3: while delivery 2 is at work, a Nak of the first brings delivery", delivered)
	check(ack(second))

	first, second = overrun("evt_2")
	late := ack(first)
	info, err := stream.Info(ctx)
	check(err)
	own := ack(second)
	fmt.Printf("an Ack of the first: %v, %d messages left; an Ack of the second: %v\n", late, info.State.Msgs, own)
	if delivered != 3 || late != nil || info.State.Msgs != 0 || own != nil {
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
go get github.com/nats-io/nats-server/v2@v2.15.3 github.com/nats-io/nats.go@v1.55.0 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
