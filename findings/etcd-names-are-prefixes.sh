#!/usr/bin/env bash
# Guess: two queues of different names share nothing, nor do a Mutex "acme" and a Mutex "acme/7".
# Software: go.etcd.io/etcd/client/v3 v3.7.3, experimental/recipes and concurrency, server v3.7.3.
# Seen: a name is a prefix. Queue "orders" gives out what was put into queue "orders-eu", and the worker of
#   "orders-eu" never gets it. Mutex "acme" waits while "acme/7" is held, but not the other way round:
#   "acme/7" is taken while "acme" is held.
# Why it matters: an event runs at the worker of another kind of event; and locks that are named by parts of
#   an event (a customer, an order of his) wait for each other, so that a worker can wait for itself.
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
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
	"go.etcd.io/etcd/server/v3/embed"
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

	check(recipe.NewQueue(client, "orders-eu").Enqueue("evt_1 for orders-eu"))
	check(recipe.NewQueue(client, "orders").Enqueue("evt_2 for orders"))
	first, err := recipe.NewQueue(client, "orders").Dequeue()
	check(err)
	fmt.Printf("etcd recipes v3.7.3: queue orders gives out %q\n", first)

	whole, part := mutex(client, "acme"), mutex(client, "acme/7")
	check(lock(part))
	outer := lock(whole)
	fmt.Println("Lock of acme while acme/7 is held:", outer)
	check(part.Unlock(context.Background()))
	check(lock(whole))
	inner := lock(part)
	fmt.Println("Lock of acme/7 while acme is held:", inner)
	if first != "evt_1 for orders-eu" || outer != context.DeadlineExceeded || inner != nil {
		os.Exit(1)
	}
}

func mutex(client *clientv3.Client, name string) *concurrency.Mutex {
	session, err := concurrency.NewSession(client)
	check(err)
	return concurrency.NewMutex(session, name)
}

func lock(mutex *concurrency.Mutex) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return mutex.Lock(ctx)
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
