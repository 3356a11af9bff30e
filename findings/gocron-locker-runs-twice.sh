#!/usr/bin/env bash
# Guess: with a distributed locker a job of gocron runs once at each time it is due, on one of the replicas.
# Software: github.com/go-co-op/gocron/v2 v2.21.2, WithDistributedLocker, with a lock that has no faults.
# Seen: the lock is held while the job runs, and no longer, under the job's name alone, not its time. A job that is
#   over before the other replica's clock has come as far runs there, too: twice with clocks 200 ms apart.
#   One that takes longer than they differ runs once.
# Why it matters: a quick job (a mail, one statement) goes out once a replica, now and then, and the slow ones,
#   with which one tries it, do not.
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
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"
)

type locker struct{ held sync.Map }

type lock struct {
	of   *locker
	name string
}

func (l *locker) Lock(_ context.Context, name string) (gocron.Lock, error) {
	if _, taken := l.held.LoadOrStore(name, true); taken {
		return nil, errors.New("held by another replica")
	}
	return lock{l, name}, nil
}

func (l lock) Unlock(context.Context) error {
	l.of.held.Delete(l.name)
	return nil
}

// runs returns how often a job that is due once, and takes so long, ran on two replicas.
func runs(takes time.Duration) int64 {
	shared, ran := &locker{}, atomic.Int64{}
	due := time.Now().Add(time.Second)
	for replica := range 2 {
		scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(shared))
		check(err)
		behind := time.Duration(replica) * 200 * time.Millisecond
		_, err = scheduler.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(due.Add(behind))), gocron.NewTask(func() {
			ran.Add(1)
			time.Sleep(takes)
		}), gocron.WithName("bill"))
		check(err)
		scheduler.Start()
		defer scheduler.Shutdown()
	}
	time.Sleep(4 * time.Second)
	return ran.Load()
}

func main() {
	quick, slow := runs(0), runs(2*time.Second)
	fmt.Printf("gocron v2.21.2, two replicas 200 ms apart: a quick job ran %d times, one of 2 s %d\n", quick, slow)
	if quick != 2 || slow != 1 {
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
go get github.com/go-co-op/gocron/v2@v2.21.2 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
