#!/usr/bin/env bash
# Guess: a range with WithMinModRev counts what it returns: Count is the number of keys that match, and
#   WithCountOnly, which leaves the keys out, gives the same number.
# Software: go.etcd.io/etcd client and server v3.7.3.
# Seen: Count is that of the whole range, with and without WithCountOnly. The four filters (least and greatest
#   mod and create revision) thin out the keys alone.
# Why it matters: "how many events changed since revision n" is answered with all there are, so that a
#   worker that asks whether anything is new always hears yes, and an alert on a backlog never ends.
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

	var last int64
	for _, key := range []string{"event/1", "event/2", "event/3"} {
		put, err := client.Put(context.Background(), key, "done")
		check(err)
		last = put.Header.Revision
	}
	same := true
	for _, ask := range []struct {
		name   string
		filter clientv3.OpOption
		want   clientv3.OpOption
		keys   int
	}{
		{"min_mod_revision of the last", clientv3.WithMinModRev(last), clientv3.WithKeysOnly(), 1},
		{"the same, count_only", clientv3.WithMinModRev(last), clientv3.WithCountOnly(), 0},
		{"min_create_revision beyond all, count_only", clientv3.WithMinCreateRev(last + 1), clientv3.WithCountOnly(), 0},
		{"max_mod_revision before all, count_only", clientv3.WithMaxModRev(1), clientv3.WithCountOnly(), 0},
	} {
		got, err := client.Get(context.Background(), "event/", clientv3.WithPrefix(), ask.filter, ask.want)
		check(err)
		fmt.Printf("etcd v3.7.3, three keys, %s: %d keys, count %d\n", ask.name, len(got.Kvs), got.Count)
		same = same && len(got.Kvs) == ask.keys && got.Count == 3
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
go get go.etcd.io/etcd/client/v3@v3.7.3 go.etcd.io/etcd/server/v3@v3.7.3 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
