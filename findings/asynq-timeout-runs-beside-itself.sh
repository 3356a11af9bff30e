#!/usr/bin/env bash
# Guess: a task whose Timeout is over is tried again when its handler has returned; and a server with
#   Concurrency 1 runs one handler at a time.
# Software: github.com/hibiken/asynq v0.26.0, on github.com/alicebob/miniredis/v2 v2.40.0.
# Seen: neither. At the timeout the context is cancelled, the task is put back and its place is free, while a
#   handler that does not look at the context works on. With Timeout 1 s and a handler of 4 s one task is
#   run by three handlers at once and more, and fails, though each of them succeeds.
# Why it matters: a slow call that takes no context (a driver, a library in C, a file) charges a card as often
#   as there are retries, side by side, just when the other end is slow.
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
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
)

func main() {
	store, err := miniredis.Run()
	check(err)
	redis := asynq.RedisClientOpt{Addr: store.Addr()}
	soon := 100 * time.Millisecond
	server := asynq.NewServer(redis, asynq.Config{
		Concurrency: 1, LogLevel: asynq.FatalLevel, TaskCheckInterval: soon, DelayedTaskCheckInterval: soon,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return soon },
	})
	var now, most, runs, done atomic.Int64
	check(server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		runs.Add(1)
		most.Store(max(most.Load(), now.Add(1)))
		time.Sleep(4 * time.Second)
		now.Add(-1)
		done.Add(1)
		return nil
	})))
	task, err := asynq.NewClient(redis).Enqueue(asynq.NewTask("charge", nil), asynq.Timeout(time.Second), asynq.MaxRetry(3))
	check(err)
	inspector := asynq.NewInspector(redis)
	state := asynq.TaskStatePending
	for deadline := time.Now().Add(30 * time.Second); state != asynq.TaskStateArchived || now.Load() > 0; time.Sleep(soon) {
		if time.Now().After(deadline) {
			break
		}
		info, err := inspector.GetTaskInfo("default", task.ID)
		check(err)
		state = info.State
	}
	fmt.Printf("asynq v0.26.0, Concurrency 1, one task, MaxRetry 3: %d runs, %d at once; %d succeeded; the task is %s\n",
		runs.Load(), most.Load(), done.Load(), state)
	if runs.Load() != 4 || most.Load() < 2 || done.Load() != 4 || state != asynq.TaskStateArchived {
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
go get github.com/hibiken/asynq@v0.26.0 github.com/alicebob/miniredis/v2@v2.40.0 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
