#!/usr/bin/env bash
# Guess: a consumer with AckWait 30 s and BackOff 1 s, 3 s, 5 s lets a handler work for 30 s, and delivers what
#   it refuses by Nak again after 1 s, 3 s and 5 s.
# Software: github.com/nats-io/nats-server/v2 v2.15.3, github.com/nats-io/nats.go v1.55.0.
# Seen: neither. AckWait becomes the first BackOff, without an error, and the steps are how long a handler may
#   work: one of 2.5 s has a second one beside it after 1 s. A Nak is delivered again at once: the four
#   deliveries of MaxDeliver are used up within milliseconds. (NakWithDelay waits.)
# Why it matters: the setting that is to give a failing service time runs each slow event twice at once, and
#   gives up each refused one before the service can have recovered.
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
	ctx, second := context.Background(), time.Second
	s, err := server.NewServer(&server.Options{Port: -1, JetStream: true, StoreDir: "store", NoLog: true, NoSigs: true})
	check(err)
	go s.Start()
	if !s.ReadyForConnections(10 * second) {
		os.Exit(2)
	}
	defer s.Shutdown()
	conn, err := nats.Connect(s.ClientURL())
	check(err)
	js, err := jetstream.New(conn)
	check(err)
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "hooks", Subjects: []string{"hooks.*"}})
	check(err)
	same := true
	for _, how := range []string{"slow", "refused"} {
		consumer, err := js.CreateConsumer(ctx, "hooks", jetstream.ConsumerConfig{
			Durable: how, FilterSubject: "hooks." + how, AckWait: 30 * second, MaxDeliver: 4,
			BackOff: []time.Duration{second, 3 * second, 5 * second},
		})
		check(err)
		info, err := consumer.Info(ctx)
		check(err)
		came := make(chan time.Time, 10)
		consuming, err := consumer.Consume(func(m jetstream.Msg) {
			came <- time.Now()
			if how == "refused" {
				m.Nak()
				return
			}
			go func() {
				time.Sleep(2500 * time.Millisecond)
				m.Ack()
			}()
		})
		check(err)
		start := time.Now()
		_, err = js.Publish(ctx, "hooks."+how, nil)
		check(err)
		time.Sleep(6 * second)
		consuming.Stop()
		var at []float64
		for len(came) > 0 {
			at = append(at, (<-came).Sub(start).Round(100*time.Millisecond).Seconds())
		}
		fmt.Printf("nats-server v2.15.3: AckWait is %v; %s: delivered after %v s\n", info.Config.AckWait, how, at)
		same = same && info.Config.AckWait == second
		if how == "slow" {
			same = same && len(at) == 2 && at[1] < 2.5
		} else {
			same = same && len(at) == 4 && at[3] < 1
		}
	}
	if !same {
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
