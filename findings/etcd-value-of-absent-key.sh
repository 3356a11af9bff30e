#!/usr/bin/env bash
# Guess: "value of k is not done" is true for a key that does not exist, as "is done" is false.
# Software: go.etcd.io/etcd client and server v3.7.3.
# Seen: both are false, and so are "less than" and "greater than": whatever compares the value of
#   an absent key fails. Its create revision and version compare as 0.
# Why it matters: "run the event unless its state is done" never runs a new event.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"

	v3 "go.etcd.io/etcd/client/v3"
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

	seen := map[string]bool{}
	for _, operator := range []string{"=", "!=", "<", ">"} {
		resp, err := client.Txn(ctx).If(v3.Compare(v3.Value("absent"), operator, "done")).Commit()
		check(err)
		seen[operator] = resp.Succeeded
		fmt.Printf("etcd v3.7.3: value of an absent key %s \"done\": %v\n", operator, resp.Succeeded)
	}
	resp, err := client.Txn(ctx).If(v3.Compare(v3.Version("absent"), "!=", 1)).Commit()
	check(err)
	fmt.Printf("etcd v3.7.3: version of an absent key != 1: %v\n", resp.Succeeded)
	if seen["="] || seen["!="] || seen["<"] || seen[">"] || !resp.Succeeded {
		os.Exit(1)
	}
}
GO
go get go.etcd.io/etcd/client/v3@v3.7.3 go.etcd.io/etcd/server/v3@v3.7.3 go.uber.org/zap 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
