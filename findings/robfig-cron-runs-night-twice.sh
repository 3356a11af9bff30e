#!/usr/bin/env bash
# Guess: a job of "30 2 * * *" runs once a day, also in the night in which the clock goes back and 02:30 comes
#   twice, as cron's own does: what names its hour has run.
# Software: github.com/robfig/cron/v3 v3.0.1; croner 11.0.1 and cron-parser 5.10.6 (npm), to compare.
# Seen: it runs at 02:30 of summer time and again an hour later, at 02:30 of winter time; croner and
#   cron-parser have it once. In March, when there is no 02:30, robfig/cron leaves the night out (its
#   documentation says so), and they run at 03:00 and 03:30.
# Why it matters: whatever has a schedule in a time zone by this library, which is most in Go, bills, mails or
#   exports twice in one night a year, within an hour: longer than most locks and dedup windows last.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
export GOFLAGS=-mod=mod GOWORK=off
go mod init finding 2>/dev/null
cat > main.go <<'GO'
package main

import (
	"fmt"
	"os"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

func main() {
	schedule, err := cron.ParseStandard("CRON_TZ=Europe/Berlin 30 2 * * *")
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	for _, noon := range []string{"2026-10-24T10:00:00Z", "2026-03-28T11:00:00Z"} {
		at, err := time.Parse(time.RFC3339, noon)
		if err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
		for range 3 {
			at = schedule.Next(at)
			fmt.Print(at.UTC().Format("01-02T15:04 "))
		}
		fmt.Println()
	}
}
GO
cat > package.json <<'JSON'
{"private": true, "type": "module", "dependencies": {"croner": "11.0.1", "cron-parser": "5.10.6"}}
JSON
cat > others.js <<'JS'
import { Cron } from 'croner';
import { CronExpressionParser } from 'cron-parser';

for (const noon of ['2026-10-24T10:00:00Z', '2026-03-28T11:00:00Z']) {
  const runs = new Cron('30 2 * * *', { timezone: 'Europe/Berlin' }).nextRuns(3, new Date(noon));
  const parsed = CronExpressionParser.parse('30 2 * * *', { tz: 'Europe/Berlin', currentDate: new Date(noon) });
  for (const times of [runs, [1, 2, 3].map(() => parsed.next().toDate())]) {
    console.log(times.map((time) => time.toISOString().slice(5, 16)).join(' '));
  }
}
JS
npm install --silent --no-audit --no-fund --ignore-scripts >log 2>&1 || { cat log; exit 2; }
go get github.com/robfig/cron/v3@v3.0.1 2>log || { cat log; exit 2; }
go build -o finding . || exit 2
timeout 50 ./finding > go.txt; timeout 50 node others.js > npm.txt
echo "robfig/cron v3.0.1, 02:30 in Berlin, in UTC, around the ends of summer time and of winter time:"; cat go.txt
echo "croner 11.0.1 and cron-parser 5.10.6:"; cat npm.txt
diff go.txt - <<'TXT' && diff npm.txt <(printf '%s\n' '10-25T00:30 10-26T01:30 10-27T01:30' '10-25T00:30 10-26T01:30 10-27T01:30' \
  '03-29T01:00 03-30T00:30 03-31T00:30' '03-29T01:30 03-30T00:30 03-31T00:30')
10-25T00:30 10-25T01:30 10-26T01:30 
03-30T00:30 03-31T00:30 04-01T00:30 
TXT
