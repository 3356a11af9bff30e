#!/usr/bin/env bash
# Guess: webhook (the small server that runs a command for each hook) answers 500 if the command
#   fails or does not exist, 400 for a body of half an object, 4xx if no rule matches, and it
#   answers when the command has ended.
# Software: webhook 2.8.0, of Debian 12 (2.8.0-4+b6), which is github.com/adnanh/webhook.
# Seen: all of these are 200, and the answer comes before the command has run. With
#   include-command-output-in-response the answer waits, and a failure is 500; the others stay 200.
# Why it matters: a sender takes each for done and never comes again, and two commands of one
#   repository run at once though their deliveries came one after the other.
set -euo pipefail
dir=$(mktemp -d); cd "$dir"
trap 'kill "${pid:-}" 2>/dev/null || true; rm -rf "$dir"' EXIT
apt-get download webhook >log 2>&1 || { cat log; exit 2; }
dpkg -x webhook_2.8.0*.deb . || exit 2
port=$((20000 + RANDOM % 10000))
cat > hooks.json <<'JSON'
[{"id": "fails", "execute-command": "/bin/false"},
 {"id": "missing", "execute-command": "/no/such/command"},
 {"id": "slow", "execute-command": "/bin/sh", "pass-arguments-to-command": [
   {"source": "string", "name": "-c"}, {"source": "string", "name": "sleep 2"}]},
 {"id": "ruled", "execute-command": "/bin/true", "trigger-rule": {"match":
   {"type": "value", "value": "main", "parameter": {"source": "payload", "name": "ref"}}}},
 {"id": "fails-told", "include-command-output-in-response": true, "execute-command": "/bin/false"},
 {"id": "slow-told", "include-command-output-in-response": true, "execute-command": "/bin/sh",
   "pass-arguments-to-command": [{"source": "string", "name": "-c"}, {"source": "string", "name": "sleep 2"}]}]
JSON
usr/bin/webhook -hooks hooks.json -ip 127.0.0.1 -port "$port" >log 2>&1 &
pid=$!
for _ in $(seq 100); do (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break; sleep 0.1; done
same=0
check() { # $1 hook, $2 body, $3 the status that is expected, $4 at once or late
	got=$(curl -s -o /dev/null -m 20 -w '%{http_code} %{time_total}' -H 'Content-Type: application/json' -d "$2" "http://127.0.0.1:$port/hooks/$1")
	when=$(awk '{print $2 < 1.5 ? "at once" : "late"}' <<<"$got")
	echo "webhook 2.8.0: $1 with $2: ${got%% *} $when"
	[ "${got%% *} $when" = "$3 $4" ] || same=1
}
check fails '{}' 200 'at once'
check missing '{}' 200 'at once'
check slow '{}' 200 'at once'
check ruled '{"ref": "dev"}' 200 'at once'
check ruled '{"ref": ' 200 'at once'
check fails-told '{}' 500 'at once'
check slow-told '{}' 200 late
exit $same
