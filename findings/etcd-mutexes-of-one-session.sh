#!/usr/bin/env bash
# Guess: two Mutexes of one name exclude each other, also if both were made from one Session.
# Software: go.etcd.io/etcd/client/v3/concurrency v3.7.3.
# Seen: the second Lock returns at once, both hold it; the Unlock of one frees it for a third.
#   A Mutex of a Session of its own waits. The lock belongs to the session's lease alone.
# Why it matters: two requests for one workflow in one process that shares a session run at the
#   same time.
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
	"net/url"
	"os"
	"time"

	v3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
}

func main() {
	cfg := embed.NewConfig()
	cfg.Dir = "data"
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	loopback := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.ListenPeerUrls = loopback, loopback
	server, err := embed.StartEtcd(cfg)
	check(err)
	defer server.Close()
	<-server.Server.ReadyNotify()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, err := v3.New(v3.Config{Endpoints: []string{server.Clients[0].Addr().String()}, Logger: zap.NewNop()})
	check(err)
	defer client.Close()

	shared, err := concurrency.NewSession(client)
	check(err)
	other, err := concurrency.NewSession(client)
	check(err)
	first, second, third := concurrency.NewMutex(shared, "order"), concurrency.NewMutex(shared, "order"),
		concurrency.NewMutex(other, "order")
	check(first.Lock(ctx))
	both := second.Lock(ctx)
	fmt.Printf("etcd v3.7.3: second Mutex of the same session, first held: Lock returns %v\n", both)
	waits := third.TryLock(ctx)
	fmt.Printf("etcd v3.7.3: Mutex of another session: TryLock returns %v\n", waits)
	check(first.Unlock(ctx))
	freed := third.TryLock(ctx)
	fmt.Printf("etcd v3.7.3: the same after Unlock of the first, second still held: %v\n", freed)
	if both != nil || !errors.Is(waits, concurrency.ErrLocked) || freed != nil {
		os.Exit(1)
	}
}
GO
go get go.etcd.io/etcd/client/v3@v3.7.3 go.etcd.io/etcd/server/v3@v3.7.3 go.uber.org/zap 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
