#!/usr/bin/env bash
# Guess: two InterProcessLocks for one path exclude each other, also between threads of one
#   process; a lock that excludes other processes is the stronger one.
# Software: Debian package python3-fasteners 0.17.3-2 (needs Debian 12 and its Python).
# Seen: the second acquire returns True at once, both say that they are acquired. When one of them
#   is released, another process gets the lock, while the other one still says that it has it.
# Why it matters: a service with threads that makes a lock for each request, named by the order,
#   runs two events of one order at once; with several processes the first to end frees it for them
#   all.
set -euo pipefail
dir=$(mktemp -d); chmod 755 "$dir"; trap 'rm -rf "$dir"' EXIT; cd "$dir"
apt-get download python3-fasteners=0.17.3-2 >log 2>&1 || { cat log; exit 2; }
dpkg -x python3-fasteners_*.deb .
cat > main.py <<'PY'
import subprocess
import sys
import threading

import fasteners


def take():
    lock = fasteners.InterProcessLock("order-7.lock")
    return lock, lock.acquire(blocking=False)


def other_process_takes_it():
    code = "import sys, fasteners; sys.exit(not fasteners.InterProcessLock('order-7.lock').acquire(blocking=False))"
    return subprocess.run([sys.executable, "-c", code]).returncode == 0


got = []
threads = [threading.Thread(target=lambda: got.append(take())) for _ in range(2)]
for thread in threads:
    thread.start()
    thread.join()
(first, first_got), (second, second_got) = got
before = other_process_takes_it()
second.release()
after = other_process_takes_it()
print(f"fasteners 0.17.3: two threads get the lock: {first_got}, {second_got}; another process: {before}")
print(f"when the second has released it, another process: {after}; the first has it still: {first.acquired}")
sys.exit(0 if (first_got, second_got, before, after, first.acquired) == (True, True, False, True, True) else 1)
PY
PYTHONPATH=usr/lib/python3/dist-packages timeout 50 /usr/bin/python3 main.py
