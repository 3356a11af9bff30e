#!/usr/bin/env bash
# Guess: a cache in memory that keeps the IDs of a second knows an ID right after Set, and has forgotten it a
#   second later.
# Software: github.com/dgraph-io/ristretto/v2 v2.4.2, github.com/jellydator/ttlcache/v3 v3.4.1,
#   github.com/allegro/bigcache/v3 v3.1.0, as their documentation begins.
# Seen: ristretto's Set hands the ID over: Get at once misses nearly all of 1000. ttlcache's Get begins the second
#   anew (WithDisableTouchOnHit): an ID that is asked for each 400 ms stays for good. bigcache with
#   CleanWindow 0 gives out what is three seconds old.
# Why it matters: the check "seen within the last minutes?" before an event runs lets the copy pass that comes
#   right behind the first, or refuses for ever an ID that comes back in time (a daily one, asked hourly).
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

	"github.com/allegro/bigcache/v3"
	"github.com/dgraph-io/ristretto/v2"
	"github.com/jellydator/ttlcache/v3"
)

func main() {
	first, err := ristretto.NewCache(&ristretto.Config[string, bool]{NumCounters: 1e5, MaxCost: 1e4, BufferItems: 64})
	check(err)
	missed := 0
	for i := range 1000 {
		id := fmt.Sprintf("evt_%d", i)
		first.SetWithTTL(id, true, 1, time.Second)
		if _, seen := first.Get(id); !seen {
			missed++
		}
	}
	second := ttlcache.New(ttlcache.WithTTL[string, bool](time.Second))
	second.Set("evt_1", true, ttlcache.DefaultTTL)
	config := bigcache.DefaultConfig(time.Second)
	config.CleanWindow, config.Verbose = 0, false
	third, err := bigcache.New(context.Background(), config)
	check(err)
	check(third.Set("evt_1", nil))
	asked := 0
	for second.Get("evt_1") != nil && asked < 8 {
		asked++
		time.Sleep(400 * time.Millisecond)
	}
	_, old := third.Get("evt_1")
	fmt.Printf("ristretto v2.4.2: of 1000 IDs, asked for right after Set, %d are unknown\n", missed)
	fmt.Printf("ttlcache v3.4.1, TTL 1 s, asked each 400 ms: known %d times of 8\n", asked)
	fmt.Printf("bigcache v3.1.0, LifeWindow 1 s, CleanWindow 0, after 3 s: known: %v\n", old == nil)
	if missed < 500 || asked != 8 || old != nil {
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
go get github.com/dgraph-io/ristretto/v2@v2.4.2 github.com/jellydator/ttlcache/v3@v3.4.1 github.com/allegro/bigcache/v3@v3.1.0 2>log ||
  { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
