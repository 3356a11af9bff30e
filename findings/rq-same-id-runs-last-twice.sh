#!/usr/bin/env bash
# Guess: RQ refuses, or leaves out, a job whose ID is that of one in the queue; or both run, each
#   with what it was given.
# Software: Debian packages python3-rq 1.13.0-1, redis-server 5:7.0.15-1~deb12u10 (needs Debian 12
#   and its Python).
# Seen: the second takes the first one's place and the ID is in the queue twice: the second job
#   runs twice, the first never. enqueue raises nothing. A job that has ended runs again under its
#   ID.
# Why it matters: the event ID of a webhook as job ID looks like what makes it run once. Two events
#   under one name ("order-7") are a double charge and a lost one; a copy that comes while the
#   first waits runs twice.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; cd "$dir"
trap 'kill "${pid:-}" 2>/dev/null || true; rm -rf "$dir"' EXIT
apt-get download python3-rq=1.13.0-1 redis-server=5:7.0.15-1~deb12u10 redis-tools=5:7.0.15-1~deb12u10 liblzf1 libjemalloc2 \
  liblua5.1-0 lua-cjson lua-bitop libhiredis0.14 python3-redis python3-click python3-async-timeout python3-colorama \
  python3-deprecated python3-packaging python3-wrapt >log 2>&1 || { cat log; exit 2; }
for package in *.deb; do dpkg -x "$package" .; done
LD_LIBRARY_PATH=usr/lib/x86_64-linux-gnu usr/bin/redis-server --port 0 --unixsocket "$dir/redis" --save '' >redis.log 2>&1 & pid=$!
for _ in {1..200}; do [ -S redis ] && break; sleep 0.1; done
cat > jobs.py <<'PY'
ran = []


def charge(amount):
    ran.append(amount)
PY
cat > main.py <<'PY'
import sys

import jobs
from redis import Redis
from rq import Queue, SimpleWorker

connection = Redis(unix_socket_path="redis")
queue = Queue("hooks", connection=connection)


def run():
    jobs.ran.clear()
    SimpleWorker([queue], connection=connection).work(burst=True, logging_level="ERROR")
    return list(jobs.ran)


queue.enqueue(jobs.charge, 100, job_id="evt_1")
queue.enqueue(jobs.charge, 250, job_id="evt_1")
ids = list(queue.job_ids)
both = run()
queue.enqueue(jobs.charge, 100, job_id="evt_1")
again = run()
print(f"rq 1.13.0: charge(100) and charge(250) as evt_1: the queue has {ids}; charged {both}")
print(f"charge(100) as evt_1 after that: charged {again}")
sys.exit(0 if (ids, both, again) == (["evt_1", "evt_1"], [250, 250], [100]) else 1)
PY
PYTHONPATH=usr/lib/python3/dist-packages:. timeout 50 /usr/bin/python3 main.py
