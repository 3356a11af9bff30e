#!/usr/bin/env bash
# Guess: a message ID (Nats-Msg-Id) that JetStream has seen on one subject is new on another; what
#   was purged, deleted or given up may be sent again under its ID.
# Software: github.com/nats-io/nats-server/v2 v2.15.3, github.com/nats-io/nats.go v1.55.0, a stream
#   with its defaults.
# Seen: the ID counts for the whole stream and by time alone (two minutes). The second message is
#   acknowledged without an error, and stored nowhere. So is one sent again after a purge, or when
#   its consumer has used up MaxDeliver, while the first lies in the work queue that nothing reads.
# Why it matters: the event ID of a webhook as message ID, on hooks.billing and hooks.mail, reaches
#   one of the two; and the sender's repetition that should save a failed event is swallowed.
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

func main() {
	nats1, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: "store", NoSigs: true})
	check(err)
	nats1.Start()
	defer nats1.Shutdown()
	connection, err := nats.Connect(nats1.ClientURL())
	check(err)
	js, err := jetstream.New(connection)
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	same := true
	send := func(what, subject string, duplicate bool, stored uint64) {
		ack, err := js.Publish(ctx, subject, []byte("{}"), jetstream.WithMsgID("evt_1"))
		check(err)
		stream, err := js.Stream(ctx, ack.Stream)
		check(err)
		info, err := stream.Info(ctx)
		check(err)
		fmt.Printf("nats-server v2.15.3: evt_1 %s: acknowledged, duplicate %t; messages in the stream: %d\n", what, ack.Duplicate, info.State.Msgs)
		same = same && ack.Duplicate == duplicate && info.State.Msgs == stored
	}

	hooks, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "hooks", Subjects: []string{"hooks.*"}})
	check(err)
	send("on hooks.billing", "hooks.billing", false, 1)
	send("on hooks.mail", "hooks.mail", true, 1)
	check(hooks.Purge(ctx))
	send("on hooks.billing after a purge", "hooks.billing", true, 0)

	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "work", Subjects: []string{"work.*"}, Retention: jetstream.WorkQueuePolicy})
	check(err)
	worker, err := js.CreateConsumer(ctx, "work", jetstream.ConsumerConfig{MaxDeliver: 2, AckPolicy: jetstream.AckExplicitPolicy})
	check(err)
	send("on work.orders", "work.orders", false, 1)
	for range 2 {
		message, err := worker.Next(jetstream.FetchMaxWait(5 * time.Second))
		check(err)
		check(message.Nak())
	}
	send("on work.orders, whose worker has failed twice", "work.orders", true, 1)
	_, err = worker.Next(jetstream.FetchMaxWait(2 * time.Second))
	fmt.Println("the worker gets then:", err)
	if !same || err == nil {
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
