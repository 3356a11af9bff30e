#!/usr/bin/env bash
# Guess: a transaction with two nested ones, of which one puts and the other deletes the same
#   key, is refused in either order. The API says that no key may be changed twice.
# Software: go.etcd.io/etcd client and server v3.7.3.
# Seen: delete before put is refused (duplicate key), put before delete is taken. The key is
#   gone afterwards, and a watch gets two events of one revision, PUT and then DELETE.
# Why it matters: a batch that takes and ends a lock of one event passes or fails by its order.
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

	put, del := []v3.Op{v3.OpPut("k", "v")}, []v3.Op{v3.OpDelete("k")}
	_, refused := client.Txn(ctx).Then(v3.OpTxn(nil, del, nil), v3.OpTxn(nil, put, nil)).Commit()
	fmt.Printf("etcd v3.7.3: delete, then put: error %v\n", refused)
	watch := client.Watch(ctx, "k", v3.WithRev(1))
	resp, err := client.Txn(ctx).Then(v3.OpTxn(nil, put, nil), v3.OpTxn(nil, del, nil)).Commit()
	fmt.Printf("etcd v3.7.3: put, then delete: error %v\n", err)
	if refused == nil || err != nil {
		os.Exit(1)
	}
	events := (<-watch).Events
	for _, e := range events {
		fmt.Printf("etcd v3.7.3: watch: %v of revision %d\n", e.Type, e.Kv.ModRevision)
	}
	rev := resp.Header.Revision
	if len(events) != 2 || events[0].Kv.ModRevision != rev || events[1].Kv.ModRevision != rev {
		os.Exit(1)
	}
}
GO
go get go.etcd.io/etcd/client/v3@v3.7.3 go.etcd.io/etcd/server/v3@v3.7.3 go.uber.org/zap 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
