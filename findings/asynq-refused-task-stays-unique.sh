#!/usr/bin/env bash
# Guess: a task that Enqueue refuses leaves nothing behind; and one that has failed for good, and is
#   archived, may be enqueued again under its ID and under Unique.
# Software: github.com/hibiken/asynq v0.26.0, on github.com/alicebob/miniredis/v2 v2.40.0; the same
#   was seen on Redis 7.0.15.
# Seen: Enqueue with TaskID and Unique, refused because the ID is taken, keeps the unique lock: the
#   task exists nowhere, and is refused under any other ID as "already exists" until Unique's time
#   is over. An archived task keeps its ID (asynq: for 90 days) and its unique lock, too.
# Why it matters: the event ID of a webhook as TaskID and its payload under Unique look like a belt
#   and braces; together they drop an event that never ran.
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
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
)

func main() {
	addr := os.Getenv("REDIS") // another server, host:port; it must be empty
	if addr == "" {
		redis, err := miniredis.Run()
		check(err)
		defer redis.Close()
		addr = redis.Addr()
	}
	at := asynq.RedisClientOpt{Addr: addr}
	client := asynq.NewClient(at)
	same := true
	enqueue := func(what, task, want string, options ...asynq.Option) {
		got := "enqueued"
		if _, err := client.Enqueue(asynq.NewTask(task, nil), options...); err != nil {
			got = err.Error()
		}
		fmt.Printf("asynq v0.26.0: %s: %s\n", what, got)
		same = same && got == want
	}
	const exists, conflict = "task already exists", "task ID conflicts with another task"
	enqueue("task one as ID evt_1", "one", "enqueued", asynq.TaskID("evt_1"), asynq.ProcessIn(time.Hour))
	enqueue("task two, as ID evt_1, too, under Unique", "two", conflict, asynq.TaskID("evt_1"), asynq.Unique(time.Hour))
	enqueue("task two as ID evt_2 under Unique", "two", exists, asynq.TaskID("evt_2"), asynq.Unique(time.Hour))

	enqueue("a task that fails, as ID evt_3", "fail", "enqueued", asynq.TaskID("evt_3"), asynq.Unique(time.Hour), asynq.MaxRetry(0))
	server := asynq.NewServer(at, asynq.Config{LogLevel: asynq.FatalLevel})
	check(server.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return errors.New("no") })))
	inspector := asynq.NewInspector(at)
	for {
		if info, err := inspector.GetTaskInfo("default", "evt_3"); err == nil && info.State == asynq.TaskStateArchived {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	server.Shutdown()
	enqueue("the same when it is archived", "fail", conflict, asynq.TaskID("evt_3"))
	enqueue("the same as ID evt_4 under Unique", "fail", exists, asynq.TaskID("evt_4"), asynq.Unique(time.Hour))
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
go get github.com/hibiken/asynq@v0.26.0 github.com/alicebob/miniredis/v2@v2.40.0 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
