#!/usr/bin/env bash
# Guess: of two transactions nested in one, the second compares against what the first wrote,
#   as a Get in the second reads it.
# Software: go.etcd.io/etcd client and server v3.7.3.
# Seen: both compare against the state before the outer transaction, and both succeed. A Get
#   in the second does read the first one's Put.
# Why it matters: two "put if absent" of one event in a batch, on different keys, both win.
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

	absent := func(key string) []v3.Cmp { return []v3.Cmp{v3.Compare(v3.CreateRevision(key), "=", 0)} }
	resp, err := client.Txn(ctx).Then(
		v3.OpTxn(absent("x"), []v3.Op{v3.OpPut("y", "first")}, nil),
		v3.OpTxn(absent("y"), []v3.Op{v3.OpGet("y"), v3.OpPut("x", "second")}, nil),
	).Commit()
	check(err)
	first, second := resp.Responses[0].GetResponseTxn(), resp.Responses[1].GetResponseTxn()
	fmt.Printf("etcd v3.7.3: if x is absent put y: %v; if y is absent put x: %v\n", first.Succeeded, second.Succeeded)
	if !first.Succeeded || !second.Succeeded {
		os.Exit(1)
	}
	read := second.Responses[0].GetResponseRange().Count
	fmt.Printf("etcd v3.7.3: the second, which found y absent, reads %d key y\n", read)
	if read != 1 {
		os.Exit(1)
	}
}
GO
go get go.etcd.io/etcd/client/v3@v3.7.3 go.etcd.io/etcd/server/v3@v3.7.3 go.uber.org/zap 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
