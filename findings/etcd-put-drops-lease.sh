#!/usr/bin/env bash
# Guess: a key that was put with a lease ends with it, also if its value was changed in between; a note that is
#   written into the key of a held Mutex changes nothing about the lock.
# Software: go.etcd.io/etcd client, concurrency and server v3.7.3.
# Seen: a Put without WithLease takes the key off its lease, without an error. It stays after the lease has
#   ended; the Mutex's stays after its session is closed, and the next TryLock is refused, though no one
#   holds the lock. (WithIgnoreLease keeps the lease.)
# Why it matters: who writes "evt_7 since 10:40" into the lock that he holds, so that others see what holds
#   it, makes a lock that no crash, and no end of the session, ever frees.
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

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.LogOutputs = "data", "panic", []string{"etcd.log"}
	loopback := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenPeerUrls, config.ListenClientUrls = loopback, loopback
	server, err := embed.StartEtcd(config)
	check(err)
	<-server.Server.ReadyNotify()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Clients[0].Addr().String()}})
	check(err)
	ctx := context.Background()
	session := func() *concurrency.Session {
		s, err := concurrency.NewSession(client)
		check(err)
		return s
	}
	free := func(name string, options ...clientv3.OpOption) error {
		first := session()
		mutex := concurrency.NewMutex(first, name)
		check(mutex.Lock(ctx))
		if name != "plain" {
			_, err := client.Put(ctx, mutex.Key(), "evt_7", options...)
			check(err)
		}
		check(first.Close())
		second := session()
		defer second.Close()
		return concurrency.NewMutex(second, name).TryLock(ctx)
	}
	plain, noted, kept := free("plain"), free("noted"), free("kept", clientv3.WithIgnoreLease())
	fmt.Println("etcd v3.7.3, TryLock after the holder's session is closed:", plain)
	fmt.Println("the same, after a Put of a note into the lock's key:      ", noted)
	fmt.Println("the same, with WithIgnoreLease:                           ", kept)
	if plain != nil || noted != concurrency.ErrLocked || kept != nil {
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
