#!/usr/bin/env bash
# Guess: a lock that is taken by etcd's Lock call (gRPC, or POST /v3/lock/lock of its gateway) with a name
#   alone is held until Unlock; or the call is refused, because its lease is missing.
# Software: go.etcd.io/etcd/server/v3 v3.7.3.
# Seen: the server grants a lease of 60 seconds, which nobody keeps alive, and answers with the key alone: the
#   lock ends a minute after it was asked for, the time in the queue included. The lease's ID, which
#   keep-alives need, is the end of the key. Unlock of a lock that has ended succeeds.
# Why it matters: a script that takes a workflow's lock with curl and works for longer than a minute works
#   beside the next one, and nothing tells it so.
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

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	lockpb "go.etcd.io/etcd/server/v3/etcdserver/api/v3lock/v3lockpb"
)

func main() {
	config := embed.NewConfig()
	config.Dir, config.LogLevel = "etcd", "fatal"
	free, err := url.Parse("http://127.0.0.1:0")
	check(err)
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{*free}, []url.URL{*free}
	server, err := embed.StartEtcd(config)
	check(err)
	<-server.Server.ReadyNotify()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Clients[0].Addr().String()}})
	check(err)
	locks := lockpb.NewLockClient(client.ActiveConnection())
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()

	first, err := locks.Lock(ctx, &lockpb.LockRequest{Name: []byte("order-7")})
	check(err)
	held, err := client.Get(ctx, string(first.Key))
	check(err)
	lease := clientv3.LeaseID(held.Kvs[0].Lease)
	before, err := client.TimeToLive(ctx, lease)
	check(err)
	time.Sleep(4 * time.Second)
	after, err := client.TimeToLive(ctx, lease)
	check(err)
	fmt.Printf("etcd v3.7.3: lock %s: its lease %x is granted for %d s; %d s are left, four seconds later %d\n",
		first.Key, lease, before.GrantedTTL, before.TTL, after.TTL)

	_, err = client.Revoke(ctx, lease) // what the end of the minute does
	check(err)
	second, err := locks.Lock(ctx, &lockpb.LockRequest{Name: []byte("order-7")})
	check(err)
	_, err = locks.Unlock(ctx, &lockpb.UnlockRequest{Key: first.Key})
	fmt.Printf("after the lease's end %s holds it; Unlock of the first: %v\n", second.Key, err)
	if before.GrantedTTL != 60 || after.TTL > before.TTL-3 || string(first.Key) != fmt.Sprintf("order-7/%x", lease) || err != nil {
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
go get go.etcd.io/etcd/client/v3@v3.7.3 go.etcd.io/etcd/server/v3@v3.7.3 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
