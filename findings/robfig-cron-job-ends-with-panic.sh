#!/usr/bin/env bash
# Guess: with Recover in its chain, a job of robfig/cron that panics once runs again at its next time, whether
#   its other wrapper is SkipIfStillRunning or DelayIfStillRunning, and wherever Recover stands.
# Software: github.com/robfig/cron/v3 v3.0.1, cron.NewChain.
# Seen: behind Recover, SkipIfStillRunning never lets it run again: the panic leaves the job marked as
#   running, so each later run is skipped, until the process ends. With Recover as the last in the chain,
#   or with DelayIfStillRunning, it goes on.
# Why it matters: the order in which one writes the two decides whether one bad row ends a job for good, and
#   the skips are logged as "skip" at the level of information, like any other.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/robfig/cron/v3"
)

// runs returns how many of five runs, one after the other, reached the job, whose first one panics.
func runs(chain ...cron.JobWrapper) (n int) {
	job := cron.NewChain(chain...).Then(cron.FuncJob(func() {
		if n++; n == 1 {
			panic("row 7 has no customer")
		}
	}))
	for range 5 {
		job.Run()
	}
	return n
}

func main() {
	quiet := cron.DiscardLogger
	last, skip := cron.Recover(quiet), cron.SkipIfStillRunning(quiet)
	got := [3]int{runs(last, skip), runs(skip, last), runs(last, cron.DelayIfStillRunning(quiet))}
	fmt.Printf("robfig/cron v3.0.1, a job that panics in the first of five runs:\n"+
		"Recover, SkipIfStillRunning: it ran %d time(s)\nSkipIfStillRunning, Recover: %d\nRecover, DelayIfStillRunning: %d\n",
		got[0], got[1], got[2])
	if got != [3]int{1, 5, 5} {
		os.Exit(1)
	}
}
GO
go get github.com/robfig/cron/v3@v3.0.1 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding
